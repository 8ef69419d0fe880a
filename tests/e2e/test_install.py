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
    first = apply(cluster, text)
    names = [d.data["metadata"]["name"] for d in load(text)]
    versions = {n: cluster.get("clustertrainingruntime", n)["metadata"]["resourceVersion"] for n in names}
    apply(cluster, text)
    again = {n: cluster.get("clustertrainingruntime", n)["metadata"]["resourceVersion"] for n in names}
    assert first.count("serverside-applied") == len(names)
    assert again == versions
    diff = cluster.run("diff", "--server-side", "-f", "-", stdin=text, check=False)
    assert diff.strip() == ""
    seen(f"{len(names)} runtimes, no difference")


@pytest.mark.ci
def test_prod_holds_no_multi_node_runtime() -> None:
    """The gated runtimes come only through the overlay that chooses their component."""
    prod = {d.data["metadata"]["name"] for d in load(kustomize.build(ROOT / "overlays/prod").decode())}
    multi = {d.data["metadata"]["name"] for d in load(kustomize.build(ROOT / "overlays/prod-multi-node").decode())}
    assert multi - prod == {"torch-fsdp-multinode", "torch-v1-compat-multinode"}
