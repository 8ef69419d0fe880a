"""One v1 job of a cluster: what it does now, who made it, and whether it can move."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from trainjob import emit
from trainjob.findings import Finding, Severity
from trainjob.kube import quantity, yaml
from trainjob.migrate.cluster.client import Obj
from trainjob.migrate.engine import migrate_text
from trainjob.migrate.job import Options
from trainjob.v1.kinds import PYTORCH, kind_of, role_specs

FINISHED: Final = ("Succeeded", "Failed")
# Marks that tools leave on what they apply: label or annotation -> tool.
_MARKS: Final = (
    ("argocd.argoproj.io/tracking-id", "Argo CD"), ("kustomize.toolkit.fluxcd.io/name", "Flux"),
    ("helm.toolkit.fluxcd.io/name", "Flux"), ("meta.helm.sh/release-name", "Helm"),
    ("workflows.argoproj.io/workflow", "Argo Workflows"), ("pipelines.kubeflow.org/run_name", "Pipelines"),
    ("pipeline/runid", "Pipelines"), ("katib.kubeflow.org/experiment", "Katib"),
)  # fmt: skip
# managedFields name the program that wrote an object.
_MANAGERS: Final = (
    ("argocd", "Argo CD"), ("kustomize-controller", "Flux"), ("helm", "Helm"), ("kubectl", "kubectl"),
    ("oc", "oc"), ("OpenAPI-Generator", "Python SDK"), ("argo", "Argo Workflows"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LiveJob:
    """A job of the inventory. `verdict`: ready, look (warnings), blocked, finished, owned."""

    namespace: str
    name: str
    state: str
    created: str
    pods: int
    accelerators: Mapping[str, int]
    owner: str
    made_by: str
    verdict: str
    findings: tuple[Finding, ...]
    output: emit.TrainJob | None
    kind: str = PYTORCH.name

    @property
    def shown(self) -> str:
        """Its name, with the kind where it is no PyTorchJob."""
        return self.name if self.kind == PYTORCH.name else f"{self.kind}/{self.name}"

    @property
    def runs(self) -> bool:
        return self.state in ("Running", "Restarting", "Created")

    @property
    def moves(self) -> bool:
        """It is to be applied to the target."""
        return self.output is not None and self.verdict in ("ready", "look")

    def to_dict(self) -> dict[str, Any]:
        return {
            "namespace": self.namespace,
            "name": self.name,
            "kind": self.kind,
            "state": self.state,
            "created": self.created,
            "pods": self.pods,
            "accelerators": dict(self.accelerators),
            "owner": self.owner,
            "madeBy": self.made_by,
            "verdict": self.verdict,
            "findings": [f.to_dict() for f in self.findings],
        }


def live_job(obj: Obj, options: Options) -> LiveJob:
    """The job as the inventory shows it; it is migrated to learn what blocks it."""
    metadata = obj.get("metadata") or {}
    namespace, name = str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
    clean = {**obj, "metadata": {k: v for k, v in metadata.items() if k != "managedFields"}}
    result = migrate_text(yaml.dump(clean), file=f"{namespace}/{name}", options=options)
    state, owner = _state(obj), _owner(metadata)
    output = result.jobs[0] if result.jobs else None
    verdict = "ready"
    if state in FINISHED:
        verdict = "finished"
    elif owner:
        verdict = "owned"
    elif output is None:
        verdict = "blocked"
    elif any(f.severity is Severity.WARNING for f in result.findings):
        verdict = "look"
    pods, accelerators = _size(obj)
    created = str(metadata.get("creationTimestamp") or "")
    return LiveJob(
        namespace,
        name,
        state,
        created,
        pods,
        accelerators,
        owner,
        _made_by(metadata),
        verdict,
        result.findings,
        output,
        kind_of(obj).name,
    )


def _state(obj: Obj) -> str:
    """The last condition that is true, Suspended by its spec, or Created."""
    status = obj.get("status") or {}
    true = [str(c.get("type")) for c in status.get("conditions") or () if str(c.get("status")) == "True"]
    for final in FINISHED:
        if final in true:
            return final
    if true:
        return true[-1]
    suspended = ((obj.get("spec") or {}).get("runPolicy") or {}).get("suspend")
    return "Suspended" if suspended else "Created"


def _owner(metadata: Mapping[str, Any]) -> str:
    for owner in metadata.get("ownerReferences") or ():
        if owner.get("controller") or owner.get("kind") in ("Workflow", "AppWrapper", "Trial"):
            return f"{owner.get('kind')}/{owner.get('name')}"
    return ""


def _made_by(metadata: Mapping[str, Any]) -> str:
    marks = {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}
    for key, tool in _MARKS:
        if key in marks:
            return f"{tool} ({marks[key]})"
    for entry in metadata.get("managedFields") or ():
        for prefix, tool in _MANAGERS:
            if str(entry.get("manager", "")).startswith(prefix) and entry.get("subresource") != "status":
                return tool
    return ""


def _size(obj: Obj) -> tuple[int, dict[str, int]]:
    """Pods of the job, and accelerators of all of them by resource name."""
    pods, total = 0, dict[str, int]()
    kind = kind_of(obj)
    for role, replica in role_specs(obj).items():
        count = replica.get("replicas", kind.replicas(role))
        count = count if isinstance(count, int) else 1
        pods += count
        for container in ((replica.get("template") or {}).get("spec") or {}).get("containers") or ():
            for key, amount in _devices(container.get("resources") or {}).items():
                total[key] = total.get(key, 0) + count * math.ceil(amount)
    return pods, total


def _devices(resources: Mapping[str, Any]) -> Mapping[str, Fraction]:
    try:
        return quantity.accelerators(resources)
    except ValueError:  # refused with its place when the job is migrated
        return {}
