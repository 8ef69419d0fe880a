from kubeflow.trainer import CustomTrainer, KubernetesBackendConfig, TrainerClient
from kubeflow.trainer.options import Name as TrainerName
from kubeflow.trainer import TrainerClient as TC


class Name:
    """Something of our own that has a name of the new SDK."""


def get_client():
    return TrainerClient(backend_config=KubernetesBackendConfig(namespace="team-a"))


def job(**config):
    print(config)


def submit(client, workers: int):
    client.train(
        runtime="torch-distributed",
        trainer=CustomTrainer(
            func=job,
            image="registry.example.com/train:1",
            num_nodes=workers,
            resources_per_node={"gpu": 1},
        ),
        options=[TrainerName(name="alias")],
    )
    return client.wait_for_job_status(name="alias")


submit(get_client(), workers=3)
if (other := TC(backend_config=KubernetesBackendConfig(namespace="team-a"))).get_job(name="alias").status == "Complete": other.delete_job(name="alias")
checked: "TrainerClient" = TrainerClient()
print(checked.backend.namespace, checked.backend.core_api)
