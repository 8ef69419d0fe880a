"""The one canonical way to write YAML: readable, stable, and nothing that a reader could take for something else."""

from __future__ import annotations

from typing import Any

import pytest
import yaml as pyyaml

from trainjob.kube import yaml

TEXTS = [
    "", " ", "plain", "a: b", "# x", "- x", "x #y", "yes", "No", "on", "y", "null", "~", "1", "0400", "1e3", "08",
    "0x1F", "12:30", "1:30:45", "2024-01-02", "1_000", ".5", "=", "<<", "*a", "&a", "!a", "%a", "@a", "`a", "'", '"',
    "a'b\"c", "{a}", "[a]", "a\n", "a\nb", "a\nb\n", "a\nb\n\n", "\n", "\n\n", "\na", " a\nb", "  a\n b\n",
    "a\n  b\n", "a \nb",
    "a\t\nb", "\ta", "a\tb\nc", "a\r\nb\r\n", "\r", "a\x85b\nc", "a\u2028b\nc", "a\u2029b\nc", "\ufeffa\nb",
    "größe\n→\n", "😀\nx", "\x00", "\x7f", "a\x1bb\n", "---", "---\na: 1\n", "...\n",
    "#!/bin/sh\nset -e\nexec \"$@\"\n", "a:\n- b\n", "x" * 5000, "word " * 500, "trailing space ", "tab\t", "\\n",
    "$(RANK)", "${RANK}", "{{ x }}",
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_every_text_survives(text: str) -> None:
    """Written and read by this package and by PyYAML, as value, as key and in a list: the same text."""
    data = {"v": text, "list": [text], text: "k"}
    written = yaml.dump(data)
    assert yaml.load(written)[0].data == data
    assert pyyaml.safe_load(written) == data
    assert yaml.dump(yaml.load(written)[0].data) == written


VALUES = [None, True, False, 0, -1, 2**70, 0.5, 1e-7, 1e22, -0.25, [], {}, [[]], [{}], [[1, [2]]], {"a": {"b": [None]}}]


@pytest.mark.parametrize("value", VALUES)
def test_every_value_survives(value: Any) -> None:
    """With its type."""
    (doc,) = yaml.load(yaml.dump({"v": value}))
    assert doc.data == {"v": value}
    assert type(doc.data["v"]) is type(value)


def test_texts_that_look_like_something_else_are_quoted() -> None:
    """For readers of YAML 1.1, YAML 1.2 and go-yaml alike."""
    for text in ("yes", "n", "0400", "1e3", "12:30", "2024-01-02", "08", "1_0", "0o7", "=", "<<", "~", ""):
        assert yaml.dump({"a": text}).strip() in (f'a: "{text}"', f"a: '{text}'")


def test_lines_of_a_script_stay_lines() -> None:
    """A script is a block scalar; its end is kept."""
    assert yaml.dump({"a": "x\ny\n"}) == "a: |\n  x\n  y\n"
    assert yaml.dump({"a": "x\ny"}) == "a: |-\n  x\n  y\n"
    assert yaml.dump({"a": "x\ny\n\n"}) == "a: |+\n  x\n  y\n\n"


def test_lists_stand_under_their_key() -> None:
    """Like kubectl writes them; a long list of numbers stays on one line."""
    assert yaml.dump({"a": [1, "b"], "c": []}) == "a:\n- 1\n- b\nc: []\n"
    assert yaml.dump({"codes": list(range(1, 10))}) == "codes: [1, 2, 3, 4, 5, 6, 7, 8, 9]\n"


def test_shared_values_are_written_out() -> None:
    """No anchors: kustomize and people read the result."""
    shared = {"x": [1]}
    assert yaml.dump({"a": shared, "b": shared}) == "a:\n  x:\n  - 1\nb:\n  x:\n  - 1\n"


def test_key_order_is_kept() -> None:
    """apiVersion first, as given."""
    assert yaml.dump({"b": 1, "a": 2}) == "b: 1\na: 2\n"


def test_long_lines_are_not_folded() -> None:
    """A command line of 4000 characters is one line."""
    assert yaml.dump({"a": "word " * 800 + "end"}).count("\n") == 1


def test_objects_are_separated() -> None:
    """A stream of two."""
    assert yaml.dump_all([{"a": 1}, {"b": 2}]) == "a: 1\n---\nb: 2\n"
    assert yaml.dump_all([]) == ""
