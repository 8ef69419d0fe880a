"""What a training job means, without saying which object carries it.

The builder and the migrator both make a `TrainingIntent`; `emit.build` alone turns it into
objects. Fragments of a pod (volumes, affinity, ...) are plain Kubernetes core/v1 mappings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Env = tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Program:
    """What one container runs. `resources` is a ResourceRequirements mapping, for one node."""

    image: str | None = None
    command: tuple[str, ...] | None = None
    args: tuple[str, ...] | None = None
    env: Env = ()
    resources: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PodParts:
    """A pod template around the program.

    `spec`: PodSpec fields without the containers. `container`: fields of the training container
    that a program has no word for (volumeMounts, securityContext, envFrom, workingDir, ...).
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    spec: Mapping[str, Any] = field(default_factory=dict)
    container: Mapping[str, Any] = field(default_factory=dict)
    init_containers: tuple[Mapping[str, Any], ...] = ()
    sidecars: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Role:
    """A group of equal pods: `pods` of them, each with this program in this pod."""

    pods: int
    program: Program
    pod: PodParts = field(default_factory=PodParts)
    # Only where one role's pods fail otherwise than the job's `lifetime` says.
    failure: Failure | None = None


class Policy(StrEnum):
    """The mlPolicy of the runtime that a job needs: who tells its processes about each other."""

    TORCH = "torch"
    JAX = "jax"
    XGBOOST = "xgboost"
    MPI = "mpi"


class Failure(StrEnum):
    """What a failed training process means for its pod."""

    RUNTIME = "as the runtime says"
    NEVER = "the job fails at the first failed pod"
    EXIT_CODE = "exit codes 1 to 127 fail the job, others retry the pod"


@dataclass(frozen=True, slots=True)
class Lifetime:
    """How the job ends. `backoff_limit` counts container restarts of the whole job."""

    failure: Failure = Failure.RUNTIME
    backoff_limit: int | None = None
    active_deadline_seconds: int | None = None
    suspend: bool = False
    managed_by: str | None = None


@dataclass(frozen=True, slots=True)
class TrainingIntent:
    """One training job. Exactly one of `name` and `generate_name`, or neither inside a template.

    `worker` is set only when two kinds of pods are needed: then `role` is rank 0 alone and the
    rendezvous variables are part of both programs' env. With `Policy.MPI` it is always set: `role` is
    the launcher, `worker` the nodes that it starts processes on, `procs_per_node` their slots.
    """

    role: Role
    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    procs_per_node: int | None = None
    worker: Role | None = None
    lifetime: Lifetime = field(default_factory=Lifetime)
    # Sidecars that need the PET_* variables of the training container.
    env_targets: tuple[str, ...] = ()
    policy: Policy = Policy.TORCH

    @property
    def nodes(self) -> int:
        """Pods in all, of both roles."""
        return self.role.pods + (self.worker.pods if self.worker else 0)
