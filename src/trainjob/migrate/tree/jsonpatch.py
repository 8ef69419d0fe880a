"""The JSON Patch (RFC 6902) that turns one object into another, as a kustomization can hold it.

A patch that indexes a list begins with a `test` on that element's name, so that it fails, instead of
hitting another element, when the base changes its order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Operation = dict[str, Any]


def diff(have: Any, want: Any) -> list[Operation]:
    """Operations that make `want` out of `have`."""
    return list(_diff(have, want, ""))


def escape(key: str) -> str:
    """A key as a token of a JSON Pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")


def _diff(have: Any, want: Any, at: str) -> Iterator[Operation]:
    if same(have, want):
        return
    if isinstance(have, Mapping) and isinstance(want, Mapping):
        for key in have:
            if key not in want:
                yield {"op": "remove", "path": f"{at}/{escape(key)}"}
        for key, value in want.items():
            if key in have:
                yield from _diff(have[key], value, f"{at}/{escape(key)}")
            else:
                yield {"op": "add", "path": f"{at}/{escape(key)}", "value": value}
    elif isinstance(have, list) and isinstance(want, list) and _grown(have, want):
        for i, (old, new) in enumerate(zip(have, want, strict=False)):
            if not same(old, new):
                yield {"op": "test", "path": f"{at}/{i}/name", "value": old["name"]}
                yield from _diff(old, new, f"{at}/{i}")
        for new in want[len(have) :]:
            yield {"op": "add", "path": f"{at}/-", "value": new}
    else:
        yield {"op": "replace", "path": at, "value": want}


def same(a: Any, b: Any) -> bool:
    """Equality that tells 1 from true, as JSON does."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same(v, b[k]) for k, v in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)


def _grown(have: list[Any], want: list[Any]) -> bool:
    """Lists of named elements, the names of `have` first and in the same order in `want`."""
    old, new = _names(have), _names(want)
    return old is not None and new is not None and new[: len(old)] == old


def _names(items: list[Any]) -> list[str] | None:
    names = [i.get("name") if isinstance(i, Mapping) else None for i in items]
    found = [n for n in names if isinstance(n, str)]
    return found if found and len(found) == len(items) == len(set(found)) else None
