"""A small service around the client."""

from __future__ import annotations

from typing import Optional

from kubeflow.training import TrainingClient


class Jobs:
    def __init__(self, client: Optional[TrainingClient] = None) -> None:
        self.client = client or TrainingClient()

    def state(self, name: str, namespace: str) -> str:
        if self.client.is_job_succeeded(name, namespace=namespace):
            return "done"
        if self.client.is_job_failed(name=name, namespace=namespace) or not self.client.is_job_created(name, namespace):
            return "failed"
        return "running"

    def clean(self, namespace: str) -> None:
        for job in self.client.list_jobs(namespace=namespace):
            self.client.delete_job(job.metadata.name, namespace=namespace)


def names(client: TrainingClient) -> list[str]:
    return [job.metadata.name for job in client.list_jobs(timeout=30)]


if __name__ == "__main__":
    print(names(TrainingClient(namespace="team-b")))
    print(Jobs().state("mnist", "team-a"))
