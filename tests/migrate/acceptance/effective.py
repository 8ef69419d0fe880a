"""The v2 side, computed without the product: what pods a TrainJob and its runtime make together.

Follows Trainer 2.3: runtime, then runtimePatches, then `spec.trainer` over container `node`.
"""

from __future__ import annotations

import copy
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step"
COMPLETION_INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
GLOBAL_INDEX = "metadata.annotations['jobset.sigs.k8s.io/job-global-index']"

# Merge keys of the lists that a strategic merge joins; every other list is replaced.
_KEYS = {
    "replicatedJobs": "name",
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "imagePullSecrets": "name",
    "volumeMounts": "mountPath",
}


@dataclass(frozen=True)
class Role:
    """The pods of one replicatedJob after all merges."""

    name: str
    pods: int
    job: dict[str, Any]

    @property
    def metadata(self) -> dict[str, Any]:
        return self.job["template"].get("metadata") or {}

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.get("labels") or {}

    @property
    def annotations(self) -> dict[str, str]:
        return self.metadata.get("annotations") or {}

    @property
    def pod(self) -> dict[str, Any]:
        return self.job["template"]["spec"]

    @property
    def main(self) -> dict[str, Any]:
        containers = self.pod["containers"]
        named = [c for c in containers if c["name"] == "node"]
        return (named or containers)[0]

    def volume(self, name: str) -> dict[str, Any]:
        return next(v for v in self.pod.get("volumes") or [] if v["name"] == name)

    @property
    def volume_names(self) -> set[str]:
        return {v["name"] for v in self.pod.get("volumes") or []}

    @property
    def mounts(self) -> dict[str, dict[str, Any]]:
        return {m["mountPath"]: m for m in self.main.get("volumeMounts") or []}


def merge(base: Any, patch: Any, field: str = "") -> Any:
    """A strategic merge of `patch` over `base`, for the lists named above."""
    if isinstance(base, dict) and isinstance(patch, dict):
        out = dict(base)
        for key, value in patch.items():
            out[key] = merge(out[key], value, key) if key in out else copy.deepcopy(value)
        return out
    if isinstance(base, list) and isinstance(patch, list) and field in _KEYS:
        key = _KEYS[field]
        out_list = list(base)
        for item in patch:
            at = next((i for i, old in enumerate(out_list) if old[key] == item[key]), None)
            if at is None:
                out_list.append(copy.deepcopy(item))
            else:
                out_list[at] = merge(out_list[at], item)
        return out_list
    return copy.deepcopy(patch)


def roles(job: dict[str, Any], runtime: dict[str, Any]) -> dict[str, Role]:
    """The replicatedJobs of `runtime` as this TrainJob runs them."""
    spec = copy.deepcopy(runtime["spec"]["template"]["spec"])
    policy = runtime["spec"].get("mlPolicy") or {}
    trainer = job["spec"].get("trainer") or {}
    for patch in job["spec"].get("runtimePatches") or []:
        changes = patch["trainingRuntimeSpec"]["template"].get("spec") or {}
        known = {replicated["name"] for replicated in spec["replicatedJobs"]}
        for replicated in changes.get("replicatedJobs") or []:
            assert replicated["name"] in known, f"patched job {replicated['name']} is not in the runtime"
        spec = merge(spec, changes)
    out = {}
    for replicated in spec["replicatedJobs"]:
        template = replicated["template"]
        inner = template["spec"]
        if (template.get("metadata") or {}).get("labels", {}).get(ANCESTOR) == "trainer":
            pods = trainer.get("numNodes") or policy.get("numNodes") or 1
            node = next(c for c in inner["template"]["spec"]["containers"] if c["name"] == "node")
            _apply_trainer(node, trainer)
        else:
            pods = replicated.get("replicas", 1) * inner.get("parallelism", 1)
        out[replicated["name"]] = Role(replicated["name"], pods, inner)
    return out


def _apply_trainer(node: dict[str, Any], trainer: dict[str, Any]) -> None:
    for key in ("image", "command", "args"):
        if key in trainer:
            node[key] = trainer[key]
    if trainer.get("env"):
        node["env"] = merge(node.get("env") or [], trainer["env"], "env")
    if trainer.get("resourcesPerNode"):
        node["resources"] = merge(node.get("resources") or {}, trainer["resourcesPerNode"])


def expand(tokens: Sequence[str], env: dict[str, str]) -> list[str]:
    """`$(NAME)` and `$$` in command and args, as the kubelet reads them."""

    def one(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        return env.get(match[1], match[0])

    return [re.sub(r"\$\$|\$\(([^)]*)\)", one, token) for token in tokens]


_STUB = """#!/bin/sh
printf '%s' "${0##*/}"
for word in "$@"; do printf ' [%s]' "$word"; done
printf ' SHARD=%s\\n' "$SHARD"
"""


def execute(tokens: Sequence[str], env: dict[str, str], folder: Path) -> str:
    """What a container's shell program does, with stubs in place of the programs it calls."""
    assert shutil.which("bash"), "bash is needed to run the programs of the inputs"
    folder.mkdir()
    for name in ("python", "hostname", "mkdir", "ls"):
        stub = folder / name
        stub.write_text(_STUB)
        stub.chmod(0o755)
    done = subprocess.run(
        expand(tokens, env),
        cwd=folder,
        env={**env, "PATH": f"{folder}:{os.defpath}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
