"""Are Master and Worker the same pod? A comparison of meaning, not of text."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final

from trainjob.kube.prune import prune
from trainjob.kube.yaml import Path
from trainjob.migrate.launch import shell_script
from trainjob.v1.kinds import PYTORCH, Kind
from trainjob.v1.pytorchjob import INIT_CONTAINER, OPERATOR_PET_ENV, Replica
from trainjob.v1.traced import derived

# Lists whose order has no meaning are compared sorted; in these it has.
_ORDERED: Final = frozenset({"command", "args", "initContainers"})
_POD_DEFAULTS: Final = {
    "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler", "terminationGracePeriodSeconds": 30,
    "enableServiceLinks": True,
}  # fmt: skip
_CONTAINER_DEFAULTS: Final = {
    "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
}  # fmt: skip


def default_pull_policy(image: str) -> str:
    """What Kubernetes uses when imagePullPolicy is not set: Always for `latest`, else IfNotPresent."""
    if "@" in image:
        return "IfNotPresent"
    tag = image.rsplit("/", 1)[-1].partition(":")[2]
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def operator_default(container: Mapping[str, Any], key: str) -> bool:
    """True when a container field says what would hold without it."""
    if key == "imagePullPolicy":
        return bool(container[key] == default_pull_policy(container.get("image", "")))
    return key in _CONTAINER_DEFAULTS and container[key] == _CONTAINER_DEFAULTS[key]


def operator_env(kind: Kind) -> tuple[str, ...]:
    """The variables that the v1 operator set in every container, after the user's own."""
    return kind.env + OPERATOR_PET_ENV if kind is PYTORCH else kind.env


def canonical(replica: Replica) -> dict[str, Any]:
    """A replica's template with defaults, order and the operator's own additions taken away."""
    pod = {
        k: v
        for k, v in replica.pod.items()
        if k not in ("restartPolicy", "containers") and _POD_DEFAULTS.get(k, ...) != v
    }
    pod["initContainers"] = [c for c in pod.get("initContainers", []) if c.get("name") != INIT_CONTAINER]
    containers = []
    main = replica.main()
    for i, container in enumerate(replica.containers):
        out = {k: v for k, v in container.items() if not operator_default(container, k)}
        if i == main:
            out["name"] = replica.kind.container
            out["ports"] = [p for p in out.get("ports", []) if p.get("name") != replica.kind.port_name]
        env = {e["name"]: e for e in out.get("env", []) if "name" in e}
        out["env"] = [e for n, e in env.items() if n not in operator_env(replica.kind)]
        containers.append(out)
    meta = replica.metadata
    whole = {
        "metadata": {"labels": meta.get("labels", {}), "annotations": meta.get("annotations", {})},
        "spec": {**pod, "containers": containers},
    }
    result = _sorted(prune(whole) or {})
    assert isinstance(result, dict)
    return result


