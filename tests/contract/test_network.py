"""The network components: what each changes, and that each variable is explained."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tools import check_overlays as policy
from trainjob.kube.yaml import load
from trainjob.kustomize import Engine, build

pytestmark = pytest.mark.kubectl

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "overlays/examples/multi-node-roce"
MULTI = "torch-fsdp-multinode"
POD = "/spec/template/spec/replicatedJobs/node/template/spec/template"
NODE = f"{POD}/spec/containers/node"
NETWORKS = f"{POD}/metadata/annotations/k8s.v1.cni.cncf.io~1networks"
BOTH = {"NCCL_SOCKET_IFNAME": "=eth0", "GLOO_SOCKET_IFNAME": "eth0"}
# component -> (variables, device, network attachment)
COMPONENTS: dict[str, tuple[dict[str, str], str, str]] = {
    "network-tcp": ({**BOTH, "NCCL_IB_DISABLE": "1"}, "", ""),
    "network-roce": (
        {**BOTH, "NCCL_NET": "IB", "NCCL_IB_HCA": "=mlx5_1", "NCCL_IB_ADDR_RANGE": "192.168.100.0/24"},
        "rdma/rdma_shared_device_a", "rdma-net",
    ),
    "network-ib": ({**BOTH, "NCCL_NET": "IB", "NCCL_IB_HCA": "=mlx5_0,mlx5_1"}, "rdma/hca_shared_devices_a", "ib-net"),
    "nccl-gdr": ({"NCCL_NET_GDR_LEVEL": "PHB"}, "", ""),
    "nccl-debug": (
        {
            "NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,BOOTSTRAP,ENV,NET", "TORCH_FR_BUFFER_SIZE": "20000",
            "TORCH_NCCL_ENABLE_TIMING": "1", "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC": "60000",
        }, "", "",
    ),
}  # fmt: skip

Golden = Callable[[Path | str, str | bytes], None]


@pytest.fixture
def shop(newest_engine: Engine, tmp_path: Path) -> policy.Workshop:
    return policy.Workshop(policy.Repository(ROOT), tmp_path, newest_engine)


def leaves(shop: policy.Workshop, *components: str) -> dict[str, dict[str, Any]]:
    """Paths and values of each runtime, rendered with these components."""
    docs = policy.objects(shop.render(shop.probe(*components)))
    return {d["metadata"]["name"]: dict(policy.leaves(d)) for d in docs if d["kind"] == policy.KIND}


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_component_changes_this_and_nothing_else(shop: policy.Workshop, component: str) -> None:
    """On the multi-node runtime alone; `nccl-debug` on every NVIDIA FSDP runtime."""
    env, device, network = COMPONENTS[component]
    before, after = leaves(shop), leaves(shop, component)
    changed = {name for name in before if before[name] != after[name]}
    wide = {n for n in before if n.startswith("torch-fsdp-") and n != "torch-fsdp-cpu"}
    assert changed == (wide if component == "nccl-debug" else {MULTI})
    expected = {f"{NODE}/env/{n}/value": v for n, v in env.items()}
    expected |= {f"{NODE}/env/{n}/name": n for n in env if n != "NCCL_DEBUG"}
    if device:
        expected |= {f"{NODE}/resources/{k}/{device.replace('/', '~1')}": "1" for k in ("requests", "limits")}
    if network:
        expected[NETWORKS] = network
    for name in changed:
        new = {path: v for path, v in after[name].items() if before[name].get(path, ...) != v}
        assert new == expected
        assert before[name].keys() <= after[name].keys()


def test_no_component_adds_a_capability() -> None:
    """IPC_LOCK has no effect for a user other than root (tests/e2e/test_network.py)."""
    for name in COMPONENTS:
        text = (ROOT / "overlays/components" / name / "kustomization.yaml").read_text("utf-8")
        values = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
        assert "IPC_LOCK" not in values
        assert "securityContext" not in values


def test_every_variable_has_a_row() -> None:
    """In the table of docs/howto/network.md, with what the component sets."""
    guide = (ROOT / "docs/howto/network.md").read_text("utf-8")
    for component, (env, _, _) in COMPONENTS.items():
        for name in env:
            row = next((line for line in guide.splitlines() if line.startswith(f"| `{name}` |")), "")
            assert row, name
            assert component in row or f"{component.split('-')[0]}-*" in row, (component, row)


def test_names_of_the_user_are_marked() -> None:
    """`network-roce` and `network-ib` say which lines are to be edited, and no other names are there."""
    for component in ("network-roce", "network-ib"):
        file = ROOT / "overlays/components" / component / "kustomization.yaml"
        text = file.read_text("utf-8")
        assert text.count("# Yours: ") == (4 if component == "network-roce" else 3)
        (layer,) = load(text)
        assert re.findall(r"mlx5_\d", json.dumps(layer.data))


def test_example(newest_engine: Engine, oldest_engine: Engine, golden: Golden) -> None:
    """The RoCE overlay renders as reviewed, alike on the oldest and the newest engine."""
    rendered = build(EXAMPLE, newest_engine)
    golden("overlays/examples-multi-node-roce.yaml", rendered)
    assert build(EXAMPLE, oldest_engine) == rendered
    names = {d["metadata"]["name"] for d in policy.objects(rendered)}
    assert {MULTI, "torch-v1-compat-multinode", "torch-fsdp-8gpu"} <= names


def test_all_together_render_alike(shop: policy.Workshop, oldest_engine: Engine) -> None:
    """Components after each other: no variable twice, and the guards of one hold after another."""
    name = shop.probe("gpu-tolerations", "network-roce", "nccl-gdr", "nccl-debug", "registry")
    newest = shop.render(name)
    shop.engine = oldest_engine
    assert shop.render(name) == newest
    for doc in policy.objects(newest):
        pod = doc["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
        names = [e["name"] for e in pod["containers"][0].get("env", [])]
        assert len(names) == len(set(names)), doc["metadata"]["name"]
