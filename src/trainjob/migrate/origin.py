"""Where a migrated TrainJob came from, in two annotations, so that it can be traced and taken back.

`trainjob.dev/migrated-from`: `<file>:<line> <kind> <namespace>/<name>`.
`trainjob.dev/source-sha256`: SHA-256 of the document's text in UTF-8, from its `---` line on; for a
file with one document that is what `sha256sum FILE` prints.

Only the TrainJob carries them. A generated TrainingRuntime is shared by alike jobs and named by its
content: with a job's origin in it, applying two files would change it back and forth.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath
from typing import Any, Final

from trainjob.findings import Location
from trainjob.kube.yaml import Document
from trainjob.v1.kinds import kind_of
from trainjob.v1.pytorchjob import dict_at

MIGRATED_FROM: Final = "trainjob.dev/migrated-from"
SOURCE_SHA256: Final = "trainjob.dev/source-sha256"
STDIN: Final = "-"


class Kind(StrEnum):
    """Where a field of the output has its value from."""

    V1 = "v1"
    RUNTIME = "runtime"
    CONTRACT = "contract"
    CONTENT = "content"
    ORIGIN = "origin"


@dataclass(frozen=True, slots=True)
class FieldOrigin:
    """One leaf of an output object, and where its value is from.

    `sources` are places in the v1 object, `rules` the codes that wrote or changed the value; `note` says
    it in words where no v1 field does.
    """

    object: str
    path: str
    value: Any
    kind: Kind
    rules: tuple[str, ...] = ()
    sources: tuple[Location, ...] = ()
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, in the order in which a reader looks."""
        out: dict[str, Any] = {"object": self.object, "path": self.path, "value": self.value, "kind": self.kind.value}
        if self.rules:
            out["rules"] = list(self.rules)
        if self.sources:
            out["sources"] = [{"path": s.path, "line": s.line, "column": s.column} for s in self.sources]
        if self.note:
            out["note"] = self.note
        return out


def shown(file: str) -> str:
    """The name of an input without a machine's own folders: `-` for stdin, of an absolute path its last part."""
    if file == "<stdin>":
        return STDIN
    path = PurePath(file)
    return path.name if path.is_absolute() else path.as_posix()


def digest(doc: Document) -> str:
    """SHA-256 of the document's exact text, in hex."""
    return hashlib.sha256(doc.text.encode("utf-8", "surrogatepass")).hexdigest()


def annotations_for(doc: Document, file: str, line: int, data: Mapping[str, Any]) -> dict[str, str]:
    """Both annotations for the v1 object `data`, which stands at `line` of `file`."""
    metadata = dict_at(data, "metadata")
    name = str(metadata.get("name") or metadata.get("generateName") or "")
    namespace = str(metadata.get("namespace") or "")
    label = f" {namespace}/{name}" if namespace and name else f" {name}" if name else ""
    return {MIGRATED_FROM: f"{file}:{line} {kind_of(data).name}{label}", SOURCE_SHA256: digest(doc)}