def _sorted(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {k: _sorted(v, k) for k, v in sorted(value.items())}
    if isinstance(value, list):
        items = [_sorted(v) for v in value]
        return items if key in _ORDERED else sorted(items, key=lambda v: json.dumps(v, sort_keys=True))
    return value


def differences(a: Replica, b: Replica) -> list[str]:
    """The first-level fields in which two roles differ, such as `volumes` or `containers.env`."""
    one, two = canonical(a), canonical(b)
    out = [f"metadata.{k}" for k in _unlike(one.get("metadata", {}), two.get("metadata", {}))]
    spec_one, spec_two = one.get("spec", {}), two.get("spec", {})
    out += [k for k in _unlike(spec_one, spec_two) if k != "containers"]
    c_one, c_two = spec_one.get("containers", []), spec_two.get("containers", [])
    if [c.get("name") for c in c_one] != [c.get("name") for c in c_two]:
        return [*out, "containers"]
    for x, y in zip(c_one, c_two, strict=True):
        prefix = "containers." if x.get("name") == a.kind.container else f"containers[{x.get('name')}]."
        out += [prefix + k for k in _unlike(x, y)]
    return out


def _unlike(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    return [k for k in sorted({*a, *b}) if a.get(k) != b.get(k)]


def merged_ports(master: Replica, worker: Replica) -> list[Mapping[str, Any]] | None:
    """The ports of both roles, or None where one pod template cannot say them.

    A hostPort takes a port of the node, so it must be the same in both roles.
    """
    own, other = _ports(master), _ports(worker)
    if [p for p in own if p.get("hostPort")] != [p for p in other if p.get("hostPort")]:
        return None
    out = list(own)
    for port in other:
        if port in out or port.get("name") == worker.kind.port_name:
            continue
        if _port_keys(port) & {key for p in out for key in _port_keys(p)}:
            return None
        out.append(port)
    return out


def _ports(replica: Replica) -> list[Mapping[str, Any]]:
    index = replica.main()
    return [] if index is None else list(replica.containers[index].get("ports") or ())


def _port_keys(port: Mapping[str, Any]) -> set[tuple[Any, ...]]:
    keys: set[tuple[Any, ...]] = {(port.get("containerPort"), port.get("protocol") or "TCP")}
    return keys | {(port["name"],)} if port.get("name") else keys


def overwritten(master: Replica, worker: Replica) -> list[tuple[Path, str]]:
    """What only the Worker has and the v1 operator wrote or overwrote: (place, text)."""
    out: list[tuple[Path, str]] = []
    for i, container in enumerate(worker.pod.get("initContainers") or ()):
        if container.get("name") == INIT_CONTAINER:
            out.append(((*worker.pod_path, "initContainers", i), f"the init container {INIT_CONTAINER}"))
    one, two = master.main(), worker.main()
    if one is None or two is None:
        return out
    at = (*worker.pod_path, "containers", two)
    known = {e.get("name") for e in master.containers[one].get("env") or ()}
    for i, entry in enumerate(worker.containers[two].get("env") or ()):
        if entry.get("name") in operator_env(worker.kind) and entry["name"] not in known:
            out.append(((*at, "env", i), f"the variable {entry['name']}"))
    for i, port in enumerate(worker.containers[two].get("ports") or ()):
        if port.get("name") == worker.kind.port_name and port not in _ports(master):
            out.append(((*at, "ports", i), f"the port {port['name']}"))
    return out


def rank_switch(
    master: tuple[Sequence[str], Sequence[str]],
    worker: tuple[Sequence[str], Sequence[str]],
    rank: str = "PET_NODE_RANK",
) -> tuple[list[str], list[str] | None]:
    """One (command, args) that runs the Master's on rank 0 and the Worker's elsewhere; `rank` is the variable to ask.

    When both are the same shell with `-c`, the two scripts stand side by side and every word
    before them is kept; else a `sh -c` runs one of two quoted command lines.
    """
    where_m, where_w = shell_script(*master), shell_script(*worker)
    words_m, words_w = [*master[0], *master[1]], [*worker[0], *worker[1]]
    if where_m and where_w:
        i = where_m[0]
        if where_w[0] == i and words_m[:i] == words_w[:i] and words_m[i + 1 :] == words_w[i + 1 :]:
            script = derived(_both(_branch(words_m[i]), _branch(words_w[i]), rank), words_m[i], words_w[i])
            words = [*words_m[:i], script, *words_m[i + 1 :]]
            cut = len(master[0])
            return words[:cut], words[cut:] or None
    lines = (f"exec {shlex.join(words_m)}", f"exec {shlex.join(words_w)}")
    return ["sh", "-c", derived(_both(*lines, rank), words_m, words_w)], None


def _branch(script: str) -> str:
    """A script that can stand between `then` and `else`: never empty, never continued by a backslash."""
    script = script.rstrip("\n")
    if not any(line.strip() and not line.lstrip().startswith("#") for line in script.splitlines()):
        return f"{script}\n:" if script.strip() else ":"
    return f"{script}\n" if script.endswith("\\") else script


def _both(master: str, worker: str, rank: str) -> str:
    return f'if [ "${rank}" = 0 ]; then\n{master}\nelse\n{worker}\nfi\n'
