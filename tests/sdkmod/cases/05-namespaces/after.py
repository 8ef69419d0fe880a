"""A small service around the client."""

from __future__ import annotations

from typing import Optional

from kubeflow.trainer import KubernetesBackendConfig, TrainerClient


class Jobs:
    def __init__(self, client: Optional[TrainerClient] = None) -> None:
        self.client = client or TrainerClient()

    def state(self, name: str, namespace: str) -> str:
        # TODO(trainjob): TJ703 this call goes to the namespace `namespace`, by a client that is
        #   made here, for it cannot be told how the other one was made; give it the context and
        #   configuration of the other client, or make one client per namespace
        if TrainerClient(backend_config=KubernetesBackendConfig(namespace=namespace)).get_job(name=name).status == "Complete":
            return "done"
        # TODO(trainjob): TJ703 this call goes to the namespace `namespace`, by a client that is
        #   made here, for it cannot be told how the other one was made; give it the context and
        #   configuration of the other client, or make one client per namespace
        if TrainerClient(backend_config=KubernetesBackendConfig(namespace=namespace)).get_job(name=name).status == "Failed" or not TrainerClient(backend_config=KubernetesBackendConfig(namespace=namespace)).get_job(name=name).status in {"Created", "Running", "Complete", "Failed"}:
            return "failed"
        return "running"

    def clean(self, namespace: str) -> None:
        # TODO(trainjob): TJ703 this call goes to the namespace `namespace`, by a client that is
        #   made here, for it cannot be told how the other one was made; give it the context and
        #   configuration of the other client, or make one client per namespace
        for job in TrainerClient(backend_config=KubernetesBackendConfig(namespace=namespace)).list_jobs():
            # TODO(trainjob): TJ703 this call goes to the namespace `namespace`, by a client that is
            #   made here, for it cannot be told how the other one was made; give it the context and
            #   configuration of the other client, or make one client per namespace
            TrainerClient(backend_config=KubernetesBackendConfig(namespace=namespace)).delete_job(
                name=job.name,
            )


def names(client: TrainerClient) -> list[str]:
    return [job.name for job in client.list_jobs()]


if __name__ == "__main__":
    print(names(TrainerClient(backend_config=KubernetesBackendConfig(namespace="team-b"))))
    print(Jobs().state("mnist", "team-a"))
