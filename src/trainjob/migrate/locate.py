"""Where in a document v1 jobs stand: as the object, in a List, in a wrapper, inside a text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

from trainjob.kube.yaml import Document, Path
from trainjob.v1.kinds import ANY, KINDS, MENTIONED, PYTORCH, Kind, kind_of
from trainjob.v1.pytorchjob import API_VERSION

# A word of these must be in a text before it is worth parsing.
MARK: Final = MENTIONED
# kubectl's own copy of an object, as text inside it.
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_IN_TEXT = re.compile(rf"""(?:^|[\s"'{{,])["']?kind["']?\s*:\s*["']?({ANY})\b""")
# A document that names such a kind without holding a job of it.
OTHER_V1: Final = re.compile(rf"""^\s*["']?kind["']?\s*:\s*["']?((?!PyTorchJob)(?:{ANY}))\b""", re.M)


class Holder(Enum):
    """What holds the job."""

    DOCUMENT = auto()
    LIST = auto()
    KATIB = auto()
    APPWRAPPER = auto()
    TEXT = auto()
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True)
class Site:
    """One job: who holds it, the path to it, and the mapping itself (or the text)."""

    holder: Holder
    path: Path
    data: Any

    @property
    def api_version(self) -> str:
        return str(self.data.get("apiVersion")) if isinstance(self.data, Mapping) else ""

    @property
    def kind(self) -> Kind:
        """The kind of the job, also where it stands in a text."""
        if isinstance(self.data, str):
            found = _IN_TEXT.search(self.data)
            return KINDS[found[1]] if found else PYTORCH
        return kind_of(self.data)

    @property
    def known(self) -> bool:
        return self.api_version == API_VERSION


def sites(doc: Document) -> list[Site]:
    """All v1 jobs of a parsed document, in order."""
    return list(_walk(doc.data, (), doc))


def _walk(value: Any, path: Path, doc: Document) -> Iterator[Site]:
    if isinstance(value, Mapping):
        if value.get("kind") in KINDS and ("spec" in value or "apiVersion" in value):
            yield Site(_holder(path, doc.data), path, value)
            return
        for key, item in value.items():
            if key != LAST_APPLIED:
                yield from _walk(item, (*path, key), doc)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _walk(item, (*path, i), doc)
    elif isinstance(value, str) and MARK.search(value) and _IN_TEXT.search(value):
        yield Site(Holder.TEXT, path, value)


def _holder(path: Path, root: Any) -> Holder:
    if not path:
        return Holder.DOCUMENT
    if not isinstance(root, Mapping):
        return Holder.UNKNOWN
    kind, group = str(root.get("kind", "")), str(root.get("apiVersion", "")).partition("/")[0]
    if kind.endswith("List") and len(path) == 2 and path[0] == "items":
        return Holder.LIST
    if kind == "Experiment" and group == "kubeflow.org" and path == ("spec", "trialTemplate", "trialSpec"):
        return Holder.KATIB
    if (
        kind == "AppWrapper"
        and len(path) == 4
        and path[:2] == ("spec", "components")
        and path[3] in ("template", "generictemplate")
    ):
        return Holder.APPWRAPPER
    return Holder.UNKNOWN
