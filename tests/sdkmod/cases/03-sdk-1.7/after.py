# Written for kubeflow-training==1.7.0
from kubeflow.common.utils import get_default_target_namespace
from kubeflow.trainer import CustomTrainer, KubernetesBackendConfig, TrainerClient
from kubeflow.trainer.options import Name

namespace = get_default_target_namespace()


def train_func(params):
    print(params["epochs"])


client = TrainerClient(backend_config=KubernetesBackendConfig(namespace=namespace))
client.train(
    runtime="torch-distributed",
    trainer=CustomTrainer(
        func=train_func,
        func_args={"params": {"epochs": 2}},
        packages_to_install=["torchvision"],
        pip_index_urls=["https://pypi.example.com/simple"],
        num_nodes=3,
    ),
    options=[Name(name="mnist-v17")],
)
client.wait_for_job_status(name="mnist-v17", timeout=900)
for line in client.get_job_logs(name="mnist-v17", step="node-0"):
    print(line)
print(client.get_job(name="mnist-v17"))
client.delete_job(name="mnist-v17")
