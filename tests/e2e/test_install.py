"""The runtimes reach a cluster through their overlays, and stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.kube import Kubectl
from trainjob import kustomize
from trainjob.kube.yaml import load

ROOT = Path(__file__).parents[2]


def apply(cluster: Kubectl, text: str) -> str:
    return cluster.run("apply", "--server-side", "--validate=strict", "-f", "-", stdin=text)


@pytest.mark.ci
@pytest.mark.parametrize("overlay", ["prod", "prod-multi-node"])
def test_applied_twice_without_drift(cluster: Kubectl, overlay: str, seen: Callable[[str], None]) -> None:
    """`kustomize build overlays/X | kubectl apply --server-side -f -` works, and again changes nothing."""
    text = kustomize.build(ROOT / "overlays" / overlay).decode()
    cluster.install(text)
    first = apply(cluster, text)
    names = [(d.data["kind"], d.data["metadata"]["name"]) for d in load(text)]

    def state() -> list[object]:
        # The API server writes the status of a policy later, so of those the generation counts.
        found = [(kind, cluster.get(kind, name)["metadata"]) for kind, name in names]
        return [m["resourceVersion" if kind == "ClusterTrainingRuntime" else "generation"] for kind, m in found]

    versions = state()
    apply(cluster, text)
    assert first.count("serverside-applied") == len(names)
    assert state() == versions
    diff = cluster.run("diff", "--server-side", "-f", "-", stdin=text, check=False)
    assert diff.strip() == ""
    runtimes = [name for kind, name in names if kind == "ClusterTrainingRuntime"]
    seen(f"{len(runtimes)} runtimes and {len(names) - len(runtimes)} objects of the gate, no difference")


@pytest.mark.ci
def test_prod_holds_no_multi_node_runtime() -> None:
    """The gated runtimes come only through the overlay that chooses their component."""
    prod = {d.data["metadata"]["name"] for d in load(kustomize.build(ROOT / "overlays/prod").decode())}
    multi = {d.data["metadata"]["name"] for d in load(kustomize.build(ROOT / "overlays/prod-multi-node").decode())}
    assert multi - prod == {"torch-fsdp-multinode", "torch-v1-compat-multinode"}
