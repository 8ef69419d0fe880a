"""Streams: what is converted, what passes through byte for byte, and what the exit code says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.migrate.rules.support import SPECS, says, v1
from trainjob.findings import Severity
from trainjob.kube import yaml
from trainjob.migrate import Migration, migrate_text
from trainjob.migrate.engine import join

JOB = yaml.dump(v1())
BAD = yaml.dump(v1(metadata={"name": "No_Name"}))
# Byte for byte: odd spacing, quotes, comments, anchors, and YAML that nobody could read.
OTHERS = [
    "kind:   ConfigMap  # a comment\ndata: {a: &x  'b', c: *x}\n",
    "# nothing but a comment\n",
    "this: is: no: yaml\n\t- at all\n",
    "%YAML 1.1\n---\na: 1\n",
]


def kinds(result: Migration) -> list[str]:
    """The kinds of the written documents, `-` for one that is no object."""
    out = []
    for doc in yaml.split(result.text):
        try:
            data = yaml.parse(doc).data
        except yaml.YamlError:
            data = None
        out.append(data["kind"] if isinstance(data, dict) and "kind" in data else "-")
    return out


def codes(result: Migration, severity: str) -> list[str]:
    return [f.code for f in result.findings if f.severity is Severity(severity)]


# --- pass-through and order ------------------------------------------------------------------------


@pytest.mark.parametrize("other", OTHERS)
def test_other_documents_pass_byte_for_byte(other: str) -> None:
    """Before and behind a job."""
    before = migrate_text(f"{other}---\n{JOB}")
    assert before.converted == 1
    assert before.text.startswith(f"{other}---\n")
    behind = migrate_text(f"{JOB}---\n{other}")
    assert behind.converted == 1
    assert behind.text.endswith(f"---\n{other}")


def test_the_order_is_kept() -> None:
    """A generated runtime stands directly before its job."""
    with_runtime = yaml.dump(v1({"workingDir": "/w"}))
    text = "---\n".join(["kind: A\n", JOB, "kind: B\n", with_runtime, "kind: C\n"])
    result = migrate_text(text)
    assert kinds(result) == ["A", "TrainJob", "B", "TrainingRuntime", "TrainJob", "C"]
    assert (result.converted, result.refused) == (2, 0)
    assert [job.runtime is not None for job in result.jobs] == [False, True]


def test_markers_and_line_ends_stay_where_they_were() -> None:
    """A leading `---` too; a last line without its end gets one only when something follows."""
    assert migrate_text(f"---\n{JOB}").text.startswith("---\napiVersion: trainer")
    assert migrate_text(JOB).text.startswith("apiVersion: trainer")
    assert migrate_text(f"{JOB}---\nkind: A").text.endswith("\n---\nkind: A")
    assert migrate_text(f"--- # why\nkind: A\n---\n{JOB}").text.startswith("--- # why\nkind: A\n---\napi")
    assert join(["a: 1", "b: 2\n"]) == "a: 1\n---\nb: 2\n"
    assert join([]) == ""


def test_windows_line_ends() -> None:
    """Other documents keep theirs."""
    result = migrate_text(f"kind: A\r\nx: 1\r\n---\r\n{JOB}".replace("\r\n", "\n").replace("\n", "\r\n"))
    assert result.text.startswith("kind: A\r\nx: 1\r\n---\n")
    assert result.converted == 1


def test_bytes_are_utf_8() -> None:
    """With or without a byte order mark; other bytes are no text."""
    assert migrate_text(b"\xef\xbb\xbf" + JOB.encode()).text == migrate_text(JOB).text
    result = migrate_text(b"kind: \xff\xfe", file="x.bin")
    assert (result.text, result.exit_code) == ("", 2)
    says(result.findings, "error", r"not UTF-8 text \(byte 0xff\)")


def test_json_is_read_and_yaml_is_written() -> None:
    """One object, and the same as from YAML."""
    from_json, from_yaml = migrate_text(json.dumps(v1(), indent="\t")).text, migrate_text(JOB).text
    assert without_hash(from_json) == without_hash(from_yaml)


def without_hash(text: str) -> str:
    """The output without the line that differs with the bytes of the source."""
    lines = text.splitlines()
    kept = [line for line in lines if "trainjob.dev/source-sha256: " not in line]
    assert len(lines) - len(kept) == 1
    return "\n".join(kept)


def test_comments_are_announced() -> None:
    """Only of documents that are written anew."""
    result = migrate_text(JOB.replace("spec:", "spec:  # the spec", 1))
    says(result.findings, "note", "comments are not kept")
    assert "TJ913" not in codes(migrate_text(f"# a comment\nkind: A\n---\n{JOB}"), "note")


def test_places_are_those_of_the_file() -> None:
    """Line, column and file name, in a later document too."""
    text = f"kind: A\n---\n{JOB}"
    finding = says(migrate_text(text, file="jobs.yaml").findings, "note", "asked for 1 pod")
    assert finding.where is not None
    assert str(finding.where) == f"jobs.yaml:{text[: text.index('pytorchReplicaSpecs')].count(chr(10)) + 1}:3"
    assert finding.where.path == SPECS


# --- lists ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["List", "PyTorchJobList"])
def test_a_list_becomes_a_stream_of_its_items(kind: str) -> None:
    """In order, with the other items."""
    items = [v1(metadata={"name": "a"}), {"kind": "A", "x": 1}, v1({"workingDir": "/w"}, metadata={"name": "b"})]
    result = migrate_text(yaml.dump({"apiVersion": "v1", "kind": kind, "items": items}))
    assert kinds(result) == ["TrainJob", "A", "TrainingRuntime", "TrainJob"]
    assert result.converted == 2
    says(result.findings, "note", f"the {kind} becomes a stream of its items")


def test_a_refused_item_stays_in_the_stream() -> None:
    """Beside the converted ones; a list without any conversion is left as it is."""
    items = [v1(metadata={"name": "No_Name"}), v1()]
    result = migrate_text(yaml.dump({"kind": "List", "items": items}))
    assert kinds(result) == ["PyTorchJob", "TrainJob"]
    assert (result.converted, result.refused, result.exit_code) == (1, 1, 1)
    assert migrate_text(yaml.dump({"kind": "List", "items": items[:1]})).text == ""


def test_jobs_in_other_items_of_a_list_are_told() -> None:
    """As text in a ConfigMap, or in a kind that migrate does not know: refused, and the rest goes on."""
    config = {"kind": "ConfigMap", "data": {"job.yaml": JOB}}
    result = migrate_text(yaml.dump({"kind": "List", "items": [config, {"kind": "Acme", "job": v1()}, v1()]}))
    assert kinds(result) == ["ConfigMap", "Acme", "TrainJob"]
    assert (result.converted, result.refused) == (1, 2)
    assert codes(result, "error") == ["TJ909", "TJ908"]


def test_what_kubectl_copied_into_an_annotation_is_no_job() -> None:
    """last-applied-configuration holds the text of a job."""
    metadata = {"name": "demo", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(v1())}}
    other = {"kind": "Acme", "metadata": metadata, "note": "PyTorchJob"}
    result = migrate_text(f"{yaml.dump(v1(metadata=metadata))}---\n{yaml.dump(other)}")
    assert (result.converted, result.refused) == (1, 0)


# --- refused, unreadable, nothing to do ------------------------------------------------------------


def test_a_refused_job_stays_as_it_was_beside_a_converted_one() -> None:
    """Byte for byte, with exit code 1."""
    odd = BAD.replace("kind: PyTorchJob", "kind:   PyTorchJob  # keep me")
    result = migrate_text(f"{odd}---\n{JOB}")
    assert (result.converted, result.refused, result.exit_code) == (1, 1, 1)
    assert result.text.startswith(f"{odd}---\n")


def test_a_file_of_refused_jobs_gives_no_output() -> None:
    """Nothing that could be applied by mistake."""
    result = migrate_text(f"kind: A\n---\n{BAD}")
    assert (result.text, result.converted, result.refused, result.exit_code) == ("", 0, 1, 1)


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("kind: PyTorchJob\n\tx: 1\n", "TJ905", "a tab is used for indentation"),
        ("kind: PyTorchJob\na: [1\n", "TJ905", "YAML error"),
        ("kind: PyTorchJob\n{{ if x }}\n- a\n", "TJ906", "this is a Helm or Jinja template, not YAML"),
        (JOB.replace("demo", "${NAME}"), "TJ906", r"the envsubst placeholder \$\{NAME\} is not filled in"),
        (JOB.replace("demo", "'{{ .Release.Name }}'"), "TJ906", "the Helm or Jinja placeholder"),
        ("kind: PyTorchJob\na: !!python/none x\n", "TJ905", "is not allowed"),
        ("kind: PyTorchJob\nx: " + "[" * 200 + "\n", "TJ905", "nest|did not find"),
    ],
)
def test_an_unreadable_file_gives_no_output(text: str, code: str, message: str) -> None:
    """Not even its good jobs: the file has to be read first. Exit code 2, with a place."""
    for stream in (text, f"{JOB}---\n{text}", f"{text}---\n{JOB}"):
        result = migrate_text(stream)
        assert (result.text, result.converted, result.jobs, result.exit_code) == ("", 0, (), 2)
        finding = says([f for f in result.findings if f.code == code], "error", message)
        assert finding.unreadable
        assert finding.where is not None
        assert finding.where.line > 0


def test_a_document_that_is_too_large_ends_the_file() -> None:
    """Before it is parsed."""
    result = migrate_text(f"{JOB}---\n" + f"x: {'y' * 1000}\n" * 34_000)
    assert (result.text, result.exit_code) == ("", 2)
    says(result.findings, "error", "one document is larger than 32 MiB")


@pytest.mark.parametrize(
    "text", ["", "\n", "kind: A\n", "# kind: PyTorchJob\n", "a: PyTorchJob\n", "---\n---\n", "null\n"]
)
def test_a_file_without_a_job_is_an_error(text: str) -> None:
    """Whoever calls it meant another file."""
    result = migrate_text(text)
    assert (result.text, result.exit_code, codes(result, "error")) == ("", 1, ["TJ910"])


def test_migrated_files_are_no_error() -> None:
    """They pass through whole, so that a second run over a folder loses nothing."""
    once = migrate_text(f"# head\n{JOB}---\nkind: A\n").text
    again = migrate_text(once)
    assert (again.text, again.exit_code, codes(again, "note")) == (once, 0, ["TJ910"])


def test_other_v1_kinds_pass_through_with_a_warning() -> None:
    """At their lines."""
    result = migrate_text(f"kind: MPIJob\nx: 1\n---\nkind: TFJob # PyTorchJob\n---\n{JOB}")
    found = [f for f in result.findings if f.code == "TJ907"]
    assert [(f.message.split()[1], f.where.line) for f in found if f.where] == [("MPIJob", 1), ("TFJob", 4)]
    assert result.text.startswith("kind: MPIJob\nx: 1\n---\nkind: TFJob # PyTorchJob\n---\n")


@pytest.mark.parametrize(
    ("version", "fix"),
    [
        ("kubeflow.org/v1beta2", "migrate it to kubeflow.org/v1 first"),
        ("acme.io/v1", "ask its owner"),
        ("v1", "ask its owner"),
    ],
)
def test_other_versions_are_refused(version: str, fix: str) -> None:
    """With the version as it is written."""
    result = migrate_text(JOB.replace("kubeflow.org/v1", version))
    finding = says(result.findings, "error", f"apiVersion '{version}' is not kubeflow.org/v1")
    assert (finding.code, finding.fix, result.exit_code) == ("TJ907", fix, 1)
    assert finding.where is not None
    assert finding.where.path == "apiVersion"


def test_duplicate_keys_are_warned_about() -> None:
    """The last one holds, in the output too."""
    result = migrate_text(JOB.replace("image: reg.io/img:1", "image: first\n            image: second"))
    finding = says(result.findings, "warning", "the key 'image' stands twice .*the last one holds")
    assert finding.code == "TJ904"
    assert "image: second" in result.text


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("- {}\n", "[0]"),
        ("kind: Acme\napiVersion: acme.io/v1\njob: {}\n", "job"),
        ("kind: PyTorchJobs\nitems: [{}]\n", "items[0]"),
    ],
)
def test_jobs_in_unknown_places_are_refused_untouched(text: str, place: str) -> None:
    """A list, a home-made kind, a list that is none: with the path to the job."""
    result = migrate_text(text.replace("{}", json.dumps(v1())))
    finding = says(result.findings, "error", "does not know this kind and leaves it untouched")
    assert finding.where is not None
    assert (finding.code, finding.where.path, result.text, result.exit_code) == ("TJ908", place, "", 1)


def test_scripts_of_config_maps_are_read_wherever_they_stand() -> None:
    """Behind the job too; a broken ConfigMap, or one without a name, is no reason to fail."""
    mount: Any = {"volumes": [{"name": "c", "configMap": {"name": "code"}}]}
    config = yaml.dump(
        {"kind": "ConfigMap", "metadata": {"name": "code"}, "data": {"t.py": "os.environ['RANK']", "n": 1}}
    )
    odd = "kind: ConfigMap\nmetadata: text\ndata: {a: b}\n---\nkind: ConfigMap\n\tbroken\n---\n"
    result = migrate_text(f"{odd}{yaml.dump(v1(pod=mount))}---\n{config}")
    assert result.converted == 1
    says(result.findings, "note", "t.py in ConfigMap code reads the v1 variables")


# --- comments at the top ---------------------------------------------------------------------------


@pytest.mark.parametrize("top", ["# licence\n", "# licence\n\n  # and more\n\n", "# licence\n%YAML 1.1\n# x\n---\n"])
def test_comments_above_a_job_are_kept(top: str) -> None:
    """With and without a `---` line; they belong to no value, so nothing is lost."""
    result = migrate_text(f"{top}{JOB}")
    assert result.text.startswith(f"{top}apiVersion: trainer.kubeflow.org/v1alpha1\n")
    assert "TJ913" not in codes(result, "note")


def test_a_comment_inside_a_job_is_told() -> None:
    result = migrate_text(JOB.replace("spec:\n", "spec:\n  # why\n", 1))
    assert "TJ913" in codes(result, "note")
