"""What rules of several kinds need to write v1's variables: addresses of nodes, and the scripts that read them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from trainjob.emit import GLOBAL_INDEX, NODE, RANK_ANNOTATION, WORKER
from trainjob.findings import Finding
from trainjob.migrate.rule import Draft, RoleDraft, Say
from trainjob.v1.pytorchjob import PyTorchJob
from trainjob.v1.traced import derived

# Holds the job's name where the file does not know it (generateName, templates).
NAME: Final = "V2_TRAINJOB_NAME"
_NAME_SOURCE: Final = {"fieldRef": {"fieldPath": "metadata.labels['jobset.sigs.k8s.io/jobset-name']"}}
UNBUFFERED: Final = {"name": "PYTHONUNBUFFERED", "value": "1"}


def name_env(draft: Draft) -> list[dict[str, Any]]:
    """The entry that must stand before those which use `address` of a job without a fixed name."""
    return [] if draft.name is not None else [{"name": NAME, "valueFrom": _NAME_SOURCE}]


def address(draft: Draft, rank: int) -> str:
    """The host of the pod with this rank, inside the namespace. Kubernetes expands $(NAME) of an earlier entry."""
    name = draft.name if draft.name is not None else f"$({NAME})"
    if rank and draft.two_roles:
        return derived(f"{name}-{WORKER}-{rank - 1}-0.{name}", draft.name)
    return derived(f"{name}-{NODE}-0-{rank}.{name}", draft.name)


def rank_source(draft: Draft) -> dict[str, Any]:
    """`valueFrom` of a pod's rank: 0 is v1's Master, or its first Worker where there is none."""
    return {"fieldRef": {"fieldPath": GLOBAL_INDEX if draft.two_roles else RANK_ANNOTATION}}


def add(draft: Draft, shim: Sequence[dict[str, Any]]) -> None:
    """Give it to every training container, behind the user's own env as v1 did, and keep it for sidecars."""
    draft.shim = list(shim)
    for role in draft.roles:
        have = {e["name"] for e in role.env}
        role.env += [dict(e) for e in shim if e["name"] not in have]


def scripts(say: Say, job: PyTorchJob, draft: Draft, names: Sequence[str]) -> Iterator[Finding]:
    """Scripts that come from a ConfigMap of the same stream: do they read v1's variables or host names?"""
    reads = re.compile(rf"\b({'|'.join(names)})\b")
    for role in draft.roles:
        for at, title, text in _mounted(job, role):
            found = list(dict.fromkeys(reads.findall(text)))
            if found:
                yield say.note(at, f"{title} reads {', '.join(found)}; they are set")
            if job.name and re.search(rf"\b{re.escape(job.name)}-(?:master|worker)-", text):
                yield say.warning(
                    at,
                    f"{title} holds a v1 host name of this job; the ConfigMap is not changed",
                    f"rank i is {job.name}-{NODE}-0-i.{job.name}",
                )


def _mounted(job: PyTorchJob, role: RoleDraft) -> Iterator[tuple[Any, str, str]]:
    for i, volume in enumerate(role.pod.get("volumes") or ()):
        name = str((volume.get("configMap") or {}).get("name"))
        for key, text in sorted(job.scripts.get(name, {}).items()):
            yield role.at("volumes", i), f"{key} in ConfigMap {name}", text
