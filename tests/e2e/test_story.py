"""The story that this project exists for: a job Suspended in a queue, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.e2e.kube import TRAIN_IMAGE, Kubectl
from tests.e2e.test_training import stand_ins
from trainjob.kube.yaml import dump, load
from trainjob.migrate import migrate_text

__all__ = ["stand_ins"]

QUOTA = 4
RESOURCES = ("cpu", "memory", "nvidia.com/gpu", "ephemeral-storage")


@pytest.fixture
def queue(kubectl: Kubectl, cluster: Kubectl) -> Iterator[str]:
    """A ClusterQueue of 4 GPUs and a LocalQueue `team` in the test's namespace."""
    name = kubectl.namespace
    quotas = {"cpu": "64", "memory": "256Gi", "nvidia.com/gpu": str(QUOTA), "ephemeral-storage": "500Gi"}
    flavor = {"name": name, "resources": [{"name": r, "nominalQuota": quotas[r]} for r in RESOURCES]}
    api = "kueue.x-k8s.io/v1beta2"
    objects: list[dict[str, Any]] = [
        {"apiVersion": api, "kind": "ResourceFlavor", "metadata": {"name": name}},
        {
            "apiVersion": api,
            "kind": "ClusterQueue",
            "metadata": {"name": name},
            "spec": {
                "namespaceSelector": {},
                "resourceGroups": [{"coveredResources": list(RESOURCES), "flavors": [flavor]}],
            },
        },
        {
            "apiVersion": api,
            "kind": "LocalQueue",
            "metadata": {"name": "team", "namespace": name},
            "spec": {"clusterQueue": name},
        },
    ]
    kubectl.apply(objects)
    yield "team"
    kubectl.run("delete", "trainjobs,pytorchjobs", "--all", check=False)
    cluster.run("delete", "clusterqueue,resourceflavor", name, "--wait=false", check=False)


def v1_job(workers: int) -> dict[str, Any]:
    """Master 1 + Workers at 2 GPUs, plain python, as people write it."""
    role = {
        "restartPolicy": "OnFailure",
        "template": {
            "spec": {
                "containers": [
                    {
                        "name": "pytorch",
                        "image": TRAIN_IMAGE,
                        "command": ["python", "/programs/env.py"],
                        "resources": {"limits": {"nvidia.com/gpu": "2", "cpu": "300m", "memory": "1Gi"}},
                        "volumeMounts": [{"name": "programs", "mountPath": "/programs"}],
                    }
                ],
                "volumes": [{"name": "programs", "configMap": {"name": "programs"}}],
            }
        },
    }
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "sft", "labels": {"kueue.x-k8s.io/queue-name": "team"}},
        "spec": {
            "pytorchReplicaSpecs": {"Master": {"replicas": 1, **role}, "Worker": {"replicas": workers, **role}},
        },
    }


def why_waiting(kubectl: Kubectl) -> str:
    """What Kueue's Workload says of the quota."""
    for workload in kubectl.list("workloads.kueue.x-k8s.io"):
        for condition in workload.get("status", {}).get("conditions", []):
            if condition["type"] == "QuotaReserved" and condition["status"] == "False":
                return str(condition["message"])
    return ""


@pytest.mark.ci
@pytest.mark.queue
@pytest.mark.usefixtures("stand_ins", "programs", "queue")
def test_suspended_for_one_pod_too_many(kubectl: Kubectl, seen: Callable[[str], None]) -> None:
    """Master 1 + Worker 2 at 2 GPUs under a quota of 4: Suspended in v1; migrate says 6 GPUs; v2's
    Workload says the same; the two-pod form is admitted and trains."""
    job = v1_job(workers=2)
    kubectl.apply([job])
    kubectl.wait_for("the PyTorchJob is suspended", lambda: kubectl.condition("pytorchjob", "sft", "Suspended"), 60)
    v1_says = kubectl.wait_for("v1's Workload says why", lambda: why_waiting(kubectl), 60)
    assert "insufficient quota for nvidia.com/gpu" in v1_says

    result = migrate_text(dump(job))
    told = next(f.message for f in result.findings if f.code == "TJ101")
    assert "3 pods x 2 GPUs = 6 GPUs" in told

    kubectl.run("delete", "pytorchjob", "sft")
    kubectl.wait_for("its Workload is gone", lambda: not kubectl.list("workloads.kueue.x-k8s.io"), 60)
    kubectl.apply(result.text)
    v2_says = kubectl.wait_for("v2's Workload says why", lambda: why_waiting(kubectl), 60)
    assert "request (6) > maximum capacity (4)" in v2_says

    kubectl.run("delete", "trainjob", "sft")
    kubectl.wait_for("its Workload is gone", lambda: not kubectl.list("workloads.kueue.x-k8s.io"), 60)
    smaller = migrate_text(dump(v1_job(workers=1)))
    kubectl.apply(smaller.text)
    assert kubectl.finished("sft", seconds=300) == "Complete"
    assert "rank 0 of 2 sum 1" in kubectl.logs("sft")
    assert [d.data["kind"] for d in load(smaller.text)] == ["TrainJob"]
    seen(f"v1: {v1_says[-60:]}; v2: 6 > 4; two pods trained")
