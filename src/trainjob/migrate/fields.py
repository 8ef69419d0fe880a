"""Claims against fields: which claim answers for a field, and which present field has none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from trainjob.kube.yaml import Path
from trainjob.migrate.rule import Claim, Rule

Segments = tuple[str, ...]


def segments(pattern: str) -> Segments:
    """`spec.a.*.list[].b` as ("spec", "a", "*", "list", "[]", "b")."""
    return tuple(re.findall(r"\[\]|[^.\[\]]+", pattern))


def leaves(schema: Mapping[str, Any], prefix: Segments = ()) -> Iterator[Segments]:
    """Every leaf of a structural schema, as segments: the fields that must be answered for."""
    properties = schema.get("properties")
    if properties:
        for key, child in properties.items():
            yield from leaves(child, (*prefix, key))
    elif isinstance(schema.get("additionalProperties"), Mapping):
        yield from leaves(schema["additionalProperties"], (*prefix, "*"))
    elif schema.get("type") == "array":
        yield from leaves(schema.get("items", {}), (*prefix, "[]"))
    else:
        yield prefix


class ClaimTree:
    """Claims as a tree of segments. `*` answers for any key that has no branch of its own."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._root: dict[str, Any] = {}
        for rule in rules:
            for claim in rule.claims:
                self._add(rule, claim)

    def _add(self, rule: Rule, claim: Claim) -> None:
        node = self._root
        for part in segments(claim.field):
            if "" in node:
                raise ValueError(f"{rule.code} claims {claim.field}, which {node[''][0].code} claims above it")
            node = node.setdefault(part, {})
        if node:
            raise ValueError(f"{rule.code} claims {claim.field}, which is claimed already")
        node[""] = (rule, claim)

    def find(self, path: Segments) -> tuple[Rule, Claim] | None:
        """The claim that covers a leaf."""
        node = self._root
        for part in path:
            if "" in node:
                break
            child = node.get(part)
            if child is None:
                return None
            node = child
        return node.get("")

    def unclaimed(self, data: Any) -> Iterator[Path]:
        """Paths of present values that no claim covers. Empty maps and lists hold no value."""
        yield from self._unclaimed(data, self._root, ())

    def _unclaimed(self, value: Any, node: dict[str, Any], path: Path) -> Iterator[Path]:
        if "" in node:
            return
        if isinstance(value, Mapping):
            for key, item in value.items():
                child = node.get(key) or node.get("*")
                if child is None:
                    yield (*path, key)
                else:
                    yield from self._unclaimed(item, child, (*path, key))
        elif isinstance(value, list):
            child = node.get("[]")
            for i, item in enumerate(value):
                if child is None:
                    yield (*path, i)
                else:
                    yield from self._unclaimed(item, child, (*path, i))
        else:
            yield path


@cache
def claim_tree(rules: tuple[Rule, ...]) -> ClaimTree:
    """The tree of a rule tuple, built once."""
    return ClaimTree(rules)
