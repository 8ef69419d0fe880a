"""The kind cluster itself: create, delete, start again, network, kubeconfig, images, fake GPUs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from . import binaries, container
from .context import Context
from .host import Host
from .problems import ClusterError
from .shell import tail
from .versions import KIND

T = TypeVar("T")

GPU: Final = "nvidia.com/gpu"
# In every node the same folder: what a file server is in a real cluster.
SHARED: Final = "/shared"
_CNI_FILE: Final = "/etc/cni/net.d/10-kind.conflist"
_IMAGE_LABEL: Final = "dev.trainjob.image"
_MANAGED: Final = "io.cri-containerd.image=managed"
# A layer is needed once, unpacked: halves what a large image takes.
_DISCARD: Final = "--discard-unpacked-layers"


@dataclass(frozen=True, slots=True)
class Node:
    """A node's container."""

    name: str
    running: bool


def nodes(ctx: Context) -> list[Node]:
    """The containers of the cluster, the control plane first; empty when there is no such cluster."""
    listed = ctx.sh.run(
        "docker", "ps", "--all", "--filter", f"label=io.x-k8s.kind.cluster={ctx.name}",
        "--format", '{{.Names}}\t{{.State}}',
    ).out  # fmt: skip
    pairs = [line.split("\t") for line in listed.splitlines() if line]
    found = [Node(name, state == "running") for name, state in pairs]
    return sorted(found, key=lambda node: (not node.name.endswith("-control-plane"), node.name))


def config(host: Host, own_network: bool, workers: int, api_port: int, shared: Path) -> dict[str, Any]:
    """kind's configuration. `shared` is a folder of this machine that every node mounts at /shared."""
    kubelet: dict[str, Any] = {
        "kind": "KubeletConfiguration",
        # A manager's certificate reaches its pod with the next sync: soon, for managers that are ready soon.
        "syncFrequency": "10s",
    }
    if host.cgroup_v1:
        kubelet |= {"failCgroupV1": False, "cgroupDriver": "cgroupfs"}
    if not host.sys_resource:
        kubelet["featureGates"] = {"KubeletInUserNamespace": True}
    networking: dict[str, Any] = {"disableDefaultCNI": not own_network, "apiServerAddress": "127.0.0.1"}
    if api_port:
        networking["apiServerPort"] = api_port
    patches = [json.dumps(kubelet)]
    if workers:
        # The control plane takes jobs too, a laptop has no machine to spare. Alone it does anyway: there kind
        # itself removes the taint, and fails when it finds none.
        patches.append(json.dumps({"kind": "InitConfiguration", "nodeRegistration": {"taints": []}}))
    mounts = [{"hostPath": str(shared), "containerPath": SHARED}]
    roles = ["control-plane", *["worker"] * workers]
    return {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "networking": networking,
        "kubeadmConfigPatches": patches,
        "nodes": [{"role": role, "extraMounts": mounts} for role in roles],
    }


