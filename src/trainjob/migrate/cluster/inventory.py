"""The inventory of a cluster: facts from the API server, and what follows from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from trainjob import targets
from trainjob.findings import Finding, Location, Severity
from trainjob.migrate import codes
from trainjob.migrate.cluster.client import Obj, Reader, ReadError, Resource
from trainjob.migrate.cluster.creators import KINDS, Creator, creators
from trainjob.migrate.cluster.jobs import LiveJob, live_job
from trainjob.migrate.cluster.needs import Need, TargetState, check, look_at, needs
from trainjob.migrate.job import Options
from trainjob.migrate.kinds.instead import MPI_OPERATOR
from trainjob.v1 import kinds

JOBS: Final = Resource("kubeflow.org/v1", "pytorchjobs", "PyTorchJob")
# Kinds that are not installed are empty lists. The mpi-operator serves its MPIJobs under another version.
OTHER_JOBS: Final = (
    *(Resource("kubeflow.org/v1", k.plural, k.name) for k in kinds.KINDS.values() if k is not kinds.PYTORCH),
    Resource(MPI_OPERATOR, kinds.MPI.plural, kinds.MPI.name),
)
_CRDS: Final = Resource("apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition", False)
_DEPLOYMENTS: Final = Resource("apps/v1", "deployments", "Deployment")


@dataclass(slots=True)
class Inventory:
    """Everything that was found. `versions`: name -> version of CRDs and controllers of the source."""

    context: str
    namespace: str | None
    jobs: list[LiveJob] = field(default_factory=list)
    creators: list[Creator] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)
    target: TargetState | None = None
    findings: list[Finding] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        state = self.target
        counts = {v: sum(j.verdict == v for j in self.jobs) for v in ("ready", "look", "blocked", "owned", "finished")}
        return {
            "source": {"context": self.context, "namespace": self.namespace, "versions": self.versions},
            "jobs": [j.to_dict() for j in self.jobs],
            "counts": {**counts, "running": sum(j.runs for j in self.jobs)},
            "creators": [c.to_dict() for c in self.creators],
            "unread": self.unread,
            "target": None if state is None else {
                "context": state.context,
                "trainer": state.trainer.name if state.trainer is not None else None,
                "release": state.release,
                "missing": [{"kind": n.kind, "namespace": n.namespace, "name": n.name} for n in state.missing],
                "unread": state.unread,
            },
            "findings": [f.to_dict() for f in self.findings],
        }  # fmt: skip


def take(source: Reader, target: Reader, namespace: str | None, options: Options) -> Inventory:
    """Look at one namespace, or all (None). Raises ClusterError when a cluster does not answer at all."""
    out = Inventory(source.context, namespace)
    out.versions = dict(_versions(source))
    for resource in (JOBS, *OTHER_JOBS):
        for obj in _read(source, resource, namespace, out):
            out.jobs.append(live_job(obj, options))
    for resource in KINDS:
        if namespace is not None and not resource.namespaced:
            continue
        for obj in _read(source, resource, namespace, out):
            out.creators += creators(obj)
    out.jobs.sort(key=lambda j: (j.namespace, j.name, j.kind))
    moving = [j for j in out.jobs if j.moves]
    users: dict[Need, list[str]] = {}
    for job in moving:
        assert job.output is not None
        for need in needs(job.output, job.namespace):
            users.setdefault(need, []).append(f"{job.namespace}/{job.name}")
    out.target = look_at(target, users, {j.namespace for j in moving})
    out.findings = [*_findings(out), *check(out.target, moving, users, options.target)]
    return out


def _read(reader: Reader, resource: Resource, namespace: str | None, out: Inventory) -> Iterator[Obj]:
    """A list; a kind that is not installed is empty, one that may not be read is noted."""
    try:
        yield from reader.items(resource, namespace)
    except ReadError as err:
        if err.status != 404:
            out.unread.append(f"{resource.shown} ({err.reason})")
            out.findings.append(_unread(resource, err, out))


def _unread(resource: Resource, err: ReadError, out: Inventory) -> Finding:
    wide = out.namespace is None and err.status == 403
    severity = Severity.ERROR if resource == JOBS else Severity.WARNING
    fix = f"ask for the verb list on {resource.shown}"
    return Finding(codes.CLUSTER_READ, severity, f"{resource.shown} could not be listed, so they are not in here: "
                   f"{err.reason}", Location(f"context {out.context}"), f"{fix}, or say -n NAMESPACE" if wide else fix,
                   unreadable=resource == JOBS)  # fmt: skip


def _versions(reader: Reader) -> Iterator[tuple[str, str]]:
    """Versions that the source serves, and the image of the v1 operator where it may be read."""
    for name in ("pytorchjobs.kubeflow.org", f"trainjobs.{targets.GROUP}"):
        try:
            crd = reader.one(_CRDS, name)
        except ReadError as err:
            yield name, f"not readable ({err.status})"
            continue
        served = [v["name"] for v in ((crd or {}).get("spec") or {}).get("versions") or () if v.get("served")]
        yield name, ", ".join(served) if crd is not None else "not installed"
    for namespace in ("kubeflow", "opendatahub", "redhat-ods-applications"):
        try:
            for deployment in reader.items(_DEPLOYMENTS, namespace):
                name = str((deployment.get("metadata") or {}).get("name"))
                if "training-operator" in name:
                    yield f"{namespace}/{name}", _image(deployment)
        except ReadError:
            continue


def _image(deployment: Obj) -> str:
    pod = (((deployment.get("spec") or {}).get("template") or {}).get("spec")) or {}
    return str(next((c.get("image") for c in pod.get("containers") or ()), ""))


def _findings(out: Inventory) -> Iterable[Finding]:
    yield from out.findings
    where = Location(f"context {out.context}")
    for job in out.jobs:
        if job.verdict == "blocked":
            yield from (f for f in job.findings if f.severity is Severity.ERROR)
        if job.runs and job.verdict != "owned":
            yield Finding(
                codes.RUNNING,
                Severity.WARNING,
                f"{job.namespace}/{job.name} is {job.state}: applied now, its TrainJob trains a second time, on as "
                "many GPUs again",
                where,
                "wait until it has finished, or delete it first; its checkpoints decide where training goes on",
            )
    for creator in out.creators:
        if creator.owner:
            continue  # its owner is told
        version = f" (kubeflow-training {creator.sdk})" if creator.sdk else ""
        what = f"creates PyTorchJobs at {creator.where}" if creator.how == "manifest" else f"uses the v1 SDK{version}"
        when = f", on the schedule {creator.schedule}" if creator.schedule else ""
        stopped = ", suspended now" if creator.suspended else ""
        yield Finding(codes.CREATOR, Severity.WARNING, f"{creator.subject} {what}{when}{stopped}",
                      where, creator.fix)  # fmt: skip
