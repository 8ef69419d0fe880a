"""Runs shapes: first as PyTorchJob, then migrated, in one namespace each, many at a time.

A run is a generator that yields while it waits; one thread looks at the cluster and wakes all of
them. That is gentle to a small machine, and every run sees the same moment.
"""

from __future__ import annotations

import copy
import time
import uuid
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.e2e.differential.api import Api, ApiError
from tests.e2e.differential.shape import Act, Object, Shape, Until, jobs_of
from tests.e2e.differential.watch import PodRecord, Watch, condition
from trainjob.findings import Finding
from trainjob.kube.yaml import dump_all, load
from trainjob.migrate import migrate_text

PREFIX: Final = "conformance-"
OWNER: Final = "trainjob.dev/conformance"
LABELS: Final = {"trainjob.dev/multi-node": "allowed", OWNER: "shape"}
# After the end of a job: until its other pods have ended or are gone.
SETTLE_SECONDS: Final = 25
WATCH_SECONDS: Final = 12
STATE: Final = "probe-state"
_CLUSTER_WIDE: Final = ("PriorityClass", "RuntimeClass", "WorkloadPriorityClass")

Steps = Generator[None, None, None]
Change = Callable[[list[Object]], list[Object]]


@dataclass
class Side:
    """What one version made of a job."""

    kind: str
    manifest: Object = field(default_factory=dict)
    job: Object = field(default_factory=dict)
    outcome: str = ""
    refused: str = ""
    # How many of the job's pods existed while it was suspended.
    suspended_pods: int | None = None
    removed: bool = False
    # Tries before the webhook knew the runtime that was created a moment before.
    retries: int = 0
    seconds: float = 0.0
    pods: list[PodRecord] = field(default_factory=list)
    workload: Object | None = None


@dataclass
class Outcome:
    """Both sides of a shape, and what the migration said."""

    shape: Shape
    namespace: str
    v1: Side
    v2: Side
    findings: tuple[Finding, ...] = ()
    error: str = ""


