"""YAML is read as go-yaml reads it, with places; streams are cut without a lost byte; bombs do not go off."""

from __future__ import annotations

import math
import time
from typing import Any

import pytest

from trainjob.findings import Location
from trainjob.kube import yaml
from trainjob.kube.yaml import Document, YamlError


def one(text: str) -> Any:
    """The data of the only document."""
    (doc,) = yaml.load(text)
    return doc.data


def refused(text: str) -> YamlError:
    with pytest.raises(YamlError) as caught:
        yaml.load(text, "in.yaml")
    return caught.value


# --- cutting a stream --------------------------------------------------------------------------

STREAMS = [
    "a: 1\n",
    "a: 1",
    "",
    "---\na: 1\n---\nb: 2\n",
    "# only a comment\n",
    "# head\n---\na: 1\n---\n# between\n---\nb: 2\n--- # tail\n",
    "%YAML 1.1\n---\na: 1\n",
    "a: 1\n...\n---\nb: 2\n...\n",
    "a: 1\n...\nb: 2\n",
    "--- {a: 1}\n--- {b: 2}\n",
    "a: 1\r\n---\r\nb: 2\r\n",
    "a: |\n  text\n  --- no marker\n  ...\n---\nb: '---'\n",
    "a: '--- x'\n---x: 1\n",
    "\n\n---\n\n---\na: 1\n\n\n",
    "a: 1\n---\tb: 2\n",
]


@pytest.mark.parametrize("text", STREAMS)
def test_split_keeps_every_byte(text: str) -> None:
    """The texts of the documents, joined, are the stream."""
    assert "".join(doc.text for doc in yaml.split(text)) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("---\na: 1\n---\nb: 2\n", [{"a": 1}, {"b": 2}]),
        ("# head\n---\na: 1\n", [{"a": 1}]),
        ("a: 1\n...\n---\nb: 2\n...\n", [{"a": 1}, {"b": 2}]),
        ("a: 1\n...\nb: 2\n", [{"a": 1}, {"b": 2}]),
        ("--- {a: 1}\n--- {b: 2}\n", [{"a": 1}, {"b": 2}]),
        ("a: 1\n---\n---\nb: 2\n", [{"a": 1}, None, {"b": 2}]),
        ("%YAML 1.1\n---\na: 1\n", [{"a": 1}]),
        ("a: 1\n---\n# nothing\n", [{"a": 1}, None]),
        ("a: |\n  ---\n  x\n", [{"a": "---\nx\n"}]),
        ("", []),
        ("a: 1\r\n---\r\nb: 2\r\n", [{"a": 1}, {"b": 2}]),
    ],
)
def test_split_finds_the_documents(text: str, expected: list[Any]) -> None:
    """`---` and `...` in the first column end a document, and nothing else does."""
    assert [doc.data for doc in yaml.load(text)] == expected


def test_split_counts_lines_and_documents() -> None:
    """A document knows its number and the line of the file where its text begins."""
    docs = list(yaml.split("# c\n---\na: 1\n---\nb: 2\n...\n---\nc: 3\n"))
    assert [(d.index, d.first_line) for d in docs] == [(0, 1), (1, 4), (2, 7)]


def test_byte_order_mark_is_dropped() -> None:
    """A BOM, as some editors write, is no part of the first key."""
    assert one("\ufeffa: 1\n") == {"a": 1}
    assert one("\ufeff---\na: 1\n") == {"a": 1}


def test_split_is_lazy() -> None:
    """The first document is there before the second was read."""

    def lines() -> Any:
        yield from ("a: 1\n", "---\n")
        raise AssertionError("read too far")

    assert next(yaml.split_lines(lines(), "x")).text == "a: 1\n"


# --- places ------------------------------------------------------------------------------------

PLACED = """\
# comment
kind: A
spec:
  list:
    - name: x
      args: [one, "two"]
  merged: &m
    deep: 1
  other:
    <<: *m
    own: 2
"""


