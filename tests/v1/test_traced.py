"""Values that know their source behave as the plain ones, and keep it on their way."""

from __future__ import annotations

import copy
import json

from trainjob.v1.traced import Traced, derived, mark, sources, wrap

JOB = {
    "metadata": {"name": "demo"},
    "spec": {"replicas": 3, "suspend": True, "share": 0.5, "command": ["python", "a.py"]},
}


def test_marked_data_equals_the_plain_data() -> None:
    marked = mark(JOB)
    assert marked == JOB
    assert json.loads(json.dumps(marked)) == {**JOB, "spec": {**JOB["spec"], "suspend": 1}}  # type: ignore[dict-item]
    assert f"{marked['metadata']['name']}-{marked['spec']['replicas'] + 1}" == "demo-4"
    assert not mark({"a": False})["a"]


def test_each_leaf_names_its_path() -> None:
    marked = mark(JOB)
    assert marked["spec"]["command"][1].sources == (("spec", "command", 1),)
    assert sources(marked["spec"]["suspend"]) == (("spec", "suspend"),)
    assert sources(marked["metadata"]) == (("metadata", "name"),)


def test_copies_keep_the_source() -> None:
    marked = mark(JOB)
    assert sources(copy.deepcopy(marked)["spec"]["replicas"]) == (("spec", "replicas"),)


def test_derived_unites_the_sources_of_its_parts() -> None:
    marked = mark(JOB)
    value = derived("demo-3", marked["metadata"]["name"], [marked["spec"]["replicas"], marked["metadata"]["name"]])
    assert value == "demo-3"
    assert sources(value) == (("metadata", "name"), ("spec", "replicas"))


def test_plain_parts_give_a_plain_value_back() -> None:
    value = "demo-3"
    assert derived(value, "demo", 3, None) is value
    assert derived(True, {"a": 1}) is True
    assert not isinstance(derived(1, [1]), Traced)


def test_nothing_is_not_wrapped() -> None:
    assert wrap(None, (("x",),)) is None
    assert wrap({"a": 1}, (("x",),)) == {"a": 1}
    assert sources("plain") == ()
