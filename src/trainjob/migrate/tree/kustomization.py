"""Reads kustomizations: what they list, and what in them speaks of PyTorchJobs.

Field facts: kubernetes-sigs/kustomize api/types/kustomization.go and selector.go (v5.8.1); a target's
kind is a regular expression that must match as a whole.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import Any, Final

from trainjob.findings import Location
from trainjob.kube import yaml
from trainjob.kube.yaml import Document
from trainjob.migrate.kinds.registry import CONVERTED, CONVERTIBLE
from trainjob.migrate.tree import edits

NAMES: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
COMPONENT: Final = "Component"
PATCH_FIELDS: Final = ("patches", "patchesStrategicMerge", "patchesJson6902")
# Fields that list folders or files of objects.
_LISTS: Final = ("resources", "bases", "components")
# They hold paths into objects, which are others in a TrainJob; kustomize skips what does not match, silently.
WITH_PATHS: Final = ("replacements", "vars", "configurations", "transformers", "generators", "validators")
# A kustomization of these only lists objects: what holds for its files holds for the result.
PLAIN: Final = frozenset({"apiVersion", "kind", "metadata", "resources", "namespace"})
# Transformers that run after patches (kustomize v5.8.1 internal/target/kusttarget_configplugin.go).
AFTER_PATCHES: Final = (
    "namespace", "namePrefix", "nameSuffix", "labels", "commonLabels", "commonAnnotations", "replicas", "images",
    "replacements", "sortOptions", "buildMetadata",
)  # fmt: skip
_REMOTE = re.compile(r"[a-z][a-z0-9+.-]*::|[a-z][a-z0-9+.-]*://|git@|(?:github|gitlab|bitbucket)\.[a-z]+[:/]|.*\?ref=")
_KIND = re.compile(rf"""(?:^|[\s"'{{,])["']?kind["']?\s*:\s*["']?(?:{CONVERTIBLE.pattern})\b""")


class Aim(Enum):
    """Whether a patch is meant for jobs that become TrainJobs. One of a TFJob stays as it is."""

    JOBS = auto()
    JOBS_AND_OTHERS = auto()
    UNKNOWN = auto()
    OTHERS = auto()


@dataclass(frozen=True, slots=True)
class Patch:
    """One entry of a list of patches. `file` is the patch file, where it has one of its own."""

    field: str
    index: int
    where: Location
    aim: Aim
    file: Path | None = None


@dataclass(slots=True)
class Kustomization:
    """One kustomization. `files` and `folders` are what it lists, in order, as resolved paths."""

    file: Path
    shown: str
    text: str
    doc: Document
    files: list[Path] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)
    remote: list[tuple[str, Location]] = field(default_factory=list)
    patches: list[Patch] = field(default_factory=list)

    @property
    def data(self) -> Mapping[str, Any]:
        data = self.doc.data
        return data if isinstance(data, Mapping) else {}

    @property
    def folder(self) -> Path:
        return self.file.parent

    @property
    def component(self) -> bool:
        return self.data.get("kind") == COMPONENT

    @property
    def plain(self) -> bool:
        return PLAIN.issuperset(k for k, v in self.data.items() if v)

    @property
    def changes_afterwards(self) -> bool:
        return any(self.data.get(k) for k in AFTER_PATCHES)

    def where(self, *path: str | int) -> Location:
        return self.doc.locate(path)

    def aimed(self, *aims: Aim) -> list[Patch]:
        return [p for p in self.patches if p.aim in aims]

    def local_name(self, name: str) -> str:
        """A name of the result as the patches of this kustomization see it: prefixes come after patches."""
        name = name.removeprefix(str(self.data.get("namePrefix") or ""))
        return name.removesuffix(str(self.data.get("nameSuffix") or ""))

    def paths_into_jobs(self) -> Iterator[tuple[str, Location]]:
        """Fields other than patches that speak of PyTorchJobs: (field, place)."""
        for key in WITH_PATHS:
            value = self.data.get(key)
            for i, item in enumerate(value if isinstance(value, list) else []):
                if _mentions(item, self.folder):
                    yield key, self.where(key, i)


def read(file: Path, shown: str) -> Kustomization:
    """A kustomization with everything that it refers to. Raises OSError, YamlError, EditError."""
    with file.open(encoding="utf-8", newline="") as stream:
        text = stream.read()
    doc = edits.parse(text, shown)
    out = Kustomization(file, shown, text, doc)
    for key in _LISTS:
        for i, item in enumerate(_list(out.data, key)):
            if not isinstance(item, str):
                continue
            path = Path(os.path.normpath(out.folder / item))
            if path.is_dir():
                out.folders.append(path)
            elif path.is_file():
                out.files.append(path)
            elif _REMOTE.match(item):
                out.remote.append((item, out.where(key, i)))
    for key in PATCH_FIELDS:
        out.patches += (_patch(out, key, i, item) for i, item in enumerate(_list(out.data, key)))
    return out


def find(root: Path) -> Iterator[Path]:
    """The kustomization files below a folder, sorted; hidden folders are left out."""
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        for name in NAMES:
            if name in files:
                yield Path(folder, name)
                break


def _list(data: Mapping[str, Any], key: str) -> list[Any]:
    value = data.get(key)
    return value if isinstance(value, list) else []


def _patch(owner: Kustomization, key: str, index: int, item: Any) -> Patch:
    where = owner.where(key, index)
    if isinstance(item, str):  # patchesStrategicMerge: a file or the patch itself
        file = owner.folder / item
        path = Path(os.path.normpath(file)) if "\n" not in item and file.is_file() else None
        return Patch(key, index, where, _aim_of_text(_text(path) if path else item), path)
    if not isinstance(item, Mapping):
        return Patch(key, index, where, Aim.UNKNOWN)
    named = item.get("path")
    if isinstance(named, str) and _REMOTE.match(named):
        owner.remote.append((named, where))
    path = Path(os.path.normpath(owner.folder / named)) if isinstance(named, str) else None
    target = item.get("target")
    if isinstance(target, Mapping):
        return Patch(key, index, where, _aim_of_target(target), path)
    inline = item.get("patch")
    return Patch(key, index, where, _aim_of_text(_text(path) if path else str(inline or "")), path)


def _aim_of_target(target: Mapping[str, Any]) -> Aim:
    kind = target.get("kind")
    if kind in CONVERTED:
        return Aim.JOBS
    if not kind:
        return Aim.UNKNOWN
    try:
        return Aim.UNKNOWN if any(re.fullmatch(str(kind), k) for k in CONVERTED) else Aim.OTHERS
    except re.error:
        return Aim.UNKNOWN


def _aim_of_text(text: str) -> Aim:
    """The aim of a strategic-merge patch, which names its own kind."""
    try:
        kinds = [d.data.get("kind") for d in yaml.load(text) if isinstance(d.data, Mapping)]
    except yaml.YamlError:
        return Aim.JOBS_AND_OTHERS if _KIND.search(text) else Aim.OTHERS
    if not any(k in CONVERTED for k in kinds):
        return Aim.OTHERS
    return Aim.JOBS if all(k in CONVERTED for k in kinds) else Aim.JOBS_AND_OTHERS


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _mentions(item: Any, folder: Path) -> bool:
    if isinstance(item, str):
        file = folder / item if "\n" not in item else None
        return bool(CONVERTIBLE.search(_text(file) if file is not None and file.is_file() else item))
    return bool(CONVERTIBLE.search(yaml.dump(item))) if isinstance(item, (dict, list)) else False
