"""The kinds of jobs that the v1 operators ran, and what differs between them.

Facts: kubeflow/trainer v1.9.4 pkg/apis/kubeflow.org/v1/{jax,xgboost,mpi,tensorflow,paddlepaddle}_types.go
and *_defaults.go, pkg/controller.v1/{jax/envvar,xgboost/xgboost,mpi/mpijob_controller}.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from trainjob.kube.yaml import Path


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind. `roles` in the order in which pods count; the operator gave the first container of name
    `container` its port and all of them `env`, after the user's own. `needed`: the role that must exist.

    `missing`: replicas where none are given, for roles that do not default to 1.
    """

    name: str
    plural: str
    specs: str
    roles: tuple[str, ...] = ()
    needed: str | None = None
    container: str = ""
    port_name: str = ""
    port: int = 0
    restart_policy: str = "Never"
    env: tuple[str, ...] = ()
    # The variable that held a pod's number.
    rank: str = ""
    missing: tuple[tuple[str, int], ...] = ()
    # Any container name is taken; the first container is the one that trains.
    any_container: bool = False

    @property
    def path(self) -> Path:
        """Where the roles stand."""
        return ("spec", self.specs)

    @property
    def one(self) -> str:
        """`a JAXJob`, `an MPIJob`."""
        return f"{'an' if self.name[0] in 'MX' else 'a'} {self.name}"

    def replicas(self, role: str) -> int:
        """What the controller sets where `replicas` is missing."""
        return dict(self.missing).get(role, 1)


PYTORCH: Final = Kind(
    "PyTorchJob", "pytorchjobs", "pytorchReplicaSpecs", ("Master", "Worker"), container="pytorch",
    port_name="pytorchjob-port", port=23456, restart_policy="OnFailure", rank="RANK",
    env=("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "PYTHONUNBUFFERED"),
)  # fmt: skip
JAX: Final = Kind(
    "JAXJob", "jaxjobs", "jaxReplicaSpecs", ("Worker",), needed="Worker", container="jax",
    port_name="jaxjob-port", port=6666, rank="PROCESS_ID",
    env=("PYTHONUNBUFFERED", "COORDINATOR_PORT", "COORDINATOR_ADDRESS", "NUM_PROCESSES", "PROCESS_ID"),
)  # fmt: skip
XGBOOST: Final = Kind(
    "XGBoostJob", "xgboostjobs", "xgbReplicaSpecs", ("Master", "Worker"), needed="Master", container="xgboost",
    port_name="xgboostjob-port", port=9999, rank="RANK",
    env=("MASTER_PORT", "MASTER_ADDR", "WORLD_SIZE", "RANK", "PYTHONUNBUFFERED", "WORKER_PORT", "WORKER_ADDRS"),
)  # fmt: skip
MPI: Final = Kind(
    "MPIJob", "mpijobs", "mpiReplicaSpecs", ("Launcher", "Worker"), needed="Launcher", container="mpi",
    port_name="mpi-port", port=9999, rank="OMPI_COMM_WORLD_RANK", missing=(("Worker", 0),), any_container=True,
    env=("OMPI_MCA_plm_rsh_agent", "OMPI_MCA_orte_default_hostfile"),
)  # fmt: skip
TENSORFLOW: Final = Kind("TFJob", "tfjobs", "tfReplicaSpecs")
PADDLE: Final = Kind("PaddleJob", "paddlejobs", "paddleReplicaSpecs")
# Gone from the operator with its release 1.9 (training-operator#2150); manifests are still about.
MXNET: Final = Kind("MXJob", "mxjobs", "mxReplicaSpecs")

KINDS: Final[Mapping[str, Kind]] = {k.name: k for k in (PYTORCH, MPI, TENSORFLOW, XGBOOST, JAX, PADDLE, MXNET)}
# For regular expressions; MENTIONED tells a text that is worth parsing.
ANY: Final = "|".join(KINDS)
MENTIONED: Final = re.compile(ANY)


def kind_of(data: Any) -> Kind:
    """The kind of an object as it was read; PyTorchJob for anything else."""
    name = data.get("kind") if isinstance(data, Mapping) else None
    return KINDS.get(str(name), PYTORCH)


def role_specs(data: Any) -> Mapping[str, Any]:
    """The roles of a v1 object as it was read: key as written -> its spec; empty where there are none."""
    spec = data.get("spec") if isinstance(data, Mapping) else None
    specs = spec.get(kind_of(data).specs) if isinstance(spec, Mapping) else None
    return specs if isinstance(specs, Mapping) else {}