@pytest.mark.parametrize(
    ("path", "line", "column", "dotted"),
    [
        (("kind",), 2, 1, "kind"),
        (("spec", "list", 0), 5, 7, "spec.list[0]"),
        (("spec", "list", 0, "args", 1), 6, 19, "spec.list[0].args[1]"),
        (("spec", "list", 0, "missing"), 5, 7, "spec.list[0].missing"),
        (("spec", "list", 7), 4, 3, "spec.list[7]"),
        (("spec", "other", "deep"), 8, 5, "spec.other.deep"),
        ((), 2, 1, ""),
    ],
)
def test_values_have_places(path: yaml.Path, line: int, column: int, dotted: str) -> None:
    """The line and column of a value, of its nearest ancestor when it is absent; merges are followed."""
    (doc,) = yaml.load(PLACED, "f.yaml")
    assert doc.locate(path) == Location("f.yaml", line, column, dotted)


def test_places_count_from_the_start_of_the_file() -> None:
    """In a later document too; an unparsed document has the place of its first line."""
    first, second = yaml.load("a: 1\n---\nb:\n  c: 2\n", "f.yaml")
    assert second.locate(("b", "c")).line == 4
    assert first.locate(()).line == 1
    assert Document("f.yaml", 3, "x: 1\n", 40).locate(("x",)) == Location("f.yaml", 40, 1, "x")


def test_source_is_the_written_text_of_a_bare_scalar() -> None:
    """`0400` and `1e3` as written; nothing for quoted texts, lists and absent values."""
    (doc,) = yaml.load("a: 0400\nb: '0400'\nc: [1e3]\nd: {}\n<<: {e: 010}\n")
    assert doc.source(("a",)) == "0400"
    assert doc.source(("b",)) is None
    assert doc.source(("c", 0)) == "1e3"
    assert doc.source(("d",)) is None
    assert doc.source(("e",)) == "010"
    assert doc.source(("nothing", "there")) is None


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("a", 0, "b-c", "$d"), "a[0].b-c.$d"),
        (("metadata", "labels", "a.b/c"), 'metadata.labels["a.b/c"]'),
        ((0, "x"), "[0].x"),
        (("", "1"), '[""]["1"]'),
    ],
)
def test_paths_are_written_with_dots(path: yaml.Path, text: str) -> None:
    """Keys that are no words stand in brackets."""
    assert yaml.dotted(path) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a: 1 # x\n", True), ("# x\na: 1\n", True), ("a: b#c\n", False), ("a: 1\n", False)],
)
def test_comments_are_seen(text: str, expected: bool) -> None:
    """A dump would lose them, so they are announced."""
    (doc,) = yaml.load(text)
    assert doc.comments() is expected


def test_places_beside_odd_keys() -> None:
    """A scalar has nothing below it; a key that is no scalar is passed over; an unparsed document has no values."""
    (doc,) = yaml.load("a: 1\nb: [x]\n")
    assert doc.find(("a", "b")) is None
    assert doc.find(("b", "x")) is None
    assert doc.locate(("a", "b", 3)).line == 1
    assert Document("f", 0, "a: 1\n", 1).find(("a",)) is None
    assert yaml.load("'[a]': 1\n")[0].data == {"[a]": 1}


# --- scalars, as measured with sigs.k8s.io/yaml v1.4.0 -------------------------------------------

SCALARS: dict[str, Any] = {
    "0400": 256, "00": 0, "0777": 511, "-0777": -511, "08": 8.0, "0888": 888.0, "0_7": 7, "1_000": 1000, "1__": 1,
    "_1": "_1", "1e3": 1000.0, "1E3": 1000.0, "1e+3": 1000.0, "1e3_0": 1e30, "1e-7": 1e-7, "1e": "1e", "e3": "e3",
    ".5": 0.5, "-.5": -0.5, "+.5": 0.5, ".5_0": ".5_0", ".e3": ".e3", "1.": 1.0, "1.5e3": 1500.0, "1_0.5": 10.5,
    "0x1F": 31, "0X1F": 31, "+0x1": 1, "0x": "0x", "0b101": 5, "0B11": 3, "-0b11": -3, "0b": "0b", "0o17": 15,
    "0O17": 15, "+1": 1, "-1": -1, "-0": 0, "18446744073709551615": 2**64 - 1, "100000000000000000000": 10**20,
    "yes": True, "Yes": True, "y": True, "on": True, "TRUE": True, "tRUE": "tRUE", "no": False, "n": False,
    "Off": False, "False": False, "~": None, "": None, "null": None, "NULL": None, "NuLL": "NuLL",
    "2024-01-02": "2024-01-02", "2024-01-02T03:04:05Z": "2024-01-02T03:04:05Z", "12:30": "12:30", "1:30:45": "1:30:45",
    "0.0.1": "0.0.1", "1,000": "1,000", ".": ".", "..": "..", "-": [None], "+": "+", "=": "=", "nan": "nan",
    ".inf": math.inf, "+.inf": math.inf, "-.Inf": -math.inf, "٣": "٣", "v1": "v1", "'1'": "1", '"yes"': "yes",
    "!!str 5": "5", "!!int 5": 5, "!!int '5'": 5, "!!float 1": 1, "!!bool 'yes'": True, "!!null ''": None,
}  # fmt: skip


