"""A pipeline whose step trains with the v1 SDK."""

from kfp import compiler, dsl


@dsl.component(base_image="python:3.11", packages_to_install=["kubeflow-training>=1.8.0", "kubernetes<31"])
def train_step(name: str, image: str, workers: int = 2):
    from kubeflow.training import TrainingClient

    client = TrainingClient()
    client.create_job(
        name=name,
        base_image=image,
        num_workers=workers,
        resources_per_worker={"gpu": "1"},
    )
    client.wait_for_job_conditions(name=name, wait_timeout=7200, polling_interval=30)
    for pod, text in client.get_job_logs(name=name)[0].items():
        print(pod, text)


@dsl.pipeline(name="train")
def pipeline(image: str):
    train_step(name="from-a-pipeline", image=image)


if __name__ == "__main__":
    compiler.Compiler().compile(pipeline, "pipeline.yaml")
