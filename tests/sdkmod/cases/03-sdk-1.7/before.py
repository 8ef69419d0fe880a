# Written for kubeflow-training==1.7.0
from kubeflow.training import TrainingClient
from kubeflow.training.utils import utils

namespace = utils.get_default_target_namespace()


def train_func(params):
    print(params["epochs"])


client = TrainingClient()
client.create_pytorchjob_from_func(
    name="mnist-v17",
    func=train_func,
    parameters={"epochs": 2},
    namespace=namespace,
    num_worker_replicas=2,
    packages_to_install=["torchvision"],
    pip_index_url="https://pypi.example.com/simple",
)
client.wait_for_job_conditions(name="mnist-v17", namespace=namespace, job_kind="PyTorchJob", timeout=900)
client.get_job_logs(name="mnist-v17", namespace=namespace, container="pytorch")
print(client.get_pytorchjob(name="mnist-v17", namespace=namespace))
client.delete_pytorchjob(name="mnist-v17", namespace=namespace)
