"""A v1 object as the v1 API server would have kept it.

The server drops fields that the CRD does not know, without a word, and refuses wrong types.
The same is done here, but every case is recorded with its path: unknown fields (dropped),
scalars without quotes in text fields (their source text is used), wrong types (refused).
`null` means "not set" and is removed. Quantities become text exactly as written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from trainjob.kube.yaml import Path

_DATE = re.compile(r"\d{4}-\d\d?-\d\d?(?:[Tt ].*)?\Z")

# Schema nodes of the vendored facts are plain mappings.
Schema = Mapping[str, Any]


@dataclass(slots=True)
class Normalised:
    """The cleaned value, and what was done to it. Paths start at the object's own root."""

    data: Any = None
    unknown: list[Path] = field(default_factory=list)
    unquoted: list[tuple[Path, str]] = field(default_factory=list)
    wrong: list[tuple[Path, str, str]] = field(default_factory=list)


def normalise(data: Any, schema: Schema, source: Callable[[Path], str | None]) -> Normalised:
    """Clean `data` by `schema`; `source` gives the written text of the scalar at a path."""
    out = Normalised()
    out.data = _walk(data, schema, (), source, out)
    return out


def _walk(value: Any, schema: Schema, path: Path, source: Callable[[Path], str | None], out: Normalised) -> Any:
    if schema.get("x-kubernetes-int-or-string"):
        return _int_or_string(value, path, source, out)
    kind = schema.get("type")
    if kind == "object":
        return _object(value, schema, path, source, out)
    if kind == "array":
        if not isinstance(value, list):
            out.wrong.append((path, "a list", kind_of(value)))
            return None
        items = schema.get("items", {})
        walked = (_walk(v, items, (*path, i), source, out) for i, v in enumerate(value) if v is not None)
        return [v for v in walked if v is not None]
    if kind == "string":
        return _string(value, path, source, out)
    if kind == "integer":
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            out.wrong.append((path, "an integer", kind_of(value)))
            return None
    if kind == "boolean" and not isinstance(value, bool):
        out.wrong.append((path, "true or false", kind_of(value)))
        return None
    return value


def _object(value: Any, schema: Schema, path: Path, source: Callable[[Path], str | None], out: Normalised) -> Any:
    if not isinstance(value, Mapping):
        out.wrong.append((path, "a mapping", kind_of(value)))
        return None
    known: Mapping[str, Schema] = schema.get("properties", {})
    extra = schema.get("additionalProperties")
    keep = schema.get("x-kubernetes-preserve-unknown-fields") or (not known and extra is None)
    result: dict[str, Any] = {}
    for key, item in value.items():
        if item is None:
            continue
        here = (*path, key)
        if key in known:
            item = _walk(item, known[key], here, source, out)
        elif isinstance(extra, Mapping):
            item = _walk(item, extra, here, source, out)
        elif not keep:
            out.unknown.append(here)
            continue
        if item is not None:
            result[key] = item
    return result


def _string(value: Any, path: Path, source: Callable[[Path], str | None], out: Normalised) -> Any:
    if isinstance(value, str):
        # YAML 1.1 readers take a bare date for a timestamp; kubectl leaves it text.
        if _DATE.match(value) and source(path) is not None:
            out.unquoted.append((path, value))
        return value
    if isinstance(value, bool | int | float):
        text = source(path)
        text = str(value) if text is None else text
        out.unquoted.append((path, text))
        return text
    out.wrong.append((path, "text", kind_of(value)))
    return None


def _int_or_string(value: Any, path: Path, source: Callable[[Path], str | None], out: Normalised) -> Any:
    """Ports keep their integer form; quantities (a float can only be one) become text as written."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        out.wrong.append((path, "a number or text", kind_of(value)))
        return None
    if path[-2:-1] and path[-2] in ("limits", "requests", "capacity", "minResources", "overhead"):
        return source(path) or str(value)
    if isinstance(value, float) or path[-1] in ("sizeLimit", "divisor", "storage"):
        return source(path) or str(value)
    return value


def kind_of(value: Any) -> str:
    """What a value is, in a reader's words."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return f"{str(value).lower()} (a boolean)"
    if isinstance(value, int | float):
        return f"{value} (a number)"
    if isinstance(value, str):
        return f'"{value if len(value) <= 40 else value[:37] + "..."}" (text)'
    return "a list" if isinstance(value, list) else "a mapping"
