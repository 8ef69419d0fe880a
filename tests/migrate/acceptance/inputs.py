"""The v1 side, read without the product: the inputs, their PyTorchJobs and v1's own arithmetic."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[3]
CASES = ROOT / "migration" / "cases"

ALL = tuple(range(1, 55))
# Inputs that have to be refused as a whole.
REFUSED = frozenset({13, 16, 29, 33, 34, 35, 37, 39, 41, 44, 46, 51})
# Inputs for which a refusal with a reason is as right as the conversion.
MAY_BE_REFUSED = frozenset({6, 11, 19, 24, 52, 54})
CONVERTING = tuple(n for n in ALL if n not in REFUSED)
UNREADABLE = frozenset({13, 16, 29, 51})

SHIM = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "PYTHONUNBUFFERED")
RESERVED = frozenset({"PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"})

_SUFFIX = {
    "": Fraction(1),
    **{s: Fraction(1, 1000**i) for i, s in enumerate("num"[::-1], 1)},
    **{s: Fraction(1000) ** i for i, s in enumerate("kMGTPE", 1)},
    **{s: Fraction(1024) ** i for i, s in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)},
}


@dataclass(frozen=True)
class Source:
    """One input file as it lies in migration/cases."""

    number: int
    path: Path

    @cached_property
    def text(self) -> str:
        return self.path.read_bytes().decode("utf-8")

    @property
    def file(self) -> str:
        return self.path.parent.name + self.path.suffix

    @cached_property
    def chunks(self) -> list[str]:
        """The text of each document without its `---` lines and outer blank lines."""
        parts = re.split(r"(?m)^---[ \t]*$\n?", self.text)
        return [part.strip("\n") for part in parts if part.strip()]

    @property
    def others(self) -> list[str]:
        """The documents that hold no PyTorchJob and have to come out byte for byte."""
        return [c for c in self.chunks if not re.search(r"kind: \"?PyTorchJob", c)]

    def lines_of(self, pattern: str) -> list[int]:
        return [i for i, line in enumerate(self.text.splitlines(), 1) if re.search(pattern, line)]


@cache
def source(number: int) -> Source:
    (folder,) = CASES.glob(f"{number:02d}-*")
    (path,) = folder.glob("before.*")
    return Source(number, path)


def quantity(value: Any) -> Fraction:
    """A Kubernetes quantity as an exact number."""
    match = re.fullmatch(r"([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)([A-Za-z]*)", str(value))
    assert match, f"no quantity: {value!r}"
    return Fraction(match[1]) * _SUFFIX[match[2]]


def walk(node: Any) -> Iterator[dict[str, Any]]:
    """Every mapping below `node`, also those inside strings that are YAML text of an object."""
    if isinstance(node, dict):
        yield node
        for value in node.values():
            yield from walk(value)
    elif isinstance(node, list):
        for value in node:
            yield from walk(value)
    elif isinstance(node, str) and re.search(r"^kind: \"?(PyTorchJob|TrainJob)", node, re.M):
        yield from walk(yaml.safe_load(node))


def env_map(entries: list[dict[str, Any]] | None) -> dict[str, dict[str, Any]]:
    """Env entries by name; the last one wins, as in Kubernetes."""
    return {entry["name"]: entry for entry in entries or []}


def prune(node: Any) -> Any:
    """`node` without null, empty, false and zero values; a volume's `emptyDir: {}` stays."""
    if isinstance(node, dict):
        out = {}
        for key, value in node.items():
            kept = prune(value)
            if key == "emptyDir" and value == {}:
                out[key] = {}
            elif kept not in (None, "", 0, {}, []):
                out[key] = kept
        return out
    if isinstance(node, list):
        return [prune(value) for value in node]
    return node


def accelerators(pod: dict[str, Any]) -> dict[str, Fraction]:
    """What one pod asks for of each extended resource (a key with a `/`), over all its containers."""
    total: dict[str, Fraction] = defaultdict(Fraction)
    for container in pod.get("containers") or []:
        resources = container.get("resources") or {}
        asked = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
        for key, value in asked.items():
            if "/" in key and quantity(value):
                total[key] += quantity(value)
    return dict(total)


@dataclass(frozen=True)
class V1Role:
    """Master or Worker of a PyTorchJob."""

    name: str
    replicas: int
    template: dict[str, Any]
    restart: str

    @property
    def metadata(self) -> dict[str, Any]:
        return self.template.get("metadata") or {}

    @property
    def pod(self) -> dict[str, Any]:
        return self.template["spec"]

    @property
    def main(self) -> dict[str, Any]:
        containers = self.pod["containers"]
        named = [c for c in containers if c["name"] == "pytorch"]
        return (named or containers)[0]


@dataclass(frozen=True)
class V1Job:
    """A PyTorchJob and the numbers that training-operator 1.9 derives from it."""

    data: dict[str, Any]

    @property
    def metadata(self) -> dict[str, Any]:
        return self.data.get("metadata") or {}

    @property
    def name(self) -> str:
        return self.metadata.get("name", "")

    @cached_property
    def roles(self) -> dict[str, V1Role]:
        out = {}
        for key, spec in self.data["spec"]["pytorchReplicaSpecs"].items():
            name = key.capitalize()
            replicas = spec.get("replicas", 1)
            if replicas:
                restart = spec.get("restartPolicy", "OnFailure")
                out[name] = V1Role(name, replicas, spec["template"], restart)
        return out

    @property
    def pods(self) -> int:
        return sum(role.replicas for role in self.roles.values())

    @property
    def world(self) -> str:
        """v1's WORLD_SIZE: pods, times nprocPerNode when that is an integer as text."""
        nproc = str(self.data["spec"].get("nprocPerNode", "auto"))
        return str(self.pods * (int(nproc) if nproc.isdigit() else 1))

    @property
    def accelerators(self) -> dict[str, Fraction]:
        total: dict[str, Fraction] = defaultdict(Fraction)
        for role in self.roles.values():
            for key, value in accelerators(role.pod).items():
                total[key] += role.replicas * value
        return dict(total)


@cache
def v1_jobs(number: int) -> list[V1Job]:
    """Every PyTorchJob in an input, also inside wrappers and strings, in order."""
    seen: list[V1Job] = []
    for document in yaml.safe_load_all(source(number).text):
        for node in walk(document):
            if node.get("kind") == "PyTorchJob" and "spec" in node:
                seen.append(V1Job(node))
    return seen


def v1_job(number: int, name: str = "") -> V1Job:
    return next(j for j in v1_jobs(number) if not name or j.name == name)
