"""A small v1 job that has one given leaf of the PyTorchJob CRD set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.migrate.rules.support import v1
from trainjob.kube import schema
from trainjob.kube.objectmeta import with_object_meta
from trainjob.migrate.fields import Segments

SCHEMA = with_object_meta(schema.raw("PyTorchJob"))
ROLES = ("spec", "pytorchReplicaSpecs", "*")
# Fields that take only certain values, and true for what is false by default only.
CHOSEN: dict[str, Any] = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "PyTorchJob",
    "nprocPerNode": "4",
    "restartPolicy": "Never",
    "managedBy": "kueue.x-k8s.io/multikueue",
    "enableServiceLinks": False,
}


def job_with(leaf: Segments) -> Any:
    """A job of two Workers with this leaf, and with whatever the leaf needs beside it."""
    job = v1(master=False, workers=2)
    node: Mapping[str, Any] = SCHEMA
    holder: Any = job
    for i, part in enumerate(leaf):
        node = _child(node, part)
        key: Any = 0 if part == "[]" else part
        if part == "*":
            key = "Worker" if leaf[:i] == ROLES[:2] else "key-a"
        last = i == len(leaf) - 1
        if isinstance(holder, list) and not holder:
            holder.append({})
        if last:
            holder[key] = _value(node, part if part not in ("*", "[]") else leaf[i - 1])
        elif not isinstance(holder, list) and key not in holder:
            holder[key] = [] if node.get("type") == "array" else {}
        holder = holder[key]
        if isinstance(holder, dict):
            for name in node.get("required", ()):
                holder.setdefault(name, _value(node["properties"][name], name))
    _complete(job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"])
    return job


def _child(node: Mapping[str, Any], part: str) -> Mapping[str, Any]:
    inner = {"*": "additionalProperties", "[]": "items"}.get(part)
    return node[inner] if inner else node["properties"][part]  # type: ignore[no-any-return]


def _value(node: Mapping[str, Any], name: str) -> Any:
    """The smallest value of this type that tells where it came from."""
    if name in CHOSEN and node.get("type") in ("string", "boolean"):
        return CHOSEN[name]
    if "enum" in node:
        return node["enum"][0]
    if node.get("x-kubernetes-int-or-string"):
        return "7"
    kind = node.get("type")
    if kind == "array":
        return [_value(node.get("items", {}), name)]
    if kind == "object":
        properties = node.get("properties", {})
        chosen = node.get("required") or list(properties)[:1]
        return {k: _value(properties[k], k) for k in chosen} or {"open": "value-open"}
    return {"integer": 7, "boolean": True}.get(str(kind), f"value-{name.lower()}")


def _complete(pod: Any) -> None:
    """What Kubernetes asks for beside a field without the CRD saying so."""
    for container in pod.get("initContainers", ()):
        container.setdefault("image", "init:1")
    containers = [*pod["containers"], *pod.get("initContainers", ())]
    mounted = {m["name"] for c in containers for m in c.get("volumeMounts", ())}
    if mounted and "volumes" not in pod:
        pod["volumes"] = [{"name": name, "emptyDir": {}} for name in sorted(mounted)]
