"""Before and after of one job, line by line: what was kept, changed, dropped and added.

A comparison of the two texts says little: the same values stand elsewhere, under other keys. This one
follows each value by its origin (migrate/provenance.py): a v1 line is dropped when nothing in the
output names a value of it, and a v2 line says from which v1 lines it came.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from trainjob.findings import Finding
from trainjob.kube import yaml
from trainjob.kube.yaml import Document, Path, dotted
from trainjob.migrate.document import Record
from trainjob.migrate.origin import FieldOrigin, Kind
from trainjob.migrate.provenance import leaves


class Change(StrEnum):
    """What became of the values of a line; PLAIN lines hold none, or are not known."""

    PLAIN = "plain"
    KEPT = "kept"
    CHANGED = "changed"
    GONE = "gone"
    NEW = "new"


@dataclass(frozen=True, slots=True)
class Line:
    """`number` is 0 where the line has none. `origin`: the v1 lines that a v2 line is from.

    `findings`: what was said about this v1 line.
    """

    number: int
    text: str
    change: Change = Change.PLAIN
    origin: tuple[int, ...] = ()
    findings: tuple[Finding, ...] = ()


def before(record: Record, findings: Iterable[Finding]) -> list[Line]:
    """The v1 text; without `Record.fields` no line is called kept or gone."""
    texts = record.text.splitlines()
    states: dict[int, Change] = {}
    if record.fields:
        named = {_relative(record, source.path) for f in record.fields for source in f.sources}
        named |= {dotted(path) for path in (("apiVersion",), ("kind",))}
        for path, _, lines in _placed(record.text):
            state = Change.KEPT if dotted(path) in named else Change.GONE
            for i in lines:
                if states.get(i) is not Change.KEPT:
                    states[i] = state
    said: dict[int, list[Finding]] = {}
    for finding in findings:
        if record.first_line and finding.where is not None and finding.where.file == record.where.file:
            said.setdefault(finding.where.line - record.first_line, []).append(finding)
    return [
        Line(
            record.first_line + i if record.first_line else 0,
            text,
            states.get(i, Change.PLAIN),
            (),
            tuple(said.get(i, ())),
        )
        for i, text in enumerate(texts)
    ]


def after(record: Record) -> list[Line]:
    """The objects that were written, one after the other; empty for a refused job."""
    out: list[Line] = []
    if record.job is None:
        return out
    old = {dotted(path): value for path, value in leaves(record.data)}
    for n, manifest in enumerate(record.job.objects()):
        fields = {f.path: f for f in record.fields if f.object == manifest["kind"]}
        text = yaml.dump(manifest)
        marked: dict[int, tuple[Change, tuple[int, ...]]] = {}
        for path, _, lines in _placed(text):
            found = fields.get(dotted(path))
            if found is not None:
                for i in lines:
                    marked[i] = _worst(marked.get(i), _state(record, found, old))
        if n:
            out.append(Line(len(out) + 1, "---"))
        start = len(out) + 1
        for i, line in enumerate(text.splitlines()):
            change, origin = marked.get(i, (Change.PLAIN, ()))
            out.append(Line(start + i, line, change, origin))
    return out


def _state(record: Record, found: FieldOrigin, old: dict[str, Any]) -> tuple[Change, tuple[int, ...]]:
    if found.kind is not Kind.V1:
        return Change.NEW, ()
    lines = tuple(dict.fromkeys(s.line for s in found.sources if s.line and record.first_line))
    same = any(str(old.get(_relative(record, s.path))) == str(found.value) for s in found.sources)
    return (Change.KEPT if same else Change.CHANGED), lines


def _worst(
    one: tuple[Change, tuple[int, ...]] | None, two: tuple[Change, tuple[int, ...]]
) -> tuple[Change, tuple[int, ...]]:
    """Of several values on a line the one that is least as it was."""
    order = (Change.PLAIN, Change.KEPT, Change.CHANGED, Change.NEW)
    return two if one is None or order.index(two[0]) > order.index(one[0]) else one


def _relative(record: Record, path: str) -> str:
    """A path of the file as a path of the job."""
    return path.removeprefix(record.where.path).lstrip(". /") if record.where.path else path


def _placed(text: str) -> Iterator[tuple[Path, Any, range]]:
    """Each leaf of a YAML text with the lines, from 0, that it stands on."""
    try:
        doc = yaml.parse(Document("", 0, text, 1))
    except yaml.YamlError:
        return
    for path, value in leaves(doc.data):
        node = doc.find(path)
        if node is None or node.start_mark is None or node.end_mark is None:
            continue
        first = doc.locate(path).line - 1
        last = node.end_mark.line - (1 if node.end_mark.column == 0 else 0)
        # An alias has the marks of its anchor, which stands before its key.
        yield (
            path,
            value,
            range(first, max(first, last) + 1) if node.start_mark.line >= first else range(first, first + 1),
        )
