"""Sets of rendered objects: their identities, and whether two sets mean the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from trainjob.kube import yaml
from trainjob.migrate.origin import MIGRATED_FROM, SOURCE_SHA256
from trainjob.migrate.tree.jsonpatch import Operation, diff, same

RUNTIME: Final = "TrainingRuntime"
JOB: Final = "TrainJob"
Obj = Mapping[str, Any]
_ORIGIN: Final = (MIGRATED_FROM, SOURCE_SHA256)


@dataclass(frozen=True, slots=True, order=True)
class Id:
    """What names an object in a cluster, without the version."""

    kind: str
    group: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


def id_of(obj: Obj) -> Id:
    """The identity of an object."""
    metadata = obj.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    group = str(obj.get("apiVersion", "")).rpartition("/")[0]
    return Id(str(obj.get("kind", "")), group, str(metadata.get("namespace") or ""), str(metadata.get("name") or ""))


class Objects:
    """The objects of a stream by identity."""

    def __init__(self, text: str) -> None:
        self.all: dict[Id, Obj] = {}
        for doc in yaml.load(text):
            if isinstance(doc.data, Mapping):
                self.all[id_of(doc.data)] = doc.data

    def jobs(self) -> dict[Id, Obj]:
        return {i: o for i, o in self.all.items() if i.kind == JOB}

    def runtime_of(self, job: Obj) -> Obj | None:
        """The TrainingRuntime of the same set that a TrainJob names."""
        ref = job["spec"]["runtimeRef"]
        if ref.get("kind") != RUNTIME:
            return None
        mine = id_of(job)
        return self.all.get(Id(RUNTIME, mine.group, mine.namespace, str(ref.get("name"))))

    def meaning(self) -> dict[Id, Any]:
        """What is compared: a TrainJob with its runtime in the place of the runtime's name."""
        return {i: self._meaning(o) for i, o in self.all.items() if i.kind != RUNTIME}

    def _meaning(self, obj: Obj) -> Any:
        if obj.get("kind") == JOB:
            obj = _with_origin(obj, {})
        runtime = self.runtime_of(obj) if obj.get("kind") == JOB else None
        if runtime is None:
            return obj
        return {**obj, "spec": {**obj["spec"], "runtimeRef": {"runtime": runtime["spec"]}}}


def different(have: Objects, want: Objects) -> list[str]:
    """In words, the objects of two sets that differ; runtimes that no job names do not count."""
    old, new = have.meaning(), want.meaning()
    out = [f"{i} is there and should not be" for i in sorted(old.keys() - new.keys())]
    out += [f"{i} is missing" for i in sorted(new.keys() - old.keys())]
    for i in sorted(old.keys() & new.keys()):
        if not same(old[i], new[i]):
            paths = ", ".join(op["path"] for op in diff(old[i], new[i]) if op["op"] != "test")
            out.append(f"{i} differs at {paths}")
    return out


def _with_origin(job: Obj, other: Obj) -> Obj:
    """A job that says of its origin what `other` says: the file, not what the engine rendered of it."""
    metadata = dict(job["metadata"])
    own = metadata.get("annotations") or {}
    theirs = (other.get("metadata") or {}).get("annotations") or {}
    annotations = {k: v for k, v in own.items() if k not in _ORIGIN}
    annotations |= {k: v for k, v in theirs.items() if k in _ORIGIN}
    metadata.pop("annotations", None)
    if annotations:
        metadata["annotations"] = annotations
    return {**job, "metadata": metadata}


@dataclass(slots=True)
class Bridge:
    """What has to be added to a kustomization so that it renders `want` instead of `have`."""

    operations: dict[Id, list[Operation]]
    removed: list[Id]
    runtimes: list[Obj]

    def __bool__(self) -> bool:
        return bool(self.operations or self.removed)


def bridge(have: Objects, want: Objects) -> Bridge:
    """JSON patches for each TrainJob, runtimes that have to be added, TrainJobs that go."""
    out = Bridge({}, [], [])
    wanted = want.jobs()
    for i, job in have.jobs().items():
        target = wanted.get(i)
        if target is None:
            out.removed.append(i)
            continue
        old, new = have.runtime_of(job), want.runtime_of(target)
        if new is not None and old is not None and same(old["spec"], new["spec"]):
            target = {**target, "spec": {**target["spec"], "runtimeRef": job["spec"]["runtimeRef"]}}
        elif new is not None and not any(id_of(r) == id_of(new) for r in out.runtimes):
            out.runtimes.append(new)
        operations = diff(job, _with_origin(target, job))
        if operations:
            out.operations[i] = operations
    return out
