"""What the tables of broken objects are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.validate.objects import (
    NODE,
    REMOVE,
    Obj,
    patch,
    pod_path,
    put,
    replicated_job,
    runtime,
    trainjob,
)
from trainjob.targets import Target, target

T20, T21, T22, T23 = map(target, ("2.0", "2.1", "2.2", "2.3"))
P20, P21, P22, P23 = map(pod_path, (T20, T21, T22, T23))


@dataclass(frozen=True)
class Broken:
    """`says`: a part of the message. `also`: codes that come with it unavoidably."""

    name: str
    obj: Obj
    code: str
    path: str
    says: str = ""
    target: Target = T23
    runtime: Obj | None = None
    also: tuple[str, ...] = ()


def job(path: str, value: Any, t: Target = T23) -> Obj:
    return put(trainjob(t), path, value)


def patched(pod: Obj, t: Target = T23, name: str = "node") -> Obj:
    return trainjob(t, patch(t, pod, name))


def fine(path: str, value: Any, t: Target = T23) -> Obj:
    return put(runtime(t), path, value)


MPI = runtime(
    T23,
    replicated_job("launcher"),
    replicated_job("node", None),
    policy={"mpi": {"numProcPerNode": 1, "runLauncherAsNode": True}},
)
INITIALIZERS = runtime(T23, replicated_job("dataset-initializer", "dataset-initializer"), replicated_job())
CPU_ONLY = {"limits": {"cpu": "8", "memory": "8Gi"}, "requests": {"cpu": "8", "memory": "8Gi"}}
GAUDI = put(runtime(T23), f"{NODE}.resources", {"limits": {"habana.ai/gaudi": "8", "cpu": "8"}})
NO_RESOURCES = put(trainjob(T23), "spec.trainer.resourcesPerNode", REMOVE)
TUNE = {"command": ["tune", "run"]}
LLAMA = "spec.runtimeRef.name"


def tune(name: str, t: Target = T23, **trainer: Any) -> Obj:
    return put(trainjob(t, **{"numNodes": 1, **TUNE, **trainer}), LLAMA, name)