@pytest.mark.parametrize("written", SCALARS)
def test_scalars_are_those_of_go_yaml(written: str) -> None:
    """Value and type, so that `0400` is a mode, `1e3` a number, and a date or a time of day a text."""
    value = one(f"- {written}\n")[0]
    assert value == SCALARS[written]
    assert type(value) is type(SCALARS[written])


def test_not_a_number_is_read() -> None:
    """`.nan`, which no equality can test."""
    assert math.isnan(one("a: .nan\n")["a"])


def test_numbers_of_thousands_of_digits_do_not_raise() -> None:
    """Python refuses to read such an integer; here it is out of range like any other."""
    assert one(f"a: {'9' * 5000}\n")["a"] == math.inf


# --- mappings ----------------------------------------------------------------------------------


def test_last_duplicate_wins_and_each_is_reported() -> None:
    """As kubectl reads it, with the places of both."""
    (doc,) = yaml.load("a: 1\nb: 2\na: 3\na: 4\n", "f")
    assert doc.data == {"b": 2, "a": 4}
    assert [(d.key, d.where.line, d.first_line) for d in doc.duplicates] == [("a", 3, 1), ("a", 4, 3)]
    assert doc.locate(("a",)).line == 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<<: {a: 2, b: 3}\na: 1\n", {"a": 1, "b": 3}),
        ("a: 1\n<<: {a: 2, b: 3}\n", {"a": 2, "b": 3}),
        ("<<: {a: 1}\n<<: {a: 2}\n", {"a": 2}),
        ("<<: [{a: 1}, {a: 2, c: 3}]\nb: 1\n", {"a": 1, "c": 3, "b": 1}),
        ("'<<': {a: 1}\n", {"<<": {"a": 1}}),
        ("a: <<\n", {"a": "<<"}),
    ],
)
def test_merges_are_those_of_go_yaml(text: str, expected: Any) -> None:
    """`<<` takes effect where it stands (measured): after a key it wins over it. Places agree with values."""
    (doc,) = yaml.load(text)
    assert doc.data == expected
    for key, value in expected.items():
        if isinstance(value, int):
            assert doc.source((key,)) == str(value)


def test_a_key_that_a_merge_overrides_is_reported() -> None:
    """Few people know that the merge wins there."""
    (doc,) = yaml.load("a: 1\n<<: {a: 2}\n")
    assert [(d.key, d.where.line) for d in doc.duplicates] == [("a", 2)]


def test_anchors_share_values_and_are_noticed() -> None:
    """Aliases give equal data; documents without them say so."""
    (doc,) = yaml.load("a: &x {b: [1]}\nc: *x\n")
    assert doc.data == {"a": {"b": [1]}, "c": {"b": [1]}}
    assert doc.anchors is True
    assert yaml.load("a: {}\n")[0].anchors is False


# --- what cannot be read -----------------------------------------------------------------------

