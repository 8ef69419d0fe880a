"""A read-only view of one kubeflow.org/v1 PyTorchJob, and of the other kinds that have the same shape (kinds.py).

Facts: kubeflow/trainer v1.9.4 pkg/apis/kubeflow.org/v1/{pytorch_types,pytorch_defaults}.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from trainjob.findings import Location
from trainjob.kube.yaml import Path
from trainjob.v1.kinds import PYTORCH, Kind, kind_of, role_specs
from trainjob.v1.traced import derived

API_VERSION: Final = "kubeflow.org/v1"
KIND: Final = PYTORCH.name
CONTAINER: Final = PYTORCH.container
PORT_NAME: Final = PYTORCH.port_name
INIT_CONTAINER: Final = "init-pytorch"
DEFAULT_PORT: Final = PYTORCH.port
# Set by the operator in every container after the user's env, so a user's value never won.
OPERATOR_ENV: Final = PYTORCH.env
OPERATOR_PET_ENV: Final = (
    "PET_MASTER_ADDR", "PET_MASTER_PORT", "PET_NODE_RANK", "PET_NPROC_PER_NODE", "PET_NNODES",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Replica:
    """One entry of pytorchReplicaSpecs. `path` uses the key as the user wrote it."""

    role: str
    path: Path
    data: Mapping[str, Any]
    kind: Kind = PYTORCH

    @property
    def replicas(self) -> int:
        """Defaulted as the controller does: 1, and 0 for the Workers of an MPIJob."""
        count: int = self.data.get("replicas", self.kind.replicas(self.role))
        return count

    @property
    def template(self) -> Mapping[str, Any]:
        return dict_at(self.data, "template")

    @property
    def pod(self) -> Mapping[str, Any]:
        return dict_at(self.template, "spec")

    @property
    def metadata(self) -> Mapping[str, Any]:
        return dict_at(self.template, "metadata")

    @property
    def containers(self) -> list[Mapping[str, Any]]:
        return list(self.pod.get("containers") or [])

    def main(self) -> int | None:
        """Index of the training container: the one called `pytorch`, else the only one. An MPIJob has the first."""
        names = [c.get("name") for c in self.containers]
        if self.kind.any_container and names:
            return 0
        if self.kind.container in names:
            return names.index(self.kind.container)
        return 0 if len(names) == 1 else None

    @property
    def pod_path(self) -> Path:
        return (*self.path, "template", "spec")


@dataclass(frozen=True, slots=True)
class PyTorchJob:
    """The object after `normalise`; `locate` maps a path inside it to a place in the file."""

    data: Mapping[str, Any]
    locate: Callable[[Path], Location]
    roles: Mapping[str, Replica]
    other_roles: tuple[Path, ...] = ()
    renamed_roles: tuple[tuple[Path, str], ...] = ()
    # Documents of the same stream that a rule may read: ConfigMap name -> its data.
    scripts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    kind: Kind = PYTORCH

    @classmethod
    def of(
        cls,
        data: Mapping[str, Any],
        locate: Callable[[Path], Location],
        scripts: Mapping[str, Mapping[str, str]] | None = None,
    ) -> PyTorchJob:
        """The view; replica keys match case-insensitively, as the controller's defaulting does."""
        roles: dict[str, Replica] = {}
        others, renamed = [], []
        kind = kind_of(data)
        for key, spec in role_specs(data).items():
            path: Path = (*kind.path, key)
            role = key.capitalize()
            if role not in kind.roles or role in roles:
                others.append(path)
                continue
            if role != key:
                renamed.append((path, role))
            roles[role] = Replica(role, path, spec, kind)
        ordered: dict[str, Replica] = {r: roles[r] for r in kind.roles if r in roles}
        return cls(data, locate, ordered, tuple(others), tuple(renamed), scripts or {}, kind)

    @property
    def metadata(self) -> Mapping[str, Any]:
        return dict_at(self.data, "metadata")

    @property
    def name(self) -> str | None:
        return self.metadata.get("name") or None

    @property
    def namespace(self) -> str | None:
        return self.metadata.get("namespace") or None

    @property
    def spec(self) -> Mapping[str, Any]:
        return dict_at(self.data, "spec")

    @property
    def run_policy(self) -> Mapping[str, Any]:
        return dict_at(self.spec, "runPolicy")

    @property
    def elastic(self) -> Mapping[str, Any] | None:
        return self.spec.get("elasticPolicy")

    @property
    def nproc(self) -> str:
        """`spec.nprocPerNode`, else the deprecated elastic field, else `auto`."""
        own = self.spec.get("nprocPerNode")
        if own:
            return derived(str(own), own)
        old = (self.elastic or {}).get("nProcPerNode")
        return derived(str(old), old) if old is not None else "auto"

    @property
    def nproc_number(self) -> int | None:
        """`nproc` as a number, when it is one."""
        count = number(self.nproc)
        return None if count is None else derived(count, self.nproc)

    @property
    def subject(self) -> str:
        name = self.name or (self.metadata.get("generateName") or "")
        prefix = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind.name} {prefix}{name}" if name else f"{self.kind.name} without a name"


def dict_at(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The mapping at `key`, or an empty one."""
    value = data.get(key)
    return value if isinstance(value, Mapping) else {}


def number(text: str) -> int | None:
    """The number that a text of decimal digits stands for; None for other texts and absurd lengths."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None
