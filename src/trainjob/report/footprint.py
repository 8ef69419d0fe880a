"""How many pods and devices a job asks for: in v1, as its Worker count suggests, and in v2.

v1 started the Master's pod beside the Workers', so a reader of `Worker: 2` counts one pod too few.
The v2 numbers are read from the objects that were written, not from the v1 job: where both agree, the
migration kept them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from trainjob.emit import NODE, STEP_LABEL, TrainJob
from trainjob.kube import quantity
from trainjob.v1.kinds import kind_of, role_specs
from trainjob.v1.pytorchjob import dict_at

Devices = Mapping[str, Fraction]


@dataclass(frozen=True, slots=True)
class Footprint:
    """Pods, and devices by resource name, of a whole job or of many."""

    pods: int = 0
    devices: Devices = field(default_factory=dict)

    def __add__(self, other: Footprint) -> Footprint:
        names = dict.fromkeys([*self.devices, *other.devices])
        zero = Fraction(0)
        total = {n: self.devices.get(n, zero) + other.devices.get(n, zero) for n in names}
        return Footprint(self.pods + other.pods, total)

    @property
    def device_text(self) -> str:
        """`6 nvidia.com/gpu`; `0` without devices."""
        shown = [f"{quantity.show(n)} {name}" for name, n in sorted(self.devices.items()) if n]
        return ", ".join(shown) or "0"

    def more_devices_than(self, other: Footprint) -> str:
        """What this one has beyond `other`: `+2 nvidia.com/gpu`, or ""."""
        zero = Fraction(0)
        names = sorted({*self.devices, *other.devices})
        diff = {n: self.devices.get(n, zero) - other.devices.get(n, zero) for n in names}
        return ", ".join(f"{'+' if d > 0 else ''}{quantity.show(d)} {n}" for n, d in diff.items() if d)


def total(parts: Iterable[Footprint]) -> Footprint:
    """The sum."""
    out = Footprint()
    for part in parts:
        out += part
    return out


def per_pod(containers: Iterable[Any]) -> Devices:
    """The devices of all containers of one pod; what cannot be read counts as none."""
    out: dict[str, Fraction] = {}
    for container in containers:
        resources = container.get("resources") if isinstance(container, Mapping) else None
        try:
            found = quantity.accelerators(resources) if isinstance(resources, Mapping) else {}
        except (ValueError, AttributeError):  # such a job is refused, with a finding that says why
            found = {}
        for name, amount in found.items():
            out[name] = out.get(name, Fraction(0)) + amount
    return out


def times(pods: int, devices: Devices) -> Footprint:
    """`pods` equal pods with these devices each."""
    return Footprint(pods, {name: amount * pods for name, amount in devices.items()})


def v1_roles(data: Any) -> dict[str, Footprint]:
    """The footprint of each role of a v1 object as it was read; nothing for what is no such object."""
    kind = kind_of(data)
    out: dict[str, Footprint] = {}
    for key, spec in role_specs(data).items():
        if not isinstance(spec, Mapping):
            continue
        count = spec.get("replicas")
        count = kind.replicas(str(key).capitalize()) if count is None else count
        pods = count if isinstance(count, int) and not isinstance(count, bool) and count > 0 else 0
        containers = dict_at(dict_at(spec, "template"), "spec").get("containers")
        out[str(key).capitalize()] = times(pods, per_pod(containers if isinstance(containers, list) else []))
    return out


def v1(data: Any) -> Footprint:
    """What v1 ran: the pods of all roles."""
    return total(v1_roles(data).values())


def suggested(data: Any) -> Footprint:
    """What somebody counts who reads only `Worker.replicas`; the whole job where there is no Worker."""
    roles = v1_roles(data)
    return roles["Worker"] if "Worker" in roles else total(roles.values())


def v2(job: TrainJob) -> Footprint:
    """What the written objects ask for. A catalogue runtime for v1 jobs has no devices of its own."""
    trainer = job.manifest["spec"].get("trainer", {})
    nodes = int(trainer.get("numNodes", 1))
    own = {"resources": trainer.get("resourcesPerNode")} if trainer.get("resourcesPerNode") else None
    if job.runtime is None:
        return times(nodes, per_pod([own] if own else []))
    out = Footprint()
    for replicated in job.runtime["spec"]["template"]["spec"]["replicatedJobs"]:
        node = replicated["name"] == NODE
        # What `trainer` speaks of: the launcher of an MPI runtime, else the job `node`.
        labels = dict_at(dict_at(replicated["template"], "metadata"), "labels")
        trainer_job = STEP_LABEL in labels
        containers = replicated["template"]["spec"]["template"]["spec"]["containers"]
        parts = [own if own and trainer_job and c["name"] == NODE else c for c in containers]
        out += times(nodes if node else int(replicated.get("replicas", 1)), per_pod(parts))
    return out