def network(pod_cidr: str) -> dict[str, Any]:
    """The CNI configuration of one node: a pair of interfaces a pod, addresses from the node's range."""
    ranges = [[{"subnet": pod_cidr}]]
    return {
        "cniVersion": "0.4.0",
        "name": "kind",
        "plugins": [
            {
                "type": "ptp",
                "ipMasq": False,
                "mtu": 1500,
                "ipam": {
                    "type": "host-local",
                    "dataDir": "/run/cni-ipam-state",
                    "routes": [{"dst": "0.0.0.0/0"}],
                    "ranges": ranges,
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }


def create(ctx: Context, image: str, own_network: bool, workers: int, api_port: int) -> None:
    """Creates the cluster. On failure it says what the kubelet said, and leaves nothing."""
    file = ctx.folder / "kind.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    ctx.shared.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(config(ctx.host, own_network, workers, api_port, ctx.shared), indent=1))
    made = ctx.sh.run(
        _kind(ctx), "create", "cluster", "--name", ctx.name, "--image", image, "--config", file,
        "--kubeconfig", ctx.kubeconfig, "--retain", "--wait", "0s", timeout=600, check=False, bound=True,
    )  # fmt: skip
    if not made.ok:
        words = tail(made.err or made.out, 12)
        for node in nodes(ctx):
            command = ("journalctl", "-u", "kubelet", "-n", "8", "--no-pager", "-o", "cat")
            journal = ctx.sh.run("docker", "exec", node.name, *command, check=False)
            words += f"\nkubelet of {node.name}:\n{journal.out or journal.err}"
        delete(ctx)
        raise ClusterError(
            "kind could not create the cluster", f"see {ctx.sh.log}; then run the same command again", words
        )
    ctx.kubeconfig.chmod(0o600)


def delete(ctx: Context) -> None:
    """Deletes the cluster's containers with their volumes."""
    ctx.sh.run(_kind(ctx), "delete", "cluster", "--name", ctx.name, "--kubeconfig", ctx.kubeconfig, timeout=180)


def start(ctx: Context) -> None:
    """Starts the containers of a cluster whose engine had been stopped."""
    for node in nodes(ctx):
        if node.running:
            continue
        started = ctx.sh.run("docker", "start", node.name, check=False)
        if not started.ok:
            step = "run `down`, then `up`"
            if any(word in started.err for word in ("already in use", "already allocated")):
                step = "stop the program that took this port, or " + step + ": the new cluster gets a free port"
            raise ClusterError(f"the node {node.name} does not start", step, tail(started.err, 4))


def write_kubeconfig(ctx: Context) -> None:
    """Writes the private kubeconfig anew."""
    ctx.sh.run(_kind(ctx), "export", "kubeconfig", "--name", ctx.name, "--kubeconfig", ctx.kubeconfig)
    ctx.kubeconfig.chmod(0o600)


def connect(ctx: Context, kubectl: Path) -> None:
    """Gives every node its pod network, and routes to the other nodes' pods. Harmless when done again."""
    found = _wait(ctx, "the nodes' address ranges", 180, lambda: _ranges(ctx, kubectl))
    for name, cidr, _ in found:
        wanted = json.dumps(network(cidr))
        ctx.sh.run(
            "docker", "exec", "--interactive", name, "sh", "-c",
            # Renamed into place: the kubelet's runtime reads the folder whenever something in it changes.
            f"mkdir -p /etc/cni/net.d && cat > {_CNI_FILE}.new && mv {_CNI_FILE}.new {_CNI_FILE}", stdin=wanted,
        )  # fmt: skip
        for _, peer_cidr, address in found:
            if peer_cidr != cidr:
                ctx.sh.run("docker", "exec", name, "ip", "route", "replace", peer_cidr, "via", address)


def wait_ready(ctx: Context, kubectl: Path, seconds: float = 240) -> None:
    """Waits until the API server answers, every node is Ready, and what is said of them is of today.

    A cluster that starts again first tells what was true when it was stopped.
    """
    born = _started(ctx)

    def ready() -> list[str]:
        if not ctx.sh.run(kubectl, "get", "--raw", "/readyz", timeout=10, check=False).ok:
            return []
        states = _node_objects(ctx, kubectl)
        return [] if any(not is_ready(node, born) for node in states) else [node["metadata"]["name"] for node in states]

    def settled() -> list[str]:
        pods = ctx.sh.run(kubectl, "get", "pods", "--all-namespaces", "--output=json", timeout=20, check=False)
        return ["yes"] if pods.ok and not any(is_stale(pod, born) for pod in json.loads(pods.out)["items"]) else []

    _wait(ctx, "the nodes", seconds, ready)
    _wait(ctx, "the pods of before", seconds, settled)


def fake_gpus(ctx: Context, kubectl: Path, count: int) -> None:
    """Makes every node that takes ordinary pods offer GPUs that are not there."""
    names = [node["metadata"]["name"] for node in _node_objects(ctx, kubectl) if not _is_tainted(node)]

    def offered() -> list[str]:
        objects = {node["metadata"]["name"]: node for node in _node_objects(ctx, kubectl)}
        for name in names:
            if objects[name]["status"]["capacity"].get(GPU) != str(count):
                patch = [{"op": "add", "path": f"/status/capacity/{GPU.replace('/', '~1')}", "value": str(count)}]
                ctx.sh.run(
                    kubectl,
                    "patch",
                    "node",
                    name,
                    "--subresource=status",
                    "--type=json",
                    f"--patch={json.dumps(patch)}",
                )
        done = all(objects[name]["status"]["allocatable"].get(GPU) == str(count) for name in names)
        return names if done else []

    _wait(ctx, "the fake GPUs", 90, offered)


def load(ctx: Context, image: str, name: str = "") -> bool:
    """Puts an image of the engine into every node, under another name if one is given.

    False when all nodes have this very image already.
    """
    missing = without(ctx, image, name)
    with ThreadPoolExecutor(max_workers=4) as pool:
        # Asked for, so that an error of one is raised here.
        list(pool.map(lambda node: take(ctx, node, image, ["docker", "save", image], name), missing))
    return bool(missing)


def without(ctx: Context, image: str, name: str = "") -> list[str]:
    """The nodes that lack this very image of the engine, under another name if one is given."""
    identity = _identity(ctx, image)
    return [node.name for node in nodes(ctx) if not _has_image(ctx, node.name, name or image, identity)]


def take(ctx: Context, node: str, image: str, archive: Sequence[str | Path], name: str = "") -> None:
    """Imports an image into a node from what a command writes, and marks it as the engine's."""
    ctr = ("docker", "exec", "--interactive", "--privileged", node, "ctr", "--namespace=k8s.io", "images")
    ctx.sh.pipe(archive, [*ctr, "import", "--all-platforms", "--local", _DISCARD, "-"])
    if name:
        ctx.sh.run(*ctr, "tag", "--force", image, name)
        ctx.sh.run(*ctr, "rm", image)

    # The kubelet's side of containerd 1.7 replaces all labels when it first sees an image: ours comes after its own.
    def seen() -> list[str]:
        lines = [line.split() for line in ctx.sh.run(*ctr, "ls").out.splitlines()]
        return [words[0] for words in lines if words[0] in _names(name or image) and _MANAGED in words[-1]]

    known = _wait(ctx, f"the image {name or image} on {node}", 60, seen)[0]
    ctx.sh.run(*ctr, "label", known, f"{_IMAGE_LABEL}={_identity(ctx, image)}")


def _identity(ctx: Context, image: str) -> str:
    return container.image_id(ctx, image).removeprefix("sha256:")[:16]


def _has_image(ctx: Context, node: str, image: str, identity: str) -> bool:
    listed = ctx.sh.run(
        "docker", "exec", node, "ctr", "--namespace=k8s.io", "images", "ls", "--quiet",
        f'labels."{_IMAGE_LABEL}"=={identity}', check=False,
    ).out.split()  # fmt: skip
    return any(name in listed for name in _names(image))


def _names(image: str) -> list[str]:
    """How a node may call an image: the engine leaves out what a node's runtime writes in front of short names."""
    return [f"{prefix}{image}" for prefix in ("", "docker.io/", "docker.io/library/")]


def _kind(ctx: Context) -> Path:
    return binaries.provide(ctx, [KIND])[KIND.name]


def _node_objects(ctx: Context, kubectl: Path) -> list[dict[str, Any]]:
    got = ctx.sh.run(kubectl, "get", "nodes", "--output=json", timeout=20, check=False)
    items: list[dict[str, Any]] = json.loads(got.out)["items"] if got.ok else []
    return items


def _ranges(ctx: Context, kubectl: Path) -> list[tuple[str, str, str]]:
    """Name, pod range and address of each node; empty as long as one is not known."""
    rows = []
    for node in _node_objects(ctx, kubectl):
        cidr = node["spec"].get("podCIDR", "")
        addresses = [a["address"] for a in node["status"].get("addresses", []) if a["type"] == "InternalIP"]
        if not cidr or not addresses:
            return []
        rows.append((node["metadata"]["name"], cidr, addresses[0]))
    return rows if len(rows) == len(nodes(ctx)) else []


def is_ready(node: dict[str, Any], born: dict[str, str]) -> bool:
    """Whether a node said that it is ready since its container started. `born` holds times, by name."""
    since = born.get(node["metadata"]["name"], "")
    conditions = node["status"].get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" and c["lastHeartbeatTime"] >= since for c in conditions)


def is_stale(pod: dict[str, Any], born: dict[str, str]) -> bool:
    """Whether a pod is said to run since before its node's container started."""
    since = born.get(pod["spec"].get("nodeName", ""), "")
    if "deletionTimestamp" in pod["metadata"]:
        return False
    states = [status.get("state", {}) for status in pod.get("status", {}).get("containerStatuses", [])]
    return any("running" in state and state["running"]["startedAt"] < since for state in states)


def _started(ctx: Context) -> dict[str, str]:
    """When each node's container started, to the second, as Kubernetes writes times."""
    names = [node.name for node in nodes(ctx)]
    listed = ctx.sh.run("docker", "inspect", "--format", "{{.Name}} {{.State.StartedAt}}", *names).out
    pairs = (line.lstrip("/").split() for line in listed.splitlines() if line)
    return {name: f"{when[:19]}Z" for name, when in pairs}


def _is_tainted(node: dict[str, Any]) -> bool:
    return any(taint["key"].startswith("node-role.kubernetes.io/") for taint in node["spec"].get("taints", []))


def _wait(ctx: Context, what: str, seconds: float, ask: Callable[[], list[T]]) -> list[T]:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if answer := ask():
            return answer
        time.sleep(0.5)
    raise ClusterError(
        f"{what}: not ready after {seconds:.0f} s",
        f"see {ctx.sh.log}; run the same command again, or `down` and `up` for a fresh cluster",
    )
