import logging

from kubeflow.training import TrainingClient, constants

logging.basicConfig(level=logging.INFO)
NAMESPACE = "team-a"


def hello():
    print("hello")


def main() -> None:
    client = TrainingClient(job_kind=constants.PYTORCHJOB_KIND)
    client.create_job(
        name="hello",
        namespace=NAMESPACE,
        train_func=hello,
        base_image=constants.PYTORCHJOB_BASE_IMAGE,
        resources_per_worker={"cpu": "4", "memory": "8Gi"},
    )
    job = client.wait_for_job_conditions(
        "hello",
        namespace=NAMESPACE,
        expected_conditions={constants.JOB_CONDITION_SUCCEEDED, constants.JOB_CONDITION_FAILED},
        polling_interval=5,
    )
    if client.is_job_failed(job=job):
        raise SystemExit("failed")
    print(job.metadata.name, "took until", job.status.completion_time)


if __name__ == "__main__":
    main()