class Runner:
    """Runs shapes on one cluster."""

    def __init__(self, api: Api, *, at_once: int = 8) -> None:
        self.api, self.at_once = api, at_once
        self.stem = f"{PREFIX}{uuid.uuid4().hex[:4]}-"
        self.watch = Watch(api, self.stem)
        self._made: set[tuple[str, str]] = set()

    def run(self, shapes: Iterable[Shape], changes: Mapping[str, Change] | None = None) -> dict[str, Outcome]:
        """All shapes to their end. `changes` alters what a shape is migrated to: how a wrong migration is planted."""
        waiting = list(shapes)
        results: dict[str, Outcome] = {}
        active: dict[str, Steps] = {}
        try:
            while waiting or active:
                while waiting and len(active) < self.at_once:
                    shape = waiting.pop(0)
                    outcome = Outcome(shape, f"{self.stem}{len(results)}", Side("PyTorchJob"), Side("TrainJob"))
                    results[shape.name] = outcome
                    active[shape.name] = self._shape(outcome, (changes or {}).get(shape.name))
                self.watch.look()
                for name, steps in [*active.items()]:
                    try:
                        next(steps)
                    except StopIteration:
                        del active[name]
                    except ApiError as err:
                        results[name].error = str(err)
                        self.api.delete("Namespace", "", results[name].namespace)
                        del active[name]
                time.sleep(0.5)
        finally:
            for outcome in results.values():
                self.api.delete("Namespace", "", outcome.namespace)
            for kind, name in self._made:
                self.api.delete(kind, "", name)
        return results

    def _shape(self, outcome: Outcome, change: Change | None) -> Steps:
        shape, space = outcome.shape, outcome.namespace
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space, "labels": LABELS}}
        self.api.create(body, "")
        for obj in shape.objects:
            self._ensure(obj, space)
        job = copy.deepcopy(jobs_of(_opened(shape.documents))[shape.which])
        job["metadata"] = _named(job.get("metadata", {}))
        yield from self._side(outcome.v1, job, [], shape, space)
        result = migrate_text(dump_all([*shape.documents]), file=f"{shape.name}.yaml")
        outcome.findings = result.findings
        if not result.jobs:
            outcome.v2.refused = "; ".join(f"{f.code} {f.message}" for f in result.findings)
            return
        objects = [copy.deepcopy(dict(obj)) for obj in result.jobs[shape.which].objects()]
        for obj in objects:
            obj["metadata"] = _named(obj.get("metadata", {}))
        if change:
            objects = change(objects)
        yield from self._side(outcome.v2, objects[-1], objects[:-1], shape, space)
        self.api.delete("Namespace", "", space)

    def _ensure(self, obj: Object, space: str) -> None:
        if obj["kind"] in _CLUSTER_WIDE and self.api.get(obj["kind"], "", obj["metadata"]["name"]) is None:
            self._made.add((obj["kind"], obj["metadata"]["name"]))
        self.api.ensure(obj, space)

    def _side(self, side: Side, job: Object, before: list[Object], shape: Shape, space: str) -> Steps:
        """Creates a job and looks at it until the shape has shown what it is for; then deletes it."""
        start = time.monotonic()
        side.manifest = job
        try:
            for obj in before:
                self.api.ensure(obj, space)
            while not (name := self._created(side, job, space)):
                yield
        except ApiError as err:
            side.refused = str(err)
            return

        def now() -> Object | None:
            return self.watch.jobs.get((side.kind, space, name))

        def pods() -> list[PodRecord]:
            return self.watch.of(space, start)

        yield
        if shape.act is Act.SUSPEND:
            yield from self._suspend(side, name, space, pods)
        while not self._shown(shape, now(), pods()) and time.monotonic() - start < shape.seconds:
            side.job = now() or side.job
            side.workload = self._workload(space, name) or side.workload
            yield
        end = time.monotonic()
        patience = WATCH_SECONDS if shape.act is Act.WATCH_END else 0
        while time.monotonic() - end < patience or (
            shape.until is Until.FINISHED
            and time.monotonic() - end < SETTLE_SECONDS
            and not all(pod.over or _stuck_in_init(pod) for pod in pods())
        ):
            yield
        yield
        side.removed = now() is None
        side.job = now() or side.job
        side.outcome = _outcome(side.job)
        side.workload = self._workload(space, name) or side.workload
        side.pods = copy.deepcopy(pods())
        side.seconds = end - start
        self.api.delete(side.kind, space, name)
        while now() is not None or any(not pod.gone for pod in pods()):
            if time.monotonic() - end > 60:
                for pod in pods():
                    self.api.delete("Pod", space, pod.name)
            if time.monotonic() - end > 90:
                break
            yield

    def _created(self, side: Side, job: Object, space: str) -> str:
        """The name of the created job; '' while Trainer's webhook has not seen the new runtime yet."""
        try:
            return str(self.api.create(job, space, strict=side.kind == "TrainJob")["metadata"]["name"])
        except ApiError as err:
            side.retries += 1
            if "not found" not in str(err) or side.retries > 10:
                raise
            return ""

    def _suspend(self, side: Side, name: str, space: str, pods: Callable[[], list[PodRecord]]) -> Steps:
        """Suspends a running job and resumes it when its pods are gone."""
        end = time.monotonic() + 60
        while not any(pod.phase == "Running" for pod in pods()) and time.monotonic() < end:
            yield
        where = ("runPolicy",) if side.kind == "PyTorchJob" else ()
        self.api.patch(side.kind, space, name, {"spec": _nest(where, {"suspend": True})})
        while any(not pod.gone for pod in pods()) and time.monotonic() < end + 60:
            yield
        side.suspended_pods = sum(not pod.gone for pod in pods())
        self.api.patch(side.kind, space, name, {"spec": _nest(where, {"suspend": False})})
        yield

    def _shown(self, shape: Shape, job: Object | None, pods: list[PodRecord]) -> bool:
        if shape.until is Until.SUSPENDED:
            return bool(condition(job, "Suspended"))
        if shape.until is Until.STARTED:
            return bool(pods) and all(pod.told for pod in pods)
        return bool(condition(job, "Succeeded", "Complete", "Failed")) or (job is None and bool(pods))

    def _workload(self, space: str, name: str) -> Object | None:
        for found in self.api.list("Workload", space):
            if any(owner["name"] == name for owner in found["metadata"].get("ownerReferences", [])):
                return found
        return None


def _stuck_in_init(pod: PodRecord) -> bool:
    """A v1 Worker that still waits for the name of a Master that is gone: it never ends by itself."""
    statuses = pod.last.get("status", {}).get("initContainerStatuses", [])
    return any(s["name"] == "init-pytorch" and "running" in s.get("state", {}) for s in statuses)


def _nest(keys: tuple[str, ...], value: Object) -> Object:
    for key in reversed(keys):
        value = {key: value}
    return value


def _outcome(job: Object) -> str:
    found = condition(job, "Succeeded", "Complete", "Failed", "Suspended")
    return "Succeeded" if found == "Complete" else found or "not ended"


def _named(meta: Object) -> Object:
    """Metadata with a name: what generateName or Katib would have given."""
    meta = dict(meta)
    meta.pop("namespace", None)
    if "generateName" in meta:
        return {**meta, "generateName": meta["generateName"]}
    return {"name": "trial", **meta}


def _opened(documents: Iterable[Object]) -> list[Any]:
    """The documents, with jobs that stand as text read."""
    out: list[Any] = []
    for document in documents:
        if document.get("kind") == "ConfigMap":
            texts = [v for v in document.get("data", {}).values() if "kind: PyTorchJob" in v]
            out += [load(text)[0].data for text in texts]
        else:
            out.append(document)
    return out
