"""Jobs that really train: every runtime, one node and two."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.kube import Kubectl
from trainjob import kustomize
from trainjob.builder import train_job
from trainjob.kube.yaml import load

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", autouse=True)
def stand_ins(cluster: Kubectl) -> None:
    """The runtimes of prod with a CPU image and small sizes, nothing else changed."""
    cluster.install(kustomize.build(ROOT / "overlays/kind-multi-node").decode())


def small(job: dict[str, Any], kubectl: Kubectl, runtime: str) -> dict[str, Any]:
    """A built job with the sizes of the kind overlay, and the programs mounted."""
    limits = kubectl.get("clustertrainingruntime", runtime)["spec"]["template"]["spec"]["replicatedJobs"][0]
    resources = limits["template"]["spec"]["template"]["spec"]["containers"][0].get("resources")
    trainer = job["spec"]["trainer"]
    trainer.pop("resourcesPerNode", None)
    if resources:
        trainer["resourcesPerNode"] = resources
    patch = {
        "volumes": [{"name": "programs", "configMap": {"name": "programs"}}],
        "containers": [{"name": "node", "volumeMounts": [{"name": "programs", "mountPath": "/programs"}]}],
    }
    job["spec"]["runtimePatches"] = [
        {
            "manager": "trainjob.dev/e2e",
            "trainingRuntimeSpec": {
                "template": {
                    "spec": {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": {"spec": patch}}}}]}
                }
            },
        }
    ]
    return job


RUNTIMES = [
    pytest.param("torch-fsdp-cpu", marks=pytest.mark.ci),
    pytest.param("torch-fsdp-1gpu", marks=pytest.mark.full),
    pytest.param("torch-fsdp-2gpu", marks=pytest.mark.full),
    pytest.param("torch-fsdp-4gpu", marks=pytest.mark.full),
    pytest.param("torch-fsdp-8gpu", marks=pytest.mark.ci),
    pytest.param("torch-lora-1gpu", marks=pytest.mark.full),
]


@pytest.mark.trainer
@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_single_node_fsdp(kubectl: Kubectl, runtime: str, seen: Callable[[str], None]) -> None:
    """A single-node runtime runs a real FSDP training of two processes to Complete."""
    built = train_job(name="fsdp", runtime=runtime, command=["torchrun", "/programs/fsdp.py"], procs_per_node=2)
    kubectl.apply([small(built.to_dict(), kubectl, runtime)])
    assert kubectl.finished("fsdp") == "Complete"
    log = kubectl.logs("fsdp")
    assert "done world=2" in log
    losses = [float(x) for x in re.findall(r"loss ([0-9.]+)", log)]
    assert losses[-1] < losses[0]
    seen(f"loss {losses[0]:.2f} to {losses[-1]:.2f}, 2 processes")


@pytest.mark.ci
@pytest.mark.trainer
@pytest.mark.usefixtures("programs")
def test_two_nodes_fsdp(kubectl: Kubectl, seen: Callable[[str], None]) -> None:
    """The gated multi-node runtime, chosen by its component, trains on two nodes to Complete."""
    runtime = "torch-fsdp-multinode"
    built = train_job(
        name="two", runtime=runtime, nodes=2, allow_multi_node="the test of several nodes", procs_per_node=1,
        command=["torchrun", "/programs/fsdp.py"],
    )  # fmt: skip
    kubectl.apply([small(built.to_dict(), kubectl, runtime)])
    assert kubectl.finished("two", seconds=360) == "Complete"
    assert "done world=2" in kubectl.logs("two")
    assert len(kubectl.pods("two")) == 2
    seen("2 pods, world size 2")


@pytest.mark.ci
@pytest.mark.trainer
@pytest.mark.usefixtures("programs")
def test_restricted_namespace_with_a_random_user(
    kubectl: Kubectl, cluster: Kubectl, seen: Callable[[str], None]
) -> None:
    """Pod Security `restricted` and a high user id, as OpenShift assigns one: the job trains."""
    cluster.run("label", "namespace", kubectl.namespace, "pod-security.kubernetes.io/enforce=restricted")
    runtime = "torch-fsdp-cpu"
    built = train_job(name="random", runtime=runtime, command=["torchrun", "/programs/fsdp.py"], procs_per_node=2)
    job = small(built.to_dict(), kubectl, runtime)
    pod = job["spec"]["runtimePatches"][0]["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"][0]
    pod["template"]["spec"]["template"]["spec"]["securityContext"] = {
        "runAsUser": 1000740000,
        "fsGroup": 1000740000,
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    kubectl.apply([job])
    assert kubectl.finished("random") == "Complete"
    assert "uid=1000740000" in kubectl.logs("random")
    seen("uid 1000740000")


@pytest.mark.ci
def test_kind_differs_from_prod_in_image_and_sizes_only() -> None:
    """What runs here is what prod installs: same GPU counts, same everything but image and sizes."""
    prod = load(kustomize.build(ROOT / "overlays/prod-multi-node").decode())
    kind = load(kustomize.build(ROOT / "overlays/kind-multi-node").decode())

    def gpus(docs: list[Any]) -> dict[str, Any]:
        out = {}
        for doc in docs:
            if doc.data["kind"] != "ClusterTrainingRuntime":  # the gate
                out[doc.data["metadata"]["name"]] = doc.data
                continue
            pod = doc.data["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
            limits = pod["containers"][0].get("resources", {}).get("limits", {})
            out[doc.data["metadata"]["name"]] = limits.get("nvidia.com/gpu")
        return out

    assert gpus(prod) == gpus(kind)
