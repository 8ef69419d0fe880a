"""Claims as a tree over paths."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from trainjob.findings import Finding
from trainjob.migrate.fields import ClaimTree, claim_tree, leaves, segments
from trainjob.migrate.rule import Claim, Outcome, Rule


def rule(*fields: str, code: str = "TJ100") -> Rule:
    def nothing(*_: Any) -> Iterator[Finding]:
        return iter(())

    return Rule(code, "x", tuple(Claim(f, Outcome.CARRIED) for f in fields), nothing)


@pytest.mark.parametrize(
    ("pattern", "parts"),
    [
        ("spec", ("spec",)),
        ("spec.a.*.list[].b", ("spec", "a", "*", "list", "[]", "b")),
        ("a[][].b", ("a", "[]", "[]", "b")),
        ("a.b-c", ("a", "b-c")),
    ],
)
def test_segments(pattern: str, parts: tuple[str, ...]) -> None:
    """Keys, `*` for any key of a map, `[]` for any item of a list."""
    assert segments(pattern) == parts


def test_leaves_of_a_schema() -> None:
    """Objects, maps, lists, open objects and scalars."""
    schema = {
        "properties": {
            "a": {"type": "string"},
            "map": {"additionalProperties": {"properties": {"x": {"type": "integer"}, "y": {}}}},
            "list": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
            "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "bare": {"type": "array"},
            "any": {"type": "object", "additionalProperties": True},
        }
    }
    assert list(leaves(schema)) == [
        ("a",), ("map", "*", "x"), ("map", "*", "y"), ("list", "[]", "[]"), ("open",), ("bare", "[]"), ("any",),
    ]  # fmt: skip


def test_a_claim_covers_everything_below() -> None:
    """And names its rule."""
    tree = ClaimTree([rule("spec.a", code="TJ101"), rule("spec.m.*.x", "spec.l[].y", code="TJ102")])
    for path, code in (
        (("spec", "a"), "TJ101"),
        (("spec", "a", "deep", "[]"), "TJ101"),
        (("spec", "m", "*", "x"), "TJ102"),
        (("spec", "l", "[]", "y", "z"), "TJ102"),
    ):
        found = tree.find(path)
        assert found is not None
        assert found[0].code == code
    for path in (("spec",), ("spec", "b"), ("spec", "m", "*", "y"), ("spec", "l", "[]"), ("other",)):
        assert tree.find(path) is None


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("a.b", "a.b", "is claimed already"),
        ("a", "a.b", "TJ101 claims above it"),
        ("a.b", "a", "is claimed already"),
        ("a[]", "a[].b", "TJ101 claims above it"),
    ],
)
def test_overlapping_claims_are_an_error(first: str, second: str, message: str) -> None:
    """Whether equal, above or below."""
    with pytest.raises(ValueError, match=message):
        ClaimTree([rule(first, code="TJ101"), rule(second, code="TJ102")])


@pytest.mark.parametrize(
    ("data", "unclaimed"),
    [
        ({}, []),
        ({"a": 1, "m": {"k": {"x": 1}}, "l": [{"y": 1}]}, []),
        ({"b": 1}, [("b",)]),
        ({"a": {"anything": [1, {"q": 2}]}}, []),
        ({"m": {"k": {"z": 1}, "j": {"z": 2}}}, [("m", "k", "z"), ("m", "j", "z")]),
        ({"l": [{"y": 1}, {"w": 2}]}, [("l", 1, "w")]),
        ({"l": [], "m": {}}, []),
        ({"l": [1]}, [("l", 0)]),
        ({"m": [1, 2]}, [("m", 0), ("m", 1)]),
        ({"m": "text"}, [("m",)]),
        ({"n": {"special": 1, "other": {"x": 1}}}, []),
        ({"n": {"special": {"deep": 1}, "other": {"y": 1}}}, [("n", "other", "y")]),
    ],
)
def test_unclaimed_values(data: Any, unclaimed: list[Any]) -> None:
    """Present values without a claim; a branch of its own beats `*`; empty containers hold nothing."""
    tree = ClaimTree([rule("a", "m.*.x", "l[].y", "n.special", "n.*.x")])
    assert list(tree.unclaimed(data)) == unclaimed


def test_the_tree_of_a_tuple_is_built_once() -> None:
    """It is asked for once per job."""
    rules = (rule("a"),)
    assert claim_tree(rules) is claim_tree(rules)
