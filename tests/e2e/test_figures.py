"""What Trainer costs: the same program as a TrainJob, a PyTorchJob and a bare Job, in one run."""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.kube import TRAIN_IMAGE, Kubectl
from tests.e2e.test_training import stand_ins
from trainjob.kube.yaml import dump
from trainjob.migrate import migrate_text

__all__ = ["stand_ins"]

CONTAINER: dict[str, Any] = {
    "image": TRAIN_IMAGE,
    "command": ["python", "/programs/first.py"],
    "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "256Mi"}},
    "volumeMounts": [{"name": "programs", "mountPath": "/programs"}],
}
VOLUMES = [{"name": "programs", "configMap": {"name": "programs"}}]


def pytorch_job(name: str) -> dict[str, Any]:
    pod = {"containers": [{"name": "pytorch", **CONTAINER}], "volumes": VOLUMES}
    role = {"replicas": 1, "restartPolicy": "Never", "template": {"spec": pod}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name},
        "spec": {"pytorchReplicaSpecs": {"Master": {**role, "restartPolicy": "OnFailure"}}},
    }


def bare_job(name: str) -> dict[str, Any]:
    pod = {"restartPolicy": "Never", "containers": [{"name": "node", **CONTAINER}], "volumes": VOLUMES}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"backoffLimit": 0, "template": {"spec": pod}},
    }


def first_step(kubectl: Kubectl, text: str, selector: str) -> float:
    """Seconds from `kubectl apply` to the line that the program prints."""
    start = time.monotonic()
    kubectl.run("apply", "--server-side", "-f", "-", stdin=text)

    def printed() -> bool:
        return "first step" in kubectl.run("logs", "-l", selector, "--tail=5", check=False)

    kubectl.wait_for(f"first step of {selector}", printed, 120)
    return time.monotonic() - start


@pytest.mark.ci
@pytest.mark.trainer
@pytest.mark.usefixtures("programs", "stand_ins")
def test_submit_to_first_step(kubectl: Kubectl, seen: Callable[[str], None]) -> None:
    """From submit to the first training step: TrainJob (migrated), PyTorchJob and bare Job, 3 each,
    one after the other; the TrainJob is there within 30 s."""
    took: dict[str, list[float]] = {"TrainJob": [], "PyTorchJob": [], "Job": []}
    for i in range(3):
        migrated = migrate_text(dump(pytorch_job(f"v2-{i}"))).text
        took["TrainJob"].append(first_step(kubectl, migrated, f"jobset.sigs.k8s.io/jobset-name=v2-{i}"))
        took["PyTorchJob"].append(
            first_step(kubectl, dump(pytorch_job(f"v1-{i}")), f"training.kubeflow.org/job-name=v1-{i}")
        )
        took["Job"].append(first_step(kubectl, dump(bare_job(f"job-{i}")), f"batch.kubernetes.io/job-name=job-{i}"))
    medians = {kind: statistics.median(times) for kind, times in took.items()}
    assert medians["TrainJob"] < 30
    seen(", ".join(f"{kind} {seconds:.1f} s" for kind, seconds in medians.items()) + " (median of 3)")


@pytest.mark.ci
def test_idle_memory(cluster: Kubectl, seen: Callable[[str], None]) -> None:
    """The cluster with all managers stays below 3 GB: the resident memory of all processes in all nodes."""
    total = 0.0
    nodes = [node["metadata"]["name"] for node in cluster.list("nodes")]
    for node in nodes:
        done = subprocess.run(
            ["docker", "exec", node, "sh", "-c", "ps -eo rss= | awk '{s+=$1} END {print s}'"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        total += int(done.stdout) * 1024 / 1e9
    assert total < 3, f"{total:.2f} GB resident in {nodes}"
    seen(f"{total:.2f} GB resident in all processes of {len(nodes)} nodes")
