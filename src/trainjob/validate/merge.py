"""The pods that a TrainJob and its runtime make together. Pure: nothing is changed in place.

Order (kubeflow/trainer v2.3.0 pkg/runtime/core/trainingruntime.go and
pkg/runtime/framework/plugins/jobset/builder.go): patches in list order as strategic merges, then
spec.trainer.resourcesPerNode, then image, command, args and env of spec.trainer. What the plug-ins
add (PET_* and the like) is left out, and so is the order of merged lists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from trainjob.targets import Target
from trainjob.validate.view import (
    LAUNCHER,
    NODE,
    TRAINER,
    Job,
    PodPatch,
    count,
    dig,
    entries,
    jobs,
    mapping,
    pod_patches,
    policy,
    since,
    text,
    whole,
)

# Lists that a strategic merge joins by a key; every other list is replaced
# (patchStrategy tags of k8s.io/api v0.34 core/v1/types.go).
_MERGE_KEYS: Final[Mapping[str, str]] = {
    "containers": "name", "initContainers": "name", "env": "name", "volumes": "name",
    "volumeMounts": "mountPath", "volumeDevices": "devicePath", "imagePullSecrets": "name",
    "schedulingGates": "name",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Merged:
    """One replicatedJob after the merge: its pod spec and how many pods one Job of it has."""

    job: Job
    pod: Mapping[str, Any]
    pods: int

    @property
    def name(self) -> str:
        return self.job.name

    def container(self, name: str = NODE) -> Mapping[str, Any]:
        """The container of this name, or an empty mapping."""
        for _, container in entries(self.pod, "containers"):
            if container.get("name") == name:
                return container
        return {}


def merge(
    trainjob: Mapping[str, Any],
    runtime: Mapping[str, Any],
    target: Target,
    all_jobs: Sequence[Job] | None = None,
    patches: Sequence[PodPatch] | None = None,
) -> tuple[Merged, ...]:
    """Every replicatedJob of the runtime as it will run for this TrainJob.

    A job that nothing touches keeps the very pod object of the runtime. `all_jobs` and `patches`
    spare the work of finding them when the caller has them.
    """
    trainer = mapping(dig(trainjob, "spec", "trainer"))
    patches = tuple(pod_patches(trainjob, target)) if patches is None else patches
    out = []
    for job in jobs(runtime) if all_jobs is None else all_jobs:
        pod = job.pod
        for patch in patches:
            if patch.job == job.name and patch.pod:
                pod = _join(pod, patch.pod)
        if trainer:
            pod = _with_trainer(pod, job, trainer, runtime, target)
        out.append(Merged(job, pod, _pods(job, trainer, runtime)))
    return tuple(out)


def _join(base: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(base)
    for key, value in patch.items():
        # A patch goes through Go types: null and empty lists are dropped (omitempty).
        if value is None or value == [] or key == "targetJobs":
            continue
        old = base.get(key)
        if isinstance(value, list) and isinstance(old, list) and key in _MERGE_KEYS:
            out[key] = _join_list(old, value, _MERGE_KEYS[key])
        elif isinstance(value, Mapping) and isinstance(old, Mapping):
            out[key] = _join(old, value)
        else:
            out[key] = value
    return out


def _join_list(base: list[Any], patch: list[Any], key: str) -> list[Any]:
    out = list(base)
    for item in patch:
        name = dig(item, key)
        for index, old in enumerate(base):
            if dig(old, key) == name and isinstance(item, Mapping) and isinstance(old, Mapping):
                out[index] = _join(old, item)
                break
        else:
            out.append(item)
    return out


def _with_trainer(
    pod: Mapping[str, Any], job: Job, trainer: Mapping[str, Any], runtime: Mapping[str, Any], target: Target
) -> Mapping[str, Any]:
    is_trainer = job.step == TRAINER
    # An MPI launcher that is a node too: job `node` gets resources and env, not the image.
    follows = job.name == NODE and launcher_is_node(runtime) and since(target, "2.1")
    if not is_trainer and not follows:
        return pod
    containers = dig(pod, "containers")
    if not isinstance(containers, list):
        return pod
    for index, container in enumerate(containers):
        if dig(container, "name") != NODE:
            continue
        out = dict(container)
        if is_trainer:
            for key in ("image", "command", "args"):
                value = trainer.get(key)
                if value is not None and value != []:
                    out[key] = value
        resources = trainer.get("resourcesPerNode")
        if isinstance(resources, Mapping):
            merged = _resources(mapping(container.get("resources")), resources, runtime, target)
            if merged is not None:
                out["resources"] = merged
        env = trainer.get("env")
        if isinstance(env, list) and env:
            old = container.get("env")
            out["env"] = _upsert(old if isinstance(old, list) else [], env)
        return {**pod, "containers": [*containers[:index], out, *containers[index + 1 :]]}
    return pod


def _upsert(base: list[Any], new: list[Any]) -> list[Any]:
    """Replace whole entries of the same name in place, append the others."""
    fresh = {text(dig(item, "name")): item for item in new}
    out = [fresh.pop(text(dig(item, "name")), item) for item in base]
    return [*out, *fresh.values()]


def _resources(
    base: Mapping[str, Any], new: Mapping[str, Any], runtime: Mapping[str, Any], target: Target
) -> dict[str, Any] | None:
    """Limits and requests of the merge; `claims` never survive. None: the runtime's stay."""
    halves = ("limits", "requests")
    if merges_resources(target):
        if dig(runtime, "spec", "mlPolicy") is None:
            return None
        joined = {half: {**mapping(base.get(half)), **mapping(new.get(half))} for half in halves}
        return {half: amounts for half, amounts in joined.items() if amounts}
    given = {half: dict(new[half]) for half in halves if isinstance(new.get(half), Mapping)}
    return given or None


def merges_resources(target: Target) -> bool:
    """Trainer 2.3 merges resourcesPerNode into the runtime's, key by key; before, it replaced them."""
    return since(target, "2.3")


def launcher_is_node(runtime: Mapping[str, Any]) -> bool:
    """An MPI runtime whose launcher takes part in the training."""
    return dig(runtime, "spec", "mlPolicy", "mpi", "runLauncherAsNode") is True


def _pods(job: Job, trainer: Mapping[str, Any], runtime: Mapping[str, Any]) -> int:
    """Parallelism and completions of the Job (v2.3.0 pkg/runtime/framework/plugins/*)."""
    ml = mapping(dig(runtime, "spec", "mlPolicy"))
    asked = count(trainer.get("numNodes"))
    if policy(runtime) == "mpi" and job.name in (NODE, LAUNCHER):
        if job.name == NODE and asked is not None:
            return max(asked - 1, 1) if launcher_is_node(runtime) else asked
        if job.name == LAUNCHER:
            return whole(ml.get("numNodes"), 1)
    parallelism = whole(job.spec.get("parallelism"), 1)
    if job.step != TRAINER:
        return parallelism
    if asked is not None:
        return asked
    return whole(ml.get("numNodes"), 1) if dig(runtime, "spec", "mlPolicy") is not None else parallelism
