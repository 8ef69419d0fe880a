"""The curated runtimes, read from `runtimes/**/*.yaml`: the same bytes that kustomize lists.

Matching data are labels in the YAML (`trainjob.dev/...`); numbers are read from its spec.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from trainjob.kube import quantity
from trainjob.targets import GROUP

LABEL: Final = "trainjob.dev"
TOPOLOGY: Final = f"{LABEL}/topology"
ACCELERATOR: Final = f"{LABEL}/accelerator"
PURPOSE: Final = f"{LABEL}/purpose"
MATURITY: Final = f"{LABEL}/maturity"
SUMMARY: Final = f"{LABEL}/summary"
# Trainer's own label: its webhook warns of a runtime that has it, and of a job that names one
# (kubeflow/trainer v2.3.0 pkg/constants/constants.go, docs/operator-guides/runtime.md).
SUPPORT: Final = f"{GROUP}/support"
DEPRECATED: Final = "deprecated"
# Ours: the name of the runtime to take instead.
REPLACED_BY: Final = f"{LABEL}/replaced-by"
V1_COMPAT: Final = "torch-v1-compat"
V1_COMPAT_MULTINODE: Final = "torch-v1-compat-multinode"


class CatalogError(LookupError):
    """No such runtime, or a runtime file that cannot be used. The text says the remedy."""


def runtimes_root() -> Path:
    """The folder of the runtimes: inside the wheel, else that of the checkout."""
    packaged = Path(__file__).parent / "_data" / "runtimes"
    if packaged.is_dir():
        return packaged
    checkout = Path(__file__).parents[2] / "runtimes"
    if checkout.is_dir():
        return checkout
    raise CatalogError("the package holds no runtimes: reinstall trainjob")


@dataclass(frozen=True, slots=True)
class Runtime:
    """One runtime. `gpus` and `nodes` are per job defaults: GPUs of one node, number of nodes."""

    name: str
    kind: str
    manifest: Mapping[str, Any] = field(repr=False)
    file: Path

    @property
    def labels(self) -> Mapping[str, str]:
        return self.manifest["metadata"].get("labels", {})  # type: ignore[no-any-return]

    @property
    def topology(self) -> str:
        return self.labels.get(TOPOLOGY, "")

    @property
    def accelerator(self) -> str:
        return self.labels.get(ACCELERATOR, "")

    @property
    def purpose(self) -> str:
        return self.labels.get(PURPOSE, "")

    @property
    def gated(self) -> bool:
        """True for a runtime that no overlay installs unless its component is chosen."""
        return self.labels.get(MATURITY) == "gated"

    @property
    def deprecated(self) -> bool:
        """True for a runtime that new jobs should not name any more."""
        return self.labels.get(SUPPORT) == DEPRECATED

    @property
    def replaced_by(self) -> str:
        """The runtime to take instead of a deprecated one; "" when none is named."""
        return str(self.manifest["metadata"].get("annotations", {}).get(REPLACED_BY, ""))

    @property
    def notice(self) -> str:
        """What to say of a deprecated runtime; "" for the others."""
        if not self.deprecated:
            return ""
        return "deprecated" + (f", use {self.replaced_by}" if self.replaced_by else "")

    @property
    def summary(self) -> str:
        return str(self.manifest["metadata"].get("annotations", {}).get(SUMMARY, ""))

    @property
    def nodes(self) -> int:
        return int(self.manifest["spec"].get("mlPolicy", {}).get("numNodes", 1))

    @property
    def shown_nodes(self) -> str:
        """The number of nodes for a table; a migrated job brings its own."""
        return "any" if self.purpose == "v1-compat" and self.gated else str(self.nodes)

    @property
    def shown_gpus(self) -> str:
        """GPUs per node for a table; a runtime without resources takes the job's."""
        return str(self.gpus) if self.resources else "as the job"

    @property
    def job(self) -> Mapping[str, Any]:
        """The replicatedJob that trains."""
        for job in self.manifest["spec"]["template"]["spec"]["replicatedJobs"]:
            if job["name"] == "node":
                return job  # type: ignore[no-any-return]
        raise CatalogError(f"{self.file}: no replicatedJob `node`")

    @property
    def pod(self) -> Mapping[str, Any]:
        return self.job["template"]["spec"]["template"]["spec"]  # type: ignore[no-any-return]

    @property
    def container(self) -> Mapping[str, Any]:
        """The training container, called `node`."""
        for container in self.pod["containers"]:
            if container["name"] == "node":
                return container  # type: ignore[no-any-return]
        raise CatalogError(f"{self.file}: no container `node`")

    @property
    def image(self) -> str:
        return str(self.container.get("image", ""))

    @property
    def resources(self) -> Mapping[str, Any]:
        return self.container.get("resources", {})  # type: ignore[no-any-return]

    @property
    def gpus(self) -> int:
        return int(sum(quantity.accelerators(self.resources).values()))


class Catalog(Mapping[str, Runtime]):
    """All runtimes by name. A missing one raises CatalogError that lists what exists."""

    def __init__(self, root: Path | None = None) -> None:
        # PyYAML only where files are read: validation needs the labels alone.
        from trainjob.kube.yaml import load

        self.root = root or runtimes_root()
        self._runtimes: dict[str, Runtime] = {}
        for file in sorted(self.root.rglob("*.yaml")):
            if file.name == "kustomization.yaml":
                continue
            for doc in load(file.read_text(encoding="utf-8"), str(file)):
                if doc.data is not None:
                    runtime = Runtime(doc.data["metadata"]["name"], doc.data["kind"], doc.data, file)
                    self._runtimes[runtime.name] = runtime

    def __getitem__(self, name: str) -> Runtime:
        try:
            return self._runtimes[name]
        except KeyError:
            known = ", ".join(self._runtimes)
            raise CatalogError(f"no runtime {name!r} in the catalogue; it has: {known}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._runtimes

    def __iter__(self) -> Iterator[str]:
        return iter(self._runtimes)

    def __len__(self) -> int:
        return len(self._runtimes)


@cache
def catalog() -> Catalog:
    """The packaged catalogue, read once."""
    return Catalog()
