import kubeflow.training as kt
from kubeflow.training import TrainingClient as TC
from kubeflow.training.api.training_client import TrainingClient


class Name:
    """Something of our own that has a name of the new SDK."""


def get_client():
    return kt.TrainingClient(None, None, None, "team-a")


def job(**config):
    print(config)


def submit(client, workers: int):
    client.create_job(
        name="alias",
        train_func=job,
        num_workers=workers,
        resources_per_worker={"gpu": 1},
        base_image="registry.example.com/train:1",
    )
    return client.wait_for_job_conditions("alias")


submit(get_client(), workers=3)
if (other := TC(namespace="team-a")).is_job_succeeded("alias"): other.delete_job("alias")
checked: "TrainingClient" = TrainingClient()
print(checked.namespace, checked.core_api)