REFUSED = {
    "a tab as indentation": ("a:\n\tb: 1\n", "a tab is used for indentation", 2, "indent with spaces"),
    "a tab before a value": ("a:\n  - \t- b\n", "cannot start any token", 2, "replace the tab"),
    "an unknown alias": ("a: *x\n", "undefined alias", 1, "in their own document"),
    "an anchor of another document": ("a: &x 1\n---\nb: *x\n", "undefined alias", 3, "in their own document"),
    "an anchor twice": ("a: &x 1\nb: &x 2\n", "an anchor is defined twice", 2, "its own name"),
    "a recursive alias": ("a: &x\n  b: *x\n", "an alias contains itself", 1, "write the value out"),
    "a recursive list": ("a: &x [*x]\n", "an alias contains itself", 1, "write the value out"),
    "a merge of a text": ("<<: abc\n", "merges something that is not a mapping", 1, ""),
    "a key that is a list": ("? [a]\n: b\n", "a mapping key is not a scalar", 1, "keys are text"),
    "a NUL": ("a: b\x00\n", "is not allowed in YAML", 1, "not a YAML text file"),
    "a control character": ("a: 1\nb: \x07\n", "is not allowed in YAML", 2, "not a YAML text file"),
    "bad indentation": ("a: 1\n  b: 2\n", "mapping values are not allowed", 2, ""),
    "an open quote": ('a: "b\n', "found unexpected end of stream", 2, ""),
    "an open bracket": ("a: [1\n", "did not find expected", 2, ""),
    "python code": ("a: !!python/object/apply:os.system ['id']\n", "apply:os.system is not allowed", 1, ""),
    "a python name": ("a: !!python/name:os.system\n", "is not allowed", 1, "remove the tag"),
    "an application tag": ("a: !vault secret\n", "the tag !vault is not allowed", 1, "remove the tag"),
    "a tagged mapping": ("a: !Ref {b: 1}\n", "the tag !Ref is not allowed", 1, "remove the tag"),
    "a set": ("a: !!set {b}\n", "is not allowed", 1, "remove the tag"),
    "binary": ("a: !!binary aGk=\n", "is not allowed", 1, "remove the tag"),
    "a tag that does not fit": ("a: !!int abc\n", "'abc' does not fit its tag", 1, "remove the tag"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_refused_with_its_place(case: str) -> None:
    """A message, the line of the file, and what to do."""
    text, message, line, fix = REFUSED[case]
    error = refused(text)
    assert message in error.message
    assert (error.where.file, error.where.line) == ("in.yaml", line)
    assert fix in error.fix


def test_json_may_be_indented_with_tabs() -> None:
    """JSON allows tabs between values, YAML does not; a tab inside a text is kept."""
    assert one('{\n\t"a": [1,\t2],\n\t"b": "x\\ty"\n}\n') == {"a": [1, 2], "b": "x\ty"}
    assert "a tab is used" in refused('{\n\t"a": [1,\t}').message


def test_line_ends_of_windows_are_read() -> None:
    """CR LF ends lines, inside block scalars too."""
    assert one("a: 1\r\nb: |\r\n  x\r\n  y\r\n") == {"a": 1, "b": "x\ny\n"}


# --- bombs -------------------------------------------------------------------------------------

ALIASES = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12)
)
BOMBS = {
    "aliases": ("aliases expand to more than 1,000,000 values", ALIASES),
    "merges of aliases": ("aliases expand", ALIASES + "z:\n  <<: {q: *a11}\n"),
    "lists in flow style": ("nest", "a: " + "[" * 100_000),
    "mappings in flow style": ("nest", "{a: " * 100_000),
    "closed lists": ("nested deeper than 100 levels", "[" * 102 + "]" * 102),
    "lists in block style": ("nest", "a:\n  " + "- " * 100_000 + "x\n"),
    "lists without spaces": ("nest", "-\n".join(" " * i for i in range(300))),
    "mappings in block style": ("nest", "".join(" " * i + "a:\n" for i in range(1000))),
    "keys of keys": ("nest", "? " * 100_000 + "a\n"),
    "keys and lists in turn": ("nest", "- ? " * 50_000 + "a\n"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_do_not_go_off(name: str) -> None:
    """Refused with a reason, within seconds, without exhausting stack or memory."""
    message, text = BOMBS[name]
    start = time.perf_counter()
    error = refused(text)
    assert time.perf_counter() - start < 5
    assert message in error.message


def test_a_hundred_levels_are_read() -> None:
    """The limit is far above what Kubernetes objects have."""
    value = one("[" * 101 + "]" * 101)
    depth = 0
    while value:
        value, depth = value[0], depth + 1
    assert depth == 100


def test_a_huge_document_is_refused_quickly() -> None:
    """50 MB in one document: told before it is parsed; the same amount in many documents is fine."""
    line = f"key: {'x' * 1000}\n"
    start = time.perf_counter()
    with pytest.raises(YamlError, match="one document is larger than 32 MiB"):
        list(yaml.split(line * 50_000))
    assert time.perf_counter() - start < 2
    count = sum(1 for _ in yaml.split_lines((x for _ in range(20_000) for x in ("---\n", line)), "many"))
    assert count == 20_000
