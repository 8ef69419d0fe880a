"""Jobs that stand as text inside a ConfigMap: rewrite that text, and not one byte beside it."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass

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


def replace(doc: Document, text: Text, new: str) -> str:
    """The document with the scalar replaced by a block scalar that holds `new`."""
    lines = doc.text.splitlines(keepends=True)
    start, end = text.node.start_mark, text.node.end_mark
    before = "".join(lines[: start.line]) + (lines[start.line][: start.column] if start.line < len(lines) else "")
    after = "".join(lines[end.line :])[end.column :]
    key_line = lines[start.line] if start.line < len(lines) else ""
    indent = len(key_line) - len(key_line.lstrip()) + 2
    chomp = "" if new.endswith("\n") else "-"
    body = textwrap.indent(new.rstrip("\n"), " " * indent)
    if after and not after.startswith(("\n", "\r")) and text.node.style not in ("|", ">"):
        after = "\n" + after
    tail = "\n" if text.node.style in ("|", ">") else ""
    return f"{before}|{chomp}\n{body}{tail}{after}"


def parse_inner(text: Text) -> Document:
    """The YAML inside the text; raises YamlError with a place in the outer file."""
    inner = Document(text.doc.file, 0, text.node.value, 1)
    try:
        return yaml.parse(inner)
    except yaml.YamlError as err:
        line = text.first_line + err.where.line - 1 if text.node.style == "|" else text.first_line
        raise yaml.YamlError(err.message, Location(text.doc.file, line, 1, dotted(text.path)), err.fix) from None
