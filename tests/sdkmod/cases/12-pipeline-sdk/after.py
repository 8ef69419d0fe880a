"""A pipeline whose step trains with the v1 SDK."""

from kfp import compiler, dsl


@dsl.component(base_image="python:3.11", packages_to_install=["kubeflow>=0.5,<0.6", "kubernetes<31"])
def train_step(name: str, image: str, workers: int = 2):
    from kubeflow.trainer import CustomTrainerContainer, TrainerClient
    from kubeflow.trainer.options import Name

    client = TrainerClient()
    client.train(
        runtime="torch-v1-compat-multinode",
        trainer=CustomTrainerContainer(
            image=image,
            num_nodes=workers,
            resources_per_node={"gpu": "1"},
        ),
        options=[Name(name=name)],
    )
    client.wait_for_job_status(name=name, timeout=7200, polling_interval=30)
    for pod, text in {"node-0": "\n".join(client.get_job_logs(name=name, step="node-0"))}.items():
        print(pod, text)


@dsl.pipeline(name="train")
def pipeline(image: str):
    train_step(name="from-a-pipeline", image=image)


if __name__ == "__main__":
    compiler.Compiler().compile(pipeline, "pipeline.yaml")
