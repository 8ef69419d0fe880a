"""`migrate --explain`: for each field of the output, which v1 field and rule it came from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from trainjob.findings import Location
from trainjob.migrate.document import Record
from trainjob.migrate.origin import MIGRATED_FROM, SOURCE_SHA256, FieldOrigin, Kind

# Wider cells push the rest of their line down, so that one long path does not move all columns.
_WIDTHS: Final = (46, 34, 13)
_ROLE: Final = re.compile(r"(.*?ReplicaSpecs\.)([^.]+)(.*)\Z", re.S)
_HEAD: Final = ("FIELD", "VALUE", "RULE", "FROM")


def to_text(records: Iterable[Record]) -> str:
    """A table for each object that was written."""
    return "\n".join(table for record in records if record.job is not None for table in _tables(record))


def to_json(records: Iterable[Record]) -> str:
    """The same for a tool: a list of jobs, each with its fields."""
    jobs = [_job(record) for record in records if record.job is not None]
    return json.dumps({"jobs": jobs}, indent=2) + "\n"


def _job(record: Record) -> dict[str, Any]:
    assert record.job is not None
    notes = record.job.manifest.get("metadata", {}).get("annotations", {})
    return {
        "file": record.where.file,
        "line": record.where.line,
        "migratedFrom": notes.get(MIGRATED_FROM),
        "sourceSha256": notes.get(SOURCE_SHA256),
        "fields": [f.to_dict() for f in record.fields],
    }


def _tables(record: Record) -> Iterator[str]:
    by_object: dict[str, list[FieldOrigin]] = {}
    for found in record.fields:
        by_object.setdefault(found.object, []).append(found)
    for kind, found_here in by_object.items():
        name = next((f.value for f in found_here if f.path in ("metadata.name", "metadata.generateName")), "")
        lines = [f"{kind} {name}".rstrip() + f", from {record.where}", *_line(_HEAD)]
        for found in found_here:
            lines += _line((found.path, _value(found.value), ",".join(found.rules), _from(found)))
        yield "\n".join(lines) + "\n"


def _line(cells: tuple[str, ...]) -> Iterator[str]:
    out = ""
    at = 0
    for cell, width in zip(cells, (*_WIDTHS, 0), strict=True):
        if len(out) > at:  # the cell before was too wide
            yield out.rstrip()
            out = ""
        out = out.ljust(at) + cell + "  "
        at += width + 2
    yield out.rstrip()


def _value(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False) if not isinstance(value, str) else value
    text = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")
    text = "".join(c if c.isprintable() else "?" for c in text)
    return text if len(text) <= _WIDTHS[1] else text[: _WIDTHS[1] - 3] + "..."


def _from(found: FieldOrigin) -> str:
    if found.kind is Kind.CONTENT:
        return f"{found.note} ({len(found.sources)} v1 fields)"
    if found.sources:
        places = ", ".join(_places(found.sources))
        return f"{places}; {found.note}" if found.note else places
    return f"{found.kind.value}: {found.note}"


def _places(sources: Iterable[Location]) -> Iterator[str]:
    """The sources, those of equal roles in one: `spec.pytorchReplicaSpecs.{Master,Worker}.replicas (lines 8, 20)`."""
    grouped: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for where in sources:
        match = _ROLE.match(where.path)
        before, role, after = match.groups() if match else (where.path or "(the whole job)", "", "")
        grouped.setdefault((before, after), []).append((role, where.line))
    for (before, after), found in grouped.items():
        roles = list(dict.fromkeys(role for role, _ in found))
        role = roles[0] if len(roles) == 1 else f"{{{','.join(roles)}}}"
        lines = [str(line) for line in dict.fromkeys(line for _, line in found) if line]
        shown = f" (line{'s' if len(lines) > 1 else ''} {', '.join(lines)})" if lines else ""
        yield f"{before}{role}{after}{shown}"
