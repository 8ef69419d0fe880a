import logging

from kubeflow.trainer import CustomTrainer, KubernetesBackendConfig, TrainerClient
from kubeflow.trainer.options import Name

logging.basicConfig(level=logging.INFO)
NAMESPACE = "team-a"


def hello():
    print("hello")


def main() -> None:
    client = TrainerClient(backend_config=KubernetesBackendConfig(namespace=NAMESPACE))
    # TODO(trainjob): TJ705 v1 started 1 process in a pod with python (kubeflow-training 1.9), v2
    #   starts 4; CustomTrainer cannot set numProcPerNode: ask for 1 CPU, or create the TrainJob
    #   itself with spec.trainer.numProcPerNode
    client.train(
        runtime="torch-distributed",
        trainer=CustomTrainer(
            func=hello,
            image="pytorch/pytorch:2.1.2-cuda11.8-cudnn8-runtime",
            num_nodes=1,
            resources_per_node={"cpu": "4", "memory": "8Gi"},
        ),
        options=[Name(name="hello")],
    )
    job = client.wait_for_job_status(
        name="hello",
        status={"Complete", "Failed"},
        polling_interval=5,
    )
    if job.status == "Failed":
        raise SystemExit("failed")
    # TODO(trainjob): TJ713 status.completion_time of the job is not there any more; status is one
    #   word (Created, Running, Complete, Failed); the whole object:
    #   client.backend.custom_api.get_namespaced_custom_object
    print(job.name, "took until", job.status.completion_time)


if __name__ == "__main__":
    main()
