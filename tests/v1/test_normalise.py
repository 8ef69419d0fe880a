"""A v1 object as the v1 server would have kept it; every change is recorded."""

from __future__ import annotations

from typing import Any

import pytest

from trainjob.kube import schema, yaml
from trainjob.kube.objectmeta import with_object_meta
from trainjob.v1.normalise import Normalised, kind_of, normalise

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "number": {"type": "integer"},
        "flag": {"type": "boolean"},
        "port": {"x-kubernetes-int-or-string": True},
        "limits": {"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": True}},
        "sizeLimit": {"x-kubernetes-int-or-string": True},
        "list": {"type": "array", "items": {"type": "string"}},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "inner": {"type": "object", "properties": {"text": {"type": "string"}}},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "any": {"type": "object"},
    },
}


def clean(text: str) -> Normalised:
    (doc,) = yaml.load(text)
    return normalise(doc.data, SCHEMA, doc.source)


def test_a_clean_object_is_kept() -> None:
    """Nothing is changed and nothing recorded where all types fit."""
    text = "text: a\nnumber: 3\nflag: true\nport: http\nlist: [a, b]\nmap: {k: v}\ninner: {text: x}\nopen: {q: [1]}\n"
    result = clean(text)
    assert result.data == yaml.load(text)[0].data
    assert (result.unknown, result.unquoted, result.wrong) == ([], [], [])


def test_unknown_fields_are_dropped_and_recorded() -> None:
    """At every depth, as pruning does; open objects keep theirs."""
    result = clean("text: a\nother: 1\ninner: {text: x, more: {a: 1}}\nopen: {more: 1}\nany: {more: 1}\n")
    assert result.data == {"text": "a", "inner": {"text": "x"}, "open": {"more": 1}, "any": {"more": 1}}
    assert result.unknown == [("other",), ("inner", "more")]


def test_null_is_not_set() -> None:
    """Explicit nulls vanish, also in lists and from unknown fields, without a record."""
    result = clean("text: null\nlist: [a, null, b]\ninner: ~\nother: null\nmap: {k: null}\n")
    assert result.data == {"list": ["a", "b"], "map": {}}
    assert (result.unknown, result.wrong) == ([], [])


@pytest.mark.parametrize(
    ("written", "text"),
    [("4", "4"), ("0400", "0400"), ("1e-4", "1e-4"), ("yes", "yes"), ("1.10", "1.10"), ("0x1F", "0x1F")],
)
def test_scalars_without_quotes_become_their_written_text(written: str, text: str) -> None:
    """In text fields, in lists and in maps of texts: exactly as written, and recorded."""
    result = clean(f"text: {written}\nlist: [{written}]\nmap: {{k: {written}}}\n")
    assert result.data == {"text": text, "list": [text], "map": {"k": text}}
    assert result.unquoted == [(("text",), text), (("list", 0), text), (("map", "k"), text)]


def test_a_bare_date_is_text_and_recorded() -> None:
    """Other readers take it for a timestamp; a quoted one is nobody's problem."""
    assert clean("text: 2024-01-02\n").unquoted == [(("text",), "2024-01-02")]
    assert clean("text: '2024-01-02'\n").unquoted == []
    assert clean("text: 2024-01-02-run\n").unquoted == []


def test_without_source_numbers_are_written_by_value() -> None:
    """An object that comes from no file."""
    assert normalise({"text": 5}, SCHEMA, lambda _: None).data == {"text": "5"}


@pytest.mark.parametrize(
    ("text", "path", "expected", "found"),
    [
        ("number: abc\n", ("number",), "an integer", '"abc" (text)'),
        ("number: 1.5\n", ("number",), "an integer", "1.5 (a number)"),
        ("number: true\n", ("number",), "an integer", "true (a boolean)"),
        ("number: '3'\n", ("number",), "an integer", '"3" (text)'),
        ("flag: 'true'\n", ("flag",), "true or false", '"true" (text)'),
        ("flag: 1\n", ("flag",), "true or false", "1 (a number)"),
        ("text: [a]\n", ("text",), "text", "a list"),
        ("text: {a: 1}\n", ("text",), "text", "a mapping"),
        ("list: a\n", ("list",), "a list", '"a" (text)'),
        ("list: [[a]]\n", ("list", 0), "text", "a list"),
        ("inner: []\n", ("inner",), "a mapping", "a list"),
        ("map: {k: {}}\n", ("map", "k"), "text", "a mapping"),
        ("port: true\n", ("port",), "a number or text", "true (a boolean)"),
        ("limits: {cpu: [1]}\n", ("limits", "cpu"), "a number or text", "a list"),
    ],
)
def test_wrong_types_are_recorded(text: str, path: yaml.Path, expected: str, found: str) -> None:
    """With what belongs there and what stands there; the value is left out."""
    result = clean(text)
    assert result.wrong == [(path, expected, found)]


def test_the_root_must_be_a_mapping() -> None:
    """A list is no object."""
    assert normalise([], SCHEMA, lambda _: None).wrong == [((), "a mapping", "a list")]


def test_whole_floats_are_integers() -> None:
    """`3.0` and `1e1` for an integer, as JSON has only numbers."""
    assert clean("number: 3.0\n").data == {"number": 3}
    assert clean("number: 1e1\n").data == {"number": 10}


def test_quantities_keep_their_text_and_ports_their_type() -> None:
    """`0.5` stays `0.5`, `1e3` stays `1e3`; a port number stays a number."""
    result = clean("port: 8080\nlimits: {cpu: 0.5, gpu: 8, memory: 1e3, x: 2Gi}\nsizeLimit: 64\n")
    assert result.data == {
        "port": 8080,
        "limits": {"cpu": "0.5", "gpu": "8", "memory": "1e3", "x": "2Gi"},
        "sizeLimit": "64",
    }
    assert clean("port: 80.5\n").data == {"port": "80.5"}


def test_the_real_schema_knows_odd_places() -> None:
    """A field at a wrong level is found in the vendored CRD."""
    (doc,) = yaml.load(
        "spec:\n  cleanPodPolicy: None\n  pytorchReplicaSpecs:\n    Worker:\n      imagePullPolicy: Always\n"
        "      replicas: 2\nmetadata:\n  name: 7\n"
    )
    result = normalise(doc.data, with_object_meta(schema.raw("PyTorchJob")), doc.source)
    assert result.unknown == [
        ("spec", "cleanPodPolicy"),
        ("spec", "pytorchReplicaSpecs", "Worker", "imagePullPolicy"),
    ]
    assert result.unquoted == [(("metadata", "name"), "7")]
    assert result.data["spec"] == {"pytorchReplicaSpecs": {"Worker": {"replicas": 2}}}


def test_kind_of_speaks_to_people() -> None:
    """Long texts are cut."""
    assert kind_of(None) == "nothing"
    assert kind_of("x" * 60) == f'"{"x" * 37}..." (text)'
