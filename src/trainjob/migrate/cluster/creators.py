"""What in a cluster makes PyTorchJobs: schedules, workflows, pipelines, experiments, scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from trainjob.kube.yaml import Path, dotted
from trainjob.migrate.cluster.client import Obj, Resource
from trainjob.v1 import kinds

KINDS: Final = (
    Resource("batch/v1", "cronjobs", "CronJob"),
    Resource("argoproj.io/v1alpha1", "cronworkflows", "CronWorkflow"),
    Resource("argoproj.io/v1alpha1", "workflowtemplates", "WorkflowTemplate"),
    Resource("argoproj.io/v1alpha1", "clusterworkflowtemplates", "ClusterWorkflowTemplate", namespaced=False),
    Resource("argoproj.io/v1alpha1", "workflows", "Workflow"),
    Resource("kubeflow.org/v1beta1", "scheduledworkflows", "ScheduledWorkflow"),
    Resource("kubeflow.org/v1beta1", "experiments", "Experiment"),
    Resource("workload.codeflare.dev/v1beta2", "appwrappers", "AppWrapper"),
    Resource("v1", "configmaps", "ConfigMap"),
)
# They are migrated in their place when their object is given to migrate.
_IN_PLACE: Final = ("Experiment", "AppWrapper", "ConfigMap")
# Also JSON inside JSON, as Pipelines keeps it: the quotes are escaped there.
_TEXT: Final = re.compile(rf"""kind\\*["']?\s*:\s*\\*["']?(?:{kinds.ANY})\b""")
_SDK: Final = re.compile(r"kubeflow\.training\b|\bTrainingClient\b|\bPyTorchJobClient\b|\bkubeflow[-_]training\b")
_VERSION: Final = re.compile(r"kubeflow[-_]training\s*(?:==|~=|>=|<=|<|>)\s*([0-9][0-9.]*)")


@dataclass(frozen=True, slots=True)
class Creator:
    """One object that makes PyTorchJobs. `how`: manifest, or sdk with its version where one is pinned."""

    kind: str
    namespace: str
    name: str
    where: str
    how: str
    schedule: str = ""
    suspended: bool = False
    sdk: str = ""
    owner: str = ""

    @property
    def subject(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"

    @property
    def fix(self) -> str:
        """What has to be done with it."""
        if self.how == "sdk":
            return "its script uses the v1 SDK: `trainjob migrate-sdk SCRIPT` rewrites it for TrainerClient"
        if self.kind in _IN_PLACE:
            return f"kubectl get {self.kind.lower()} {self.name} -o yaml | migrate - rewrites the job in its place"
        return f"take the job at {self.where} out, migrate it, put it back, and adapt success and failure conditions"

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "fix": self.fix}


def creators(obj: Obj) -> Iterator[Creator]:
    """The object as a creator, when it holds a PyTorchJob or uses the v1 SDK."""
    spec = obj.get("spec") if isinstance(obj.get("spec"), Mapping) else {}
    metadata = obj.get("metadata") or {}
    body = {k: v for k, v in obj.items() if k not in ("metadata", "status")}
    found: tuple[Path, str, str] | None = None
    for path, value in _walk(body, ()):
        if isinstance(value, Mapping) or _TEXT.search(value):
            found = (path, "manifest", "")
            break
        if found is None and _SDK.search(value):
            version = _VERSION.search(value)
            found = (path, "sdk", version[1] if version else "")
    if found is None:
        return
    path, how, sdk = found
    owner = next((o for o in metadata.get("ownerReferences") or () if o.get("controller")), None)
    yield Creator(
        str(obj.get("kind", "")),
        str(metadata.get("namespace") or ""),
        str(metadata.get("name") or ""),
        dotted(path),
        how,
        _schedule(spec or {}),
        bool((spec or {}).get("suspend")) or (spec or {}).get("enabled") is False,
        sdk or _pinned(body),
        f"{owner['kind']}/{owner['name']}" if owner else "",
    )


def _walk(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """Embedded jobs and texts, in order."""
    if isinstance(value, Mapping):
        if path and value.get("kind") in kinds.KINDS:
            yield path, value
            return
        for key, item in value.items():
            yield from _walk(item, (*path, str(key)))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _walk(item, (*path, i))
    elif isinstance(value, str):
        yield path, value


def _pinned(body: Mapping[str, Any]) -> str:
    return next((m[1] for _, v in _walk(body, ()) if isinstance(v, str) and (m := _VERSION.search(v))), "")


def _schedule(spec: Mapping[str, Any]) -> str:
    """cron of a CronJob, a CronWorkflow (one or several), a ScheduledWorkflow."""
    if spec.get("schedule"):
        return str(spec["schedule"])
    if isinstance(spec.get("schedules"), list):
        return ", ".join(map(str, spec["schedules"]))
    trigger = spec.get("trigger")
    trigger = trigger if isinstance(trigger, Mapping) else {}
    cron, period = trigger.get("cronSchedule") or {}, trigger.get("periodicSchedule") or {}
    if cron.get("cron"):
        return str(cron["cron"])
    return f"every {period['intervalSecond']} s" if period.get("intervalSecond") else ""
