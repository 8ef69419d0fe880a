"""Requests and limits are carried to `trainer.resourcesPerNode`, per pod, as written.

What it does: keeps the quantities' text, refuses devices that stand in requests only.
Why it matters: Trainer 2.3 merges them key by key over the runtime's, so what v1 left unset may come
from the runtime; the quota of a queue and the number of processes depend on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trainjob.findings import Finding
from trainjob.kube import quantity
from trainjob.migrate.rule import CONTAINER, Claim, Draft, Outcome, RoleDraft, Rule, Say
from trainjob.v1.kinds import PYTORCH
from trainjob.v1.pytorchjob import PyTorchJob


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    say = Say("TJ208", job)
    for role in draft.roles:
        at = (*role.main_path, "resources")
        resources = {
            k: dict(v) if isinstance(v, dict) else v for k, v in (role.main.get("resources") or {}).items() if v
        }
        yield from _check(say, resources, role)
        role.resources = resources
        if not resources.get("limits") and not resources.get("requests"):
            yield say.note(
                role.main_path,
                "no resources are set: the pods run without requests (BestEffort) and a queue counts them as 0; "
                f"defaults of the runtime would come in here ({_runtime(job)} has none)",
            )
        if role.main.get("resizePolicy"):
            role.container["resizePolicy"] = role.main["resizePolicy"]
            yield say.note((*role.main_path, "resizePolicy"), "resizePolicy needs a generated runtime")
        if resources.get("claims"):
            yield say.note(
                (*at, "claims"), "device claims need a generated runtime: Trainer drops them from a TrainJob"
            )


def _check(say: Say, resources: dict[str, Any], role: RoleDraft) -> Iterator[Finding]:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for kind, amounts in (("limits", limits), ("requests", requests)):
        for key, value in amounts.items():
            at = (*role.main_path, "resources", kind, key)
            try:
                amount = quantity.parse(value)
            except ValueError:
                raise say.refuse(
                    at, f"{value!r} is no quantity", "write a number with a unit, such as 500m or 8Gi"
                ) from None
            if amount == 0:
                yield say.note(at, f"{key}: {value} is zero; it is kept and asks for nothing")
    for key in requests:
        domain, slash, _ = key.partition("/")
        if slash and domain != "kubernetes.io" and key not in limits and quantity.parse(requests[key]) > 0:
            raise say.refuse(
                (*role.main_path, "resources", "requests", key),
                f"{key} stands in requests only; Kubernetes refuses the pod: Limit must be set for non overcommitable "
                "resources",
                f"set limits[{key!r}] to {requests[key]}",
            )


def _runtime(job: PyTorchJob) -> str:
    return "torch-v1-compat" if job.kind is PYTORCH else "the generated one"


RULE = Rule(
    "TJ208",
    "resources",
    (
        Claim(f"{CONTAINER}.resources", Outcome.CARRIED, "spec.trainer.resourcesPerNode"),
        Claim(f"{CONTAINER}.resizePolicy", Outcome.TRANSLATED, "TrainingRuntime container.resizePolicy"),
    ),
    _apply,
)
