# TODO(trainjob): TJ716 PyTorchJobClient of the v1 SDK is still used; kubeflow 0.5 has nothing for
#   it; migrate the places that use it; until then install kubeflow-training beside it
from kubeflow.pytorchjob import PyTorchJobClient

# TODO(trainjob): TJ714 PyTorchJobClient: a client from before kubeflow-training 1.6; write the job
#   as YAML and run `trainjob migrate`
client = PyTorchJobClient()
client.create({"kind": "PyTorchJob"}, namespace="default")
