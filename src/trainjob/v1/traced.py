"""Values that know which v1 fields they came from.

`mark` wraps every leaf of a v1 object; rules and the emitter handle the wrapped values as they handle
plain ones, so what arrives in the output still names its source. A rule that computes a new value
says so with `derived`. Without `mark` everything here gives plain values back and costs nothing.

`bool` cannot be wrapped as such: it becomes a wrapped 0 or 1. Code that handles v1 values therefore
asks `not value`, never `value is False`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from trainjob.kube.yaml import Path

T = TypeVar("T")
Sources = tuple[Any, ...]


class Traced:
    """What a wrapped value has beside its value: its sources, in order, each once."""

    sources: Sources = ()

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self


class TracedStr(Traced, str):
    """A text with its sources."""


class TracedInt(Traced, int):
    """An integer, or a boolean, with its sources."""


class TracedFloat(Traced, float):
    """A number with its sources."""


def wrap(value: Any, sources: Sources) -> Any:
    """`value` with these sources; None and containers stay as they are."""
    out: TracedStr | TracedInt | TracedFloat
    if isinstance(value, str):
        out = TracedStr(value)
    elif isinstance(value, int):
        out = TracedInt(value)
    elif isinstance(value, float):
        out = TracedFloat(value)
    else:
        return value
    out.sources = sources
    return out


def mark(value: Any, source: Callable[[Path, Any], Any] = lambda path, _: path, path: Path = ()) -> Any:
    """A copy in which every leaf is wrapped; `source(path, leaf)` says with what."""
    if isinstance(value, Mapping):
        return {key: mark(item, source, (*path, key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [mark(item, source, (*path, i)) for i, item in enumerate(value)]
        return items if isinstance(value, list) else tuple(items)
    return wrap(value, (source(path, value),))


def sources(value: Any) -> Sources:
    """The sources of a value, and of everything below a mapping or list."""
    if isinstance(value, Traced):
        return value.sources
    found: list[Any] = []
    if isinstance(value, Mapping):
        for item in value.values():
            found += sources(item)
    elif isinstance(value, list | tuple):
        for item in value:
            found += sources(item)
    return tuple(dict.fromkeys(found))


def derived(value: T, *parts: Any) -> T:
    """`value` with the sources of all `parts`: a rule's word for what it computed a value from."""
    found = tuple(dict.fromkeys(s for part in parts for s in sources(part)))
    return wrap(value, found) if found else value
