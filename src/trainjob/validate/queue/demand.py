"""What a TrainJob asks of Kueue: one pod set a replicated job, all of them reserved at once.

kubernetes-sigs/kueue v0.17.0 pkg/controller/jobs/trainjob/trainjob_controller.go computes the pods
with the library of Trainer 2.2, whatever Trainer runs: there `resourcesPerNode` takes the place of
the runtime's resources. pkg/workload/resources.go then takes the defaults of a LimitRange and limits
for missing requests, and k8s.io/component-helpers resource/helpers.go adds up a pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

from trainjob.kube import quantity
from trainjob.targets import Target, target
from trainjob.validate.merge import Merged, merge
from trainjob.validate.queue.amounts import Amounts, count
from trainjob.validate.view import dig, entries, mapping, since, text

# The library that Kueue 0.17 to 0.19 computes with (kueue v0.17.0 go.mod; 0.18 and 0.19: v2.2.1).
LIBRARY: Final = target("2.2")
TOPOLOGY: Final = "kueue.x-k8s.io/podset-"
_LEVELS: Final = ("required-topology", "preferred-topology", "unconstrained-topology", "slice-required-topology")


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a namespace's LimitRanges fill in for containers."""

    limits: Mapping[str, Any] = field(default_factory=dict)
    requests: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PodSet:
    """The pods of one replicated job. `each` is one pod, in Kueue's units (`amounts`)."""

    name: str
    count: int
    each: Mapping[str, int]
    pod: Mapping[str, Any] = field(repr=False, default_factory=dict)
    # Annotations of the pod template, for topology-aware scheduling.
    annotations: Mapping[str, str] = field(repr=False, default_factory=dict)

    @property
    def total(self) -> Amounts:
        return {resource: self.count * amount for resource, amount in self.each.items()}

    @property
    def topology(self) -> str | None:
        """The topology level that the pods ask for, "" when they ask without a level, None when not."""
        for level in _LEVELS:
            if TOPOLOGY + level in self.annotations:
                return "" if level.startswith("unconstrained") else text(self.annotations[TOPOLOGY + level])
        return None


def total(podsets: Iterable[PodSet]) -> Amounts:
    """The sum over all pod sets: what the Workload reserves."""
    out: Amounts = {}
    for podset in podsets:
        for resource, amount in podset.total.items():
            out[resource] = out.get(resource, 0) + amount
    return out


def demand(
    job: Mapping[str, Any],
    runtime: Mapping[str, Any],
    trainer: Target,
    defaults: Defaults | None = None,
    *,
    as_kueue: bool = True,
) -> tuple[PodSet, ...]:
    """The pod sets of a TrainJob with its runtime, in order.

    `as_kueue=False` gives what the pods of this Trainer will really request; for Trainer 2.3, which
    merges resources, the two can differ. Raises ValueError for text that is no quantity.
    """
    used = LIBRARY if as_kueue and since(trainer, "2.2") else trainer
    return tuple(_podset(m, _annotations(job, m, used), defaults or Defaults()) for m in merge(job, runtime, used))


def _podset(merged: Merged, annotations: Mapping[str, str], defaults: Defaults) -> PodSet:
    each = {r: count(r, amount) for r, amount in _pod_requests(merged.pod, defaults).items()}
    # Trainer sets completions to the parallelism of every job (v2.2.0 plugins/jobset/jobset.go).
    return PodSet(merged.name, merged.job.replicas * max(merged.pods, 1), each, merged.pod, annotations)


def _annotations(job: Mapping[str, Any], merged: Merged, trainer: Target) -> dict[str, str]:
    """Of the pod template: the runtime's, with the TrainJob's patches over them."""
    out = dict(mapping(dig(merged.job.spec, "template", "metadata", "annotations")))
    for _, entry in entries(job, "spec", trainer.patches):
        if trainer.patches == "runtimePatches":
            path = ("trainingRuntimeSpec", "template", "spec", "replicatedJobs")
            for _, patched in entries(entry, *path):
                if patched.get("name") == merged.name:
                    out |= mapping(dig(patched, "template", "spec", "template", "metadata", "annotations"))
        elif any(t.get("name") == merged.name for _, t in entries(entry, "targetJobs")):
            out |= mapping(dig(entry, "metadata", "annotations"))
    return out


def _pod_requests(pod: Mapping[str, Any], defaults: Defaults) -> dict[str, Fraction]:
    """The larger of what runs together and what each init container needs, plus overhead."""
    running: dict[str, Fraction] = {}
    for _, container in entries(pod, "containers"):
        _add(running, _requests(container, defaults))
    sidecars: dict[str, Fraction] = {}
    peak: dict[str, Fraction] = {}
    for _, container in entries(pod, "initContainers"):
        own = _requests(container, defaults)
        if container.get("restartPolicy") == "Always":  # a sidecar: it stays
            _add(running, own)
            _add(sidecars, own)
            own = sidecars
        else:
            own = dict(own)
            _add(own, sidecars)
        for resource, amount in own.items():
            peak[resource] = max(peak.get(resource, amount), amount)
    for resource, amount in peak.items():
        running[resource] = max(running.get(resource, amount), amount)
    for resource, value in mapping(dig(pod, "resources", "requests")).items():
        if resource in ("cpu", "memory") or resource.startswith("hugepages-"):
            running[resource] = quantity.parse(value)
    _add(running, {r: quantity.parse(v) for r, v in mapping(pod.get("overhead")).items()})
    return running


def _requests(container: Mapping[str, Any], defaults: Defaults) -> dict[str, Fraction]:
    """Requests of a container: its own, then the LimitRange's default, then its limits."""
    limits = {**defaults.limits, **mapping(dig(container, "resources", "limits"))}
    requests = {**defaults.requests, **mapping(dig(container, "resources", "requests"))}
    return {resource: quantity.parse(value) for resource, value in {**limits, **requests}.items()}


def _add(into: dict[str, Fraction], other: Mapping[str, Fraction]) -> None:
    for resource, amount in other.items():
        into[resource] = into.get(resource, Fraction(0)) + amount
