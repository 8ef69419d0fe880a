"""Objects that are valid for each target, and a way to break them at one place."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from trainjob.targets import API_VERSION, Target

STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
FRAMEWORK = "trainer.kubeflow.org/framework"
REMOVE = object()
JOBS = "spec.template.spec.replicatedJobs"
POD = f"{JOBS}[0].template.spec.template.spec"
NODE = f"{POD}.containers[0]"

Obj = dict[str, Any]


def replicated_job(name: str = "node", step: str | None = "trainer", **pod: Any) -> Obj:
    """One replicatedJob; its container has the name that the step requires."""
    container = {"trainer": "node", None: name}.get(step, step)
    template: Obj = {"spec": {"template": {"spec": {"containers": [{"name": container, "image": "a/b:1"}]}}}}
    if step:
        template["metadata"] = {"labels": {STEP: step}}
    template["spec"]["template"]["spec"] |= pod
    return {"name": name, "template": template}


def runtime(target: Target, *jobs: Obj, policy: Obj | None = None, kind: str = "ClusterTrainingRuntime") -> Obj:
    """A runtime without faults: torch, one job, shared memory, complete resources."""
    amounts = {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "8"}
    node: Obj = {
        "name": "node",
        "image": "a/b:1",
        "env": [{"name": "PYTHONUNBUFFERED", "value": "1"}],
        "resources": {"requests": dict(amounts), "limits": dict(amounts)},
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
    }
    plain = replicated_job(
        restartPolicy="Never",
        containers=[node],
        volumes=[{"name": "shm", "emptyDir": {"medium": "Memory"}}],
        tolerations=[{"key": "gpu", "operator": "Exists"}],
    )
    torch: Obj = {"torch": {"numProcPerNode": "auto"} if target.torch_nproc_in_runtime else {}}
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"name": "fine", "labels": {FRAMEWORK: "torch"}},
        "spec": {
            "mlPolicy": {"numNodes": 1, **(torch if policy is None else policy)},
            "template": {"spec": {"replicatedJobs": copy.deepcopy(list(jobs)) or [plain]}},
        },
    }


def patch(target: Target, pod: Obj, job: str = "node") -> Obj:
    """One patch entry in the target's shape."""
    if target.patches == "podSpecOverrides":
        return {"targetJobs": [{"name": job}], **pod}
    if target.patches == "podTemplateOverrides":
        return {"targetJobs": [{"name": job}], "spec": pod}
    entry = {"name": job, "template": {"spec": {"template": {"spec": pod}}}}
    return {"manager": "acme.io/x", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [entry]}}}}


def pod_path(target: Target, index: int = 0) -> str:
    """The path of the pod in that patch."""
    tail = {
        "podSpecOverrides": "",
        "podTemplateOverrides": ".spec",
        "runtimePatches": ".trainingRuntimeSpec.template.spec.replicatedJobs[0].template.spec.template.spec",
    }[target.patches]
    return f"spec.{target.patches}[{index}]{tail}"


def trainjob(target: Target, *patches: Obj, **trainer: Any) -> Obj:
    """A TrainJob without faults. Without patches it gets one that mounts a claim."""
    amounts = {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "8"}
    resources = {"requests": dict(amounts), "limits": dict(amounts)}
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    mount = {"name": "data", "mountPath": "/data"}
    pod = {"volumes": [claim], "containers": [{"name": "node", "volumeMounts": [mount]}]}
    return {
        "apiVersion": API_VERSION,
        "kind": "TrainJob",
        "metadata": {"name": "demo", "namespace": "team", "labels": {"kueue.x-k8s.io/queue-name": "q"}},
        "spec": {
            "runtimeRef": {"name": "fine", "kind": "ClusterTrainingRuntime", "apiGroup": API_VERSION.split("/")[0]},
            "trainer": {
                "numNodes": 2,
                "image": "registry.example.com/team/train:1",
                "command": ["torchrun", "train.py"],
                "env": [{"name": "LR", "value": "0.1"}],
                "resourcesPerNode": resources,
                **trainer,
            },
            target.patches: list(patches) or [patch(target, pod)],
        },
    }


def put(obj: Mapping[str, Any], path: str, value: Any) -> Obj:
    """A copy with the value at `a.b[0]["c/d"]` replaced, added or (REMOVE) taken away."""
    out: Obj = copy.deepcopy(dict(obj))
    *way, last = keys(path)
    at: Any = out
    for key in way:
        at = at.setdefault(key, {}) if isinstance(at, dict) else at[key]
    if value is REMOVE:
        del at[last]
    elif isinstance(at, list) and last == len(at):
        at.append(value)
    else:
        at[last] = copy.deepcopy(value)
    return out


def keys(path: str) -> list[str | int]:
    """The parts of a path text."""
    out: list[str | int] = []
    while path:
        if path.startswith('["'):
            name, _, path = path[2:].partition('"]')
            out.append(name)
        elif path.startswith("["):
            index, _, path = path[1:].partition("]")
            out.append(int(index))
        else:
            path = path.removeprefix(".")
            end = min((i for i in (path.find("."), path.find("[")) if i >= 0), default=len(path))
            out.append(path[:end])
            path = path[end:]
    return out
