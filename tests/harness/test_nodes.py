"""What is written for kind, containerd and the pod network."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cluster import kind
from tests.cluster.host import Host
from tests.cluster.nodeimage import containerd_config
from tests.cluster.problems import ClusterError

FULL = Host("linux", "amd64", True, sys_resource=True, cgroup_v1=False)
BARE = Host("linux", "amd64", True, sys_resource=False, cgroup_v1=True)
CONTAINERD = """version = 2
[runtimes.runc.options]
    SystemdCgroup = true
[runtimes.other.options]
    SystemdCgroup = true
[cri]
  sandbox_image = "registry.k8s.io/pause:3.10"
  restrict_oom_score_adj = false
"""


def kubelet(config: dict[str, object]) -> dict[str, object]:
    patches = config["kubeadmConfigPatches"]
    assert isinstance(patches, list)
    found = json.loads(patches[0])
    assert isinstance(found, dict)
    return found


def test_a_full_machine_gets_kinds_own_settings() -> None:
    made = kind.config(FULL, own_network=True, workers=0, api_port=0, shared=Path("/tmp/x"))
    mount = {"hostPath": "/tmp/x", "containerPath": "/shared"}
    assert made["nodes"] == [{"role": "control-plane", "extraMounts": [mount]}]
    assert made["networking"] == {"disableDefaultCNI": False, "apiServerAddress": "127.0.0.1"}
    assert len(made["kubeadmConfigPatches"]) == 1, "kind removes the taint of a single node, and fails if there is none"
    assert set(kubelet(made)) == {"kind", "syncFrequency"}


def test_a_bare_machine_gets_a_kubelet_that_bears_with_it() -> None:
    made = kind.config(BARE, own_network=False, workers=2, api_port=6443, shared=Path("/tmp/x"))
    assert [node["role"] for node in made["nodes"]] == ["control-plane", "worker", "worker"]
    assert made["networking"]["disableDefaultCNI"] is True
    assert made["networking"]["apiServerPort"] == 6443
    assert json.loads(made["kubeadmConfigPatches"][1])["nodeRegistration"] == {"taints": []}
    assert kubelet(made)["featureGates"] == {"KubeletInUserNamespace": True}
    assert kubelet(made)["cgroupDriver"] == "cgroupfs"


def test_pods_get_addresses_of_their_nodes_range() -> None:
    plugins = kind.network("10.244.1.0/24")["plugins"]
    assert [plugin["type"] for plugin in plugins] == ["ptp", "portmap"]
    assert plugins[0]["ipam"]["ranges"] == [[{"subnet": "10.244.1.0/24"}]]


def test_containerd_on_a_full_machine_changes_in_the_pause_image_only() -> None:
    assert containerd_config(CONTAINERD, FULL) == CONTAINERD.replace("pause:3.10", "pause:3.10.1")


def test_containerd_on_a_bare_machine_starts_the_wrapper_for_every_handler() -> None:
    text = containerd_config(CONTAINERD, BARE)
    assert text.count('    SystemdCgroup = false\n    BinaryName = "/usr/local/sbin/runc-without-sys-resource"\n') == 2
    assert "restrict_oom_score_adj = true" in text


def test_a_configuration_of_another_shape_is_an_error() -> None:
    with pytest.raises(ClusterError, match="has no line like"):
        containerd_config("version = 3\n", FULL)


BORN = {"n": "2026-01-01T10:00:00Z"}


@pytest.mark.parametrize(
    ("status", "said", "ready"),
    [("True", "10:00:00", True), ("True", "09:59:59", False), ("False", "10:00:01", False)],
)
def test_a_node_is_ready_when_it_said_so_since_its_start(status: str, said: str, ready: bool) -> None:
    condition = {"type": "Ready", "status": status, "lastHeartbeatTime": f"2026-01-01T{said}Z"}
    node = {"metadata": {"name": "n"}, "status": {"conditions": [condition]}}
    assert kind.is_ready(node, BORN) is ready


def test_a_pod_that_is_said_to_run_since_before_its_node_started_is_stale() -> None:
    def pod(started: str, **metadata: str) -> dict[str, object]:
        statuses = [{"state": {"running": {"startedAt": f"2026-01-01T{started}Z"}}}]
        return {"metadata": metadata, "spec": {"nodeName": "n"}, "status": {"containerStatuses": statuses}}

    assert kind.is_stale(pod("09:00:00"), BORN)
    assert not kind.is_stale(pod("10:00:30"), BORN)
    # Nobody waits for a pod that is to go.
    assert not kind.is_stale(pod("09:00:00", deletionTimestamp="2026-01-01T11:00:00Z"), BORN)
    assert not kind.is_stale({"metadata": {}, "spec": {}, "status": {}}, BORN)
