"""Where in a document PyTorchJobs stand: as the object, in a List, in a wrapper, inside a text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

from trainjob.kube.yaml import Document, Path
from trainjob.v1.pytorchjob import API_VERSION, KIND

# Words that must be in a text before it is worth parsing.
MARK: Final = KIND
# kubectl's own copy of an object, as text inside it.
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_IN_TEXT = re.compile(r"""(?:^|[\s"'{,])["']?kind["']?\s*:\s*["']?PyTorchJob\b""")
OTHER_V1: Final = re.compile(
    r"""^\s*["']?kind["']?\s*:\s*["']?(MPIJob|TFJob|XGBoostJob|JAXJob|PaddleJob|MXJob)\b""", re.M
)


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
    def known(self) -> bool:
        return self.api_version == API_VERSION


def sites(doc: Document) -> list[Site]:
    """All PyTorchJobs of a parsed document, in order."""
    return list(_walk(doc.data, (), doc))


def _walk(value: Any, path: Path, doc: Document) -> Iterator[Site]:
    if isinstance(value, Mapping):
        if value.get("kind") == KIND and ("spec" in value or "apiVersion" in value):
            yield Site(_holder(path, doc.data), path, value)
            return
        for key, item in value.items():
            if key != LAST_APPLIED:
                yield from _walk(item, (*path, key), doc)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _walk(item, (*path, i), doc)
    elif isinstance(value, str) and MARK in value and _IN_TEXT.search(value):
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
