"""Jobs that stand as text inside a ConfigMap: rewrite that text, and not one byte beside it."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from yaml.nodes import ScalarNode

from trainjob.findings import Location
from trainjob.kube import yaml
from trainjob.kube.yaml import Document, Path, dotted


@dataclass(frozen=True, slots=True)
class Text:
    """A scalar of a document: its node, and the first line of its content in the file."""

    doc: Document
    path: Path
    node: ScalarNode

    @property
    def first_line(self) -> int:
        line = self.node.start_mark.line + self.doc.first_line
        return line + 1 if self.node.style in ("|", ">") else line

    def locate(self, inner: Document) -> Callable[[Path], Location]:
        """Places inside the text, as places in the file."""

        def at(path: Path) -> Location:
            here = inner.locate(path)
            exact = self.node.style == "|"
            line = self.first_line + here.line - 1 if exact else self.first_line
            return Location(self.doc.file, line, 1, f"{dotted(self.path)} / {dotted(path)}")

        return at


def text_at(doc: Document, path: Path) -> Text | None:
    """The text at `path`, when it is written as a scalar there (and not through an alias)."""
    node = doc.find(path)
    return Text(doc, path, node) if isinstance(node, ScalarNode) else None


def in_flow(doc: Document, path: Path) -> bool:
    """Whether the value stands between brackets or braces, as in JSON."""
    return any(getattr(doc.find(path[:i]), "flow_style", False) for i in range(len(path)))


def replace(doc: Document, text: Text, new: str) -> str:
    """The document with the scalar replaced by one that holds `new`: a block scalar where YAML allows it."""
    lines = doc.text.splitlines(keepends=True)
    start, end = text.node.start_mark, text.node.end_mark
    before = "".join(lines[: start.line]) + (lines[start.line][: start.column] if start.line < len(lines) else "")
    after = "".join(lines[end.line :])[end.column :]
    if in_flow(doc, text.path):
        return f"{before}{json.dumps(new, ensure_ascii=False)}{after}"
    key_line = lines[start.line] if start.line < len(lines) else ""
    indent = len(key_line) - len(key_line.lstrip()) + 2
    chomp = "" if new.endswith("\n") else "-"
    body = textwrap.indent(new.rstrip("\n"), " " * indent)
    if after and not after.startswith(("\n", "\r")) and text.node.style not in ("|", ">"):
        after = "\n" + after
    tail = ""
    if text.node.style in ("|", ">"):  # its end is that of the empty lines behind it
        tail = "\n" + "".join(_empty_end(lines[start.line : end.line]))
    return f"{before}|{chomp}\n{body}{tail}{after}"


def _empty_end(lines: list[str]) -> list[str]:
    """The empty lines at the end."""
    count = next((i for i, line in enumerate(reversed(lines)) if line.strip()), len(lines))
    return lines[len(lines) - count :]


def like(old: str, job: Mapping[str, Any]) -> str:
    """The job in the notation of the text that it replaces: JSON or YAML, with or without a line end."""
    new = json.dumps(job, indent=2, ensure_ascii=False) + "\n" if old.lstrip().startswith("{") else yaml.dump(job)
    return new if old.endswith("\n") else new.rstrip("\n")


def written(doc: Document, path: Path, new: str) -> bool:
    """Whether a document can be read and holds `new` at `path`."""
    try:
        value = yaml.parse(doc).data
        for key in path:
            value = value[key]
    except (yaml.YamlError, KeyError, TypeError):
        return False
    return bool(value == new)


def parse_inner(text: Text) -> Document:
    """The YAML inside the text; raises YamlError with a place in the outer file."""
    inner = Document(text.doc.file, 0, text.node.value, 1)
    try:
        return yaml.parse(inner)
    except yaml.YamlError as err:
        line = text.first_line + err.where.line - 1 if text.node.style == "|" else text.first_line
        raise yaml.YamlError(err.message, Location(text.doc.file, line, 1, dotted(text.path)), err.fix) from None
