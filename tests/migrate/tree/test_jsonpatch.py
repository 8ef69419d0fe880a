"""JSON Patch from two objects; applied with a small reference implementation."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainjob.migrate.tree.jsonpatch import Operation, diff, escape


def apply(obj: Any, operations: list[Operation]) -> Any:
    """RFC 6902 for the operations that `diff` writes; a failing `test` raises."""
    root = {"": copy.deepcopy(obj)}
    for op in operations:
        keys = ["", *(k.replace("~1", "/").replace("~0", "~") for k in op["path"].split("/")[1:])]
        parent: Any = root
        for key in keys[:-1]:
            parent = parent[int(key)] if isinstance(parent, list) else parent[key]
        last: Any = keys[-1]
        if isinstance(parent, list):
            last = len(parent) if last == "-" else int(last)
        match op["op"]:
            case "test":
                assert parent[last] == op["value"]
            case "remove":
                del parent[last]
            case "add" if isinstance(parent, list):
                parent.insert(last, copy.deepcopy(op["value"]))
            case "replace":
                assert isinstance(parent, list) or last in parent, op
                parent[last] = copy.deepcopy(op["value"])
            case _:
                parent[last] = copy.deepcopy(op["value"])
    return root[""]


def ops(have: Any, want: Any) -> list[tuple[str, str]]:
    return [(o["op"], o["path"]) for o in diff(have, want)]


def test_equal_objects_need_nothing() -> None:
    assert diff({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}) == []


@pytest.mark.parametrize(
    ("have", "want", "expected"),
    [
        ({"a": 1}, {"a": 2}, [("replace", "/a")]),
        ({"a": 1}, {"a": True}, [("replace", "/a")]),
        ({"a": 1}, {}, [("remove", "/a")]),
        ({}, {"a/b": {"c": 1}}, [("add", "/a~1b")]),
        ({"l": ["x"]}, {"l": ["y", "x"]}, [("replace", "/l")]),
        (
            {"env": [{"name": "A", "value": "1"}]},
            {"env": [{"name": "A", "value": "2"}, {"name": "B"}]},
            [("test", "/env/0/name"), ("replace", "/env/0/value"), ("add", "/env/-")],
        ),
        ({"env": [{"name": "A"}, {"name": "B"}]}, {"env": [{"name": "B"}]}, [("replace", "/env")]),
    ],
)
def test_operations(have: Any, want: Any, expected: list[tuple[str, str]]) -> None:
    assert ops(have, want) == expected
    assert apply(have, diff(have, want)) == want


def test_a_list_is_indexed_only_behind_a_test_of_the_name() -> None:
    patch = diff({"l": [{"name": "a", "v": 1}]}, {"l": [{"name": "a", "v": 2}]})
    with pytest.raises(AssertionError):
        apply({"l": [{"name": "other", "v": 1}]}, patch)


def test_escape() -> None:
    assert escape("a/b~c") == "a~1b~0c"


scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab/~", max_size=3)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text("ab/~", min_size=1, max_size=2), inner, max_size=3)
        | st.lists(st.fixed_dictionaries({"name": st.sampled_from("xyz"), "v": inner}), max_size=3)
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.text("ab/", min_size=1, max_size=2), values, max_size=3), st.data())
def test_any_object_becomes_any_other(have: dict[str, Any], data: st.DataObject) -> None:
    want = data.draw(st.dictionaries(st.text("ab/", min_size=1, max_size=2), values, max_size=3))
    assert apply(have, diff(have, want)) == want
