"""Changes to lists of a kustomization's text. What is not changed stays byte for byte, comments too."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from trainjob.kube import yaml
from trainjob.kube.yaml import Document


class EditError(ValueError):
    """The text is written in a way that cannot be changed in place. `line` is 1-based."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.line = line


def parse(text: str, file: str = "") -> Document:
    """The one document of a kustomization. Raises YamlError, or EditError for several."""
    documents = [d for d in yaml.load(text, file) if d.data is not None]
    if len(documents) != 1:
        raise EditError("a kustomization is one document")
    return documents[0]


def change_list(text: str, key: str, *, drop: Iterable[int] = (), add: Sequence[Any] = ()) -> str:
    """`text` without some items of the list `key` of its root, and with others at its end.

    Raises EditError when the result would not hold exactly that.
    """
    gone, doc = set(drop), parse(text)
    old = doc.data.get(key) or []
    wanted = [item for i, item in enumerate(old) if i not in gone] + list(add)
    out = _changed(text, doc, key, gone, add, wanted)
    expected = {k: v for k, v in doc.data.items() if k != key or wanted}
    if wanted:
        expected[key] = wanted
    try:
        if parse(out).data == expected:
            return out
    except yaml.YamlError:
        pass
    raise EditError(f"the list {key} cannot be changed in place", doc.locate((key,)).line)


def add_key(text: str, key: str, value: Any) -> str:
    """`text` with a new key at its end."""
    return f"{_ended(text)}{yaml.dump({key: value})}"


def _changed(text: str, doc: Document, key: str, gone: set[int], add: Sequence[Any], wanted: list[Any]) -> str:
    pair = _pair(doc, key)
    if pair is None:
        return add_key(text, key, wanted) if wanted else text
    name, node = pair
    lines = text.splitlines(keepends=True)
    first = doc.first_line - 1
    if not isinstance(node, SequenceNode) or node.flow_style or not node.value:
        end = node.end_mark.line + first
        tail = lines[end][node.end_mark.column :] if end < len(lines) else ""
        if tail.strip() and not tail.lstrip().startswith("#"):
            raise EditError(f"the list {key} stands in one line with others", name.start_mark.line + 1)
        block = yaml.dump({key: wanted}) if wanted else ""
        return "".join(lines[: name.start_mark.line + first]) + block + "".join(lines[end + 1 :])
    spans = _spans(lines, [n.start_mark.line + first for n in node.value], node)
    kept = [i for i in range(len(spans)) if i not in gone]
    if not kept and not add:
        start, stop = name.start_mark.line + first, spans[-1][1]
        return "".join(lines[:start] + lines[stop:])
    indent = len(lines[spans[0][2]]) - len(lines[spans[0][2]].lstrip())
    stop = spans[-1][1]
    body: list[str] = []
    at = spans[0][0]
    for i, (start, end, _) in enumerate(spans):
        body += lines[at:start]
        if i not in gone:
            body += lines[start:end]
        at = end
    new = [textwrap.indent(yaml.dump([item]), " " * indent) for item in add]
    before = "".join(lines[: spans[0][0]] + body)
    return (_ended(before) if new else before) + "".join(new) + "".join(lines[stop:])


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def _pair(doc: Document, key: str) -> tuple[Node, Node] | None:
    if not isinstance(doc.node, MappingNode) or doc.node.flow_style:
        raise EditError("the kustomization is written in braces, like JSON")
    for name, value in doc.node.value:
        if isinstance(name, ScalarNode) and name.value == key:
            return name, value
    return None


def _spans(lines: list[str], starts: list[int], node: SequenceNode) -> list[tuple[int, int, int]]:
    """Of each item: its first line with the comments above it, the line behind it, the line of its dash."""
    dashes = []
    for start in starts:
        at = start
        while at > 0 and not lines[at].lstrip().startswith("-"):
            at -= 1
        dashes.append(at)
    column = len(lines[dashes[0]]) - len(lines[dashes[0]].lstrip())
    heads = []
    for dash in dashes:
        head = dash
        while head > dashes[0] and _comment(lines[head - 1], column):
            head -= 1
        heads.append(head)
    last = max(node.end_mark.line, dashes[-1] + 1)
    while last > dashes[-1] + 1 and (last > len(lines) or _blank(lines[last - 1], column)):
        last -= 1
    return list(zip(heads, [*heads[1:], last], dashes, strict=True))


def _comment(line: str, column: int) -> bool:
    return line.lstrip().startswith("#") and len(line) - len(line.lstrip()) <= column


def _blank(line: str, column: int) -> bool:
    return not line.strip() or _comment(line, column)
