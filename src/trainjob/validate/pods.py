"""Checks of the pods that come out: mounts, images, resources, variables.

A runtime is checked alone; a TrainJob is checked after the merge, and only for what the merge
adds, so that a fault of the runtime is told once, at the runtime.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from trainjob.findings import Finding
from trainjob.kube import quantity
from trainjob.kube.schema import Path
from trainjob.validate.case import Case
from trainjob.validate.merge import Merged, merges_resources
from trainjob.validate.view import (
    NODE,
    Job,
    dig,
    entries,
    injected_volumes,
    mapping,
    text,
)


@dataclass(frozen=True, slots=True)
class Problem:
    """A fault of a pod spec. `where` is the path inside it, `key` names the fault in any copy."""

    code: str
    key: tuple[str, ...]
    where: Path
    message: str
    fix: str = ""


def problems(pod: Mapping[str, Any], injected: frozenset[str]) -> Iterator[Problem]:
    """Everything that is wrong with one pod spec. `injected`: volumes that are added later."""
    volumes = injected | {text(v.get("name")) for _, v in entries(pod, "volumes")}
    yield from _volume_sources(pod)
    init = {text(c.get("name")) for _, c in entries(pod, "initContainers")}
    for field in ("initContainers", "containers"):
        for index, container in entries(pod, field):
            name = text(container.get("name"))
            where: Path = (field, index)
            if field == "containers" and name in init:  # twice in one list is a matter of the schema
                told = f'the pod has a container and an init container "{name}"'
                yield Problem("TJ538", (name,), (*where, "name"), told)
            if not container.get("image"):
                yield Problem("TJ532", (name,), where, f'container "{name}" has no image')
            yield from _mounts(container, where, volumes)
            yield from _resources(container, where)
            yield from _env(container, where)


def _volume_sources(pod: Mapping[str, Any]) -> Iterator[Problem]:
    for index, volume in entries(pod, "volumes"):
        sources = sorted(key for key, value in volume.items() if key != "name" and value is not None)
        if len(sources) > 1:
            name = text(volume.get("name"))
            yield Problem(
                "TJ536", (name,), ("volumes", index),
                f'volume "{name}" has {len(sources)} sources: {", ".join(sources)}',
                "give the volume a name of its own; a patch is merged into a volume of the same name",
            )  # fmt: skip


def _mounts(container: Mapping[str, Any], where: Path, volumes: frozenset[str]) -> Iterator[Problem]:
    name = text(container.get("name"))
    paths: dict[str, str] = {}
    for index, mount in entries(container, "volumeMounts"):
        volume, at = text(mount.get("name")), text(mount.get("mountPath"))
        place = (*where, "volumeMounts", index)
        if volume and volume not in volumes:
            yield Problem(
                "TJ530", (name, volume), (*place, "name"),
                f'container "{name}" mounts volume "{volume}", which does not exist',
                "add the volume, or correct the name",
            )  # fmt: skip
        if at and at in paths:
            yield Problem(
                "TJ531", (name, at), (*place, "mountPath"),
                f'container "{name}" mounts both "{paths[at]}" and "{volume}" at {at}: only one is kept',
            )  # fmt: skip
        paths.setdefault(at, volume)


def is_device(resource: str) -> bool:
    """Resources that cannot be overcommitted: extended ones and huge pages.

    kubernetes v1.34 pkg/apis/core/v1/helper/helpers.go (IsExtendedResourceName, IsOvercommitAllowed).
    """
    if resource.startswith("hugepages-"):
        return True
    return "/" in resource and "kubernetes.io/" not in resource and not resource.startswith("requests.")


def _amount(value: Any) -> Fraction | None:
    """The amount, or None for what the schema refuses as a quantity."""
    try:
        return None if isinstance(value, float) else quantity.parse(value)
    except ValueError:
        return None


def _resources(container: Mapping[str, Any], where: Path) -> Iterator[Problem]:
    resources = container.get("resources")
    if not isinstance(resources, Mapping):
        return
    name = text(container.get("name"))
    requests, limits = mapping(resources.get("requests")), mapping(resources.get("limits"))
    for resource, value in requests.items():
        asked, limit = _amount(value), _amount(limits.get(resource))
        place = (*where, "resources", "requests", resource)
        if asked is None:
            continue
        if is_device(str(resource)):
            if limit is None and resource not in limits:
                yield Problem(
                    "TJ533", (name, resource), place,
                    f'container "{name}" requests {resource} without a limit',
                    f"set limits[{resource}] to {value} too",
                )  # fmt: skip
            elif limit is not None and asked != limit:
                yield Problem(
                    "TJ533", (name, resource), place,
                    f'container "{name}" requests {value} of {resource}, but its limit is {limits[resource]}',
                    "request and limit of a device must be equal",
                )  # fmt: skip
        elif limit is not None and asked > limit:
            yield Problem(
                "TJ534", (name, resource), place,
                f'container "{name}" requests {value} of {resource}, more than its limit {limits[resource]}',
            )  # fmt: skip
    for half, amounts in (("requests", requests), ("limits", limits)):
        for resource, value in amounts.items():
            amount = _amount(value) if is_device(str(resource)) else None
            if amount is not None and amount.denominator != 1:
                yield Problem(
                    "TJ535", (name, resource, half), (*where, "resources", half, resource),
                    f"{value} of {resource}: devices are given out whole",
                )  # fmt: skip


def _env(container: Mapping[str, Any], where: Path) -> Iterator[Problem]:
    for index, env in entries(container, "env"):
        if env.get("value") and env.get("valueFrom") is not None:
            name = text(env.get("name"))
            yield Problem(
                "TJ537", (text(container.get("name")), name), (*where, "env", index),
                f"{name} has both a value and a valueFrom",
            )  # fmt: skip


def check_runtime_pods(case: Case) -> Iterator[Finding]:
    """TJ530 to TJ538 for the pods of a runtime."""
    injected = injected_volumes(case.obj)
    for job in case.jobs:
        for p in problems(job.pod, injected):
            if p.code == "TJ531":  # mountPath is a key of this list: TJ503 has told it
                continue
            yield case.find(p.code, (*job.pod_path, *p.where), p.message, p.fix)


def check_merged_pods(case: Case) -> Iterator[Finding]:
    """TJ530 to TJ538 for what a TrainJob makes of its runtime; faults of the runtime alone are left out."""
    if case.runtime is None:
        return
    injected = injected_volumes(case.runtime)
    for merged in case.merged:
        if merged.pod is merged.job.pod:
            # Untouched. Yet a container without image can only be told here if the runtime is stored.
            known: frozenset[tuple[str, tuple[str, ...]]] = frozenset()
            found = [p for p in problems(merged.pod, injected) if p.code == "TJ532"]
        else:
            known = frozenset((p.code, p.key) for p in problems(merged.job.pod, injected))
            found = list(problems(merged.pod, injected))
        for p in found:
            if (p.code, p.key) not in known or p.code == "TJ532":
                message = p.message if merged.name == NODE else f'{p.message} (job "{merged.name}")'
                yield case.find(p.code, _blame(case, merged, p), message, p.fix or _why(case, p))


def check_alone(case: Case) -> Iterator[Finding]:
    """Without a runtime: what spec.trainer says about its own container."""
    if case.runtime is not None:
        return
    container = {"name": NODE, "image": "x", "resources": case.trainer.get("resourcesPerNode")}
    container["env"] = case.trainer.get("env")
    for p in problems({"containers": [container]}, frozenset()):
        yield case.find(p.code, _in_trainer(p.where), p.message, p.fix)


_IN_TRAINER: Final[Mapping[str | int, str]] = {"resources": "resourcesPerNode", "env": "env"}


def _in_trainer(where: Path) -> Path:
    """`containers[0].resources.x` as `spec.trainer.resourcesPerNode.x`."""
    return ("spec", "trainer", _IN_TRAINER[where[2]], *where[3:])


def _blame(case: Case, merged: Merged, problem: Problem) -> Path:
    """The place in the TrainJob that causes a problem of the merged pod; runtimeRef if none does."""
    where = problem.where
    if where[0] == "volumes" or "volumeMounts" in where:
        return _patch_place(case, merged.job, problem) or ("spec", "runtimeRef")
    if len(where) > 3 and where[2] == "resources":
        resource = where[4]
        for half in (where[3], "limits", "requests"):
            if resource in mapping(dig(case.trainer, "resourcesPerNode", str(half))):
                return ("spec", "trainer", "resourcesPerNode", half, resource)
    if len(where) > 3 and where[2] == "env":
        for index, env in entries(case.trainer, "env"):
            if env.get("name") == problem.key[1]:
                return ("spec", "trainer", "env", index)
        return _patch_place(case, merged.job, problem) or ("spec", "runtimeRef")
    if problem.code == "TJ532" and problem.key == (NODE,) and "image" in case.trainer:
        return ("spec", "trainer", "image")
    return ("spec", "runtimeRef")


_ENTRY_KEY: Final[Mapping[str, str]] = {"TJ530": "name", "TJ531": "mountPath", "TJ537": "name"}


def _patch_place(case: Case, job: Job, problem: Problem) -> Path | None:
    field = "env" if problem.code == "TJ537" else "volumeMounts"
    for patch in case.patches:
        if patch.job != job.name:
            continue
        if problem.code == "TJ536":
            for index, volume in entries(patch.pod, "volumes"):
                if volume.get("name") == problem.key[0]:
                    return (*patch.pod_path, "volumes", index)
            continue
        key = _ENTRY_KEY[problem.code]
        for part in ("containers", "initContainers"):
            for number, container in entries(patch.pod, part):
                for index, item in entries(container, field):
                    if (text(container.get("name")), text(item.get(key))) == problem.key:
                        return (*patch.pod_path, part, number, field, index, key)
    return None


def _why(case: Case, problem: Problem) -> str:
    if problem.code in ("TJ533", "TJ534") and merges_resources(case.target):
        return "Trainer 2.3 merges resourcesPerNode into the runtime's: set both requests and limits"
    if problem.code == "TJ532":
        return "set spec.trainer.image" if problem.key == (NODE,) else "the runtime must name an image"
    return ""
