"""What a rule is: the v1 fields it answers for (claims), and a function that reads and writes.

Every v1 field is answered for by exactly one claim; a contract test compares the union of the
claims with the leaves of the PyTorchJob CRD, and at run time a field without a claim is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from trainjob.findings import Finding, Location, Severity
from trainjob.intent import Failure, Policy
from trainjob.kube.yaml import Path
from trainjob.targets import Target
from trainjob.v1.pytorchjob import PyTorchJob, Replica

REPLICA: Final = "spec.pytorchReplicaSpecs.*"
POD: Final = f"{REPLICA}.template.spec"
CONTAINER: Final = f"{POD}.containers[]"


class Outcome(StrEnum):
    """What becomes of a v1 field."""

    CARRIED = "carried"
    TRANSLATED = "translated"
    DROPPED = "dropped, with a finding"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Claim:
    """`field` covers everything below it: `spec.x`, `spec.map.*`, `spec.list[]`."""

    field: str
    outcome: Outcome
    becomes: str = ""


class RefusedError(Exception):
    """A rule cannot keep what the job meant. Carries the error finding."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


@dataclass(slots=True)
class RoleDraft:
    """One pod template being translated. `replica` is where it is read from."""

    replica: Replica
    pods: int
    index: int
    image: str | None = None
    command: list[str] | None = None
    args: list[str] | None = None
    env: list[dict[str, Any]] = field(default_factory=list)
    resources: dict[str, Any] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=dict)
    container: dict[str, Any] = field(default_factory=dict)
    init_containers: list[dict[str, Any]] = field(default_factory=list)
    sidecars: list[dict[str, Any]] = field(default_factory=list)
    failure: Failure | None = None

    @property
    def main(self) -> Mapping[str, Any]:
        """The v1 training container."""
        return self.replica.containers[self.index]

    @property
    def main_path(self) -> Path:
        return (*self.replica.pod_path, "containers", self.index)

    @property
    def pod(self) -> Mapping[str, Any]:
        return self.replica.pod

    def at(self, *path: str | int) -> Path:
        """A path below the pod spec."""
        return (*self.replica.pod_path, *path)


@dataclass(slots=True)
class Draft:
    """The intent under construction. `roles` has one entry, or Master and Worker."""

    target: Target
    roles: list[RoleDraft]
    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    nodes: int = 1
    world_size: int = 1
    procs_per_node: int | None = None
    failure: Failure = Failure.RUNTIME
    backoff_limit: int | None = None
    active_deadline_seconds: int | None = None
    suspend: bool = False
    managed_by: str | None = None
    env_targets: list[str] = field(default_factory=list)
    # Env that elasticPolicy asks for, appended to the program's own.
    rendezvous: list[dict[str, Any]] = field(default_factory=list)
    policy: Policy = Policy.TORCH
    # What v1 set in every container of a kind other than PyTorchJob; sidecars get it too.
    shim: list[dict[str, Any]] = field(default_factory=list)

    @property
    def two_roles(self) -> bool:
        return len(self.roles) > 1


Apply = Callable[[PyTorchJob, Draft], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Rule:
    """`name` describes the pattern found. Findings of a rule carry its code."""

    code: str
    name: str
    claims: tuple[Claim, ...]
    apply: Apply
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Say:
    """Makes findings of one rule about one job."""

    code: str
    job: PyTorchJob

    def _finding(self, severity: Severity, path: Path | None, message: str, fix: str) -> Finding:
        where: Location | None = self.job.locate(path if path is not None else ())
        return Finding(self.code, severity, message, where, fix, self.job.subject)

    def note(self, path: Path | None, message: str, fix: str = "") -> Finding:
        return self._finding(Severity.NOTE, path, message, fix)

    def warning(self, path: Path | None, message: str, fix: str = "") -> Finding:
        return self._finding(Severity.WARNING, path, message, fix)

    def error(self, path: Path | None, message: str, fix: str = "") -> Finding:
        return self._finding(Severity.ERROR, path, message, fix)

    def refuse(self, path: Path | None, message: str, fix: str = "") -> RefusedError:
        return RefusedError(self.error(path, message, fix))
