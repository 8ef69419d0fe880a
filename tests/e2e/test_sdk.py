"""Kubeflow's own TrainerClient on our runtimes, on the real cluster."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.e2e.kube import Kubectl
from tests.e2e.test_training import stand_ins
from trainjob.catalog import catalog

__all__ = ["stand_ins"]


def train_func(steps: int) -> None:
    """Runs in the pods: the SDK sends its source."""
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    total = torch.ones(1)
    dist.all_reduce(total)
    print(f"trained {steps} steps in world {int(total.item())}", flush=True)
    dist.destroy_process_group()


@pytest.mark.ci
@pytest.mark.sdk
@pytest.mark.usefixtures("stand_ins")
def test_trainer_client(kubectl: Kubectl, seen: Callable[[str], None]) -> None:
    """TrainerClient: list_runtimes, get_runtime, train with CustomTrainer, wait, logs, delete."""
    from kubeflow.trainer import CustomTrainer, KubernetesBackendConfig, TrainerClient

    client = TrainerClient(
        backend_config=KubernetesBackendConfig(namespace=kubectl.namespace, config_file=str(kubectl.kubeconfig))
    )
    names = {r.name for r in client.list_runtimes()}
    assert set(catalog()) <= names
    runtime = client.get_runtime("torch-fsdp-cpu")
    trainer = CustomTrainer(
        func=train_func,
        func_args={"steps": 3},
        num_nodes=1,
        resources_per_node={"cpu": "300m", "memory": "1Gi"},
        env={"OMP_NUM_THREADS": "1"},
    )
    name = client.train(runtime=runtime, trainer=trainer)
    client.wait_for_job_status(name, timeout=300)
    log = "\n".join(client.get_job_logs(name))
    assert "trained 3 steps in world" in log
    assert client.get_job(name).status == "Complete"
    client.delete_job(name)
    kubectl.wait_for("the job is gone", lambda: kubectl.list("trainjobs") == [], 60)
    seen(f"{len(names)} runtimes listed, one job trained")
