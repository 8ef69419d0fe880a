"""Safe reading of objects that may be malformed, and the parts of them that the checks look at.

Nothing here raises for a wrong shape: what is no mapping reads as empty. Wrong shapes are
reported by the schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from trainjob.kube.schema import Path
from trainjob.targets import GROUP, TARGETS, Target

STEP_LABEL: Final = f"{GROUP}/trainjob-ancestor-step"
TRAINER: Final = "trainer"
NODE: Final = "node"
LAUNCHER: Final = "launcher"
DATASET: Final = "dataset-initializer"
MODEL: Final = "model-initializer"
# The container that a job with this step label must have
# (kubeflow/trainer v2.3.0 pkg/webhooks/trainingruntime_webhook.go).
CONTAINER_OF_STEP: Final[Mapping[str, str]] = {TRAINER: NODE, DATASET: DATASET, MODEL: MODEL}
POLICIES: Final = ("torch", "mpi", "jax", "xgboost", "flux")
JOBS_PATH: Final[Path] = ("spec", "template", "spec", "replicatedJobs")
_EMPTY: Final[Mapping[str, Any]] = {}
_ORDER: Final[Mapping[str, int]] = {t.name: index for index, t in enumerate(TARGETS)}


def since(target: Target, minor: str) -> bool:
    """True for this minor of Trainer and every later one."""
    return _ORDER[target.name] >= _ORDER[minor]


def mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else _EMPTY


def listed(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def dig(value: Any, *keys: str) -> Any:
    """`value[k1][k2]...`, or None where there is no such thing."""
    for key in keys:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def entries(value: Any, *keys: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """(index, entry) for the mappings in a list of mappings."""
    items = dig(value, *keys) if keys else value
    if isinstance(items, list):
        for index, item in enumerate(items):
            if isinstance(item, Mapping):
                yield index, item


def text(value: Any) -> str:
    """The value if it is text, else an empty one."""
    return value if isinstance(value, str) else ""


def whole(value: Any, default: int) -> int:
    """The value if it is an integer, else `default`."""
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def count(value: Any) -> int | None:
    """The value if it is an integer, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


@dataclass(frozen=True, slots=True)
class Job:
    """One replicatedJob of a runtime. `spec` is the Job's, `pod` the pod's; paths are in the runtime."""

    index: int
    name: str
    step: str
    replicas: int
    spec: Mapping[str, Any]
    pod: Mapping[str, Any]

    @property
    def path(self) -> Path:
        return (*JOBS_PATH, self.index)

    @property
    def spec_path(self) -> Path:
        return (*JOBS_PATH, self.index, "template", "spec")

    @property
    def pod_path(self) -> Path:
        return (*JOBS_PATH, self.index, "template", "spec", "template", "spec")

    def containers(self, key: str = "containers") -> frozenset[str]:
        return frozenset(text(c.get("name")) for _, c in entries(self.pod, key))


def jobs(runtime: Mapping[str, Any]) -> tuple[Job, ...]:
    """The replicatedJobs of a runtime, in order."""
    out = []
    for index, job in entries(runtime, "spec", "template", "spec", "replicatedJobs"):
        template = mapping(job.get("template"))
        spec = mapping(template.get("spec"))
        step = text(dig(template, "metadata", "labels", STEP_LABEL))
        replicas = whole(job.get("replicas"), 1)
        pod = mapping(dig(spec, "template", "spec"))
        out.append(Job(index, text(job.get("name")), step, replicas, spec, pod))
    return tuple(out)


def policy(runtime: Mapping[str, Any]) -> str:
    """The framework of a runtime: torch, mpi, jax, xgboost, flux, or empty."""
    ml = mapping(dig(runtime, "spec", "mlPolicy"))
    return next((name for name in POLICIES if ml.get(name) is not None), "")


def claims(runtime: Mapping[str, Any]) -> frozenset[str]:
    """The volumes that JobSet adds to every pod which mounts them (volumeClaimPolicies)."""
    return frozenset(
        text(dig(template, "metadata", "name"))
        for _, entry in entries(runtime, "spec", "template", "spec", "volumeClaimPolicies")
        for _, template in entries(entry, "templates")
    )


# Volumes that plug-ins add (kubeflow/trainer v2.3.0 pkg/constants/constants.go).
_TOKEN: Final = frozenset({"kubeflow-trainer-token"})
_PLUGIN_VOLUMES: Final[Mapping[str, frozenset[str]]] = {
    "mpi": frozenset({"mpi-ssh-auth", "mpi-hostfile"}),
    "flux": frozenset({"flux-install", "/etc/flux-config", "flux-curve", "shared-memory", "spack-install"}),
}


def injected_volumes(runtime: Mapping[str, Any]) -> frozenset[str]:
    """Volumes that exist in the pods although the runtime's pod template does not list them."""
    return claims(runtime) | _TOKEN | _PLUGIN_VOLUMES.get(policy(runtime), frozenset())


@dataclass(frozen=True, slots=True)
class PodPatch:
    """What one patch of a TrainJob does to the pods of one job. Paths are in the TrainJob."""

    job: str
    job_path: Path
    pod: Mapping[str, Any]
    pod_path: Path


def pod_patches(obj: Mapping[str, Any], target: Target) -> Iterator[PodPatch]:
    """The patches of a TrainJob, whatever their shape in this Trainer version, in order.

    kubeflow/trainer pkg/apis/trainer/v1alpha1/trainjob_types.go: podSpecOverrides (v2.0.1),
    podTemplateOverrides (v2.1.0), runtimePatches (v2.2.0 and v2.3.0).
    """
    field = target.patches
    for index, entry in entries(obj, "spec", field):
        path: Path = ("spec", field, index)
        if field == "runtimePatches":
            inner: Path = ("trainingRuntimeSpec", "template", "spec", "replicatedJobs")
            for number, job in entries(entry, "trainingRuntimeSpec", "template", "spec", "replicatedJobs"):
                at = (*path, *inner, number)
                pod = mapping(dig(job, "template", "spec", "template", "spec"))
                pod_at = (*at, "template", "spec", "template", "spec")
                yield PodPatch(text(job.get("name")), (*at, "name"), pod, pod_at)
        else:
            flat = field == "podSpecOverrides"
            pod = entry if flat else mapping(entry.get("spec"))
            for number, job in entries(entry, "targetJobs"):
                at = (*path, "targetJobs", number, "name")
                yield PodPatch(text(job.get("name")), at, pod, path if flat else (*path, "spec"))
