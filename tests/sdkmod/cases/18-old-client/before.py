from kubeflow.pytorchjob import PyTorchJobClient

client = PyTorchJobClient()
client.create({"kind": "PyTorchJob"}, namespace="default")
