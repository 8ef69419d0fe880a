"""Jobs that stand as text in a ConfigMap: the text is rewritten, and every other byte stays."""

from __future__ import annotations

import json
import textwrap
from typing import Any

import pytest

from tests.migrate.rules.support import says, v1
from trainjob.kube import yaml
from trainjob.migrate import Migration, migrate_text

JOB = yaml.dump(v1())
HEAD = "apiVersion: v1\nkind:  ConfigMap # odd\nmetadata: {name: c}\ndata:\n  # before\n  a: &x 'b'\n"
TAIL = "\n  # behind\n  other:   x   # y\n"


def block(text: str, head: str = "|", indent: int = 4) -> str:
    return f"  job.yaml: {head}\n{textwrap.indent(text, ' ' * indent)}"


def values(result: Migration) -> dict[str, Any]:
    """The data of the ConfigMap, with jobs parsed."""
    (doc,) = [d for d in yaml.load(result.text) if d.data["kind"] == "ConfigMap"]
    return {k: yaml.load(v)[0].data if "apiVersion" in v else v for k, v in doc.data["data"].items()}


WAYS = {
    "literal": block(JOB),
    "without the last line end": block(JOB, "|-"),
    "with an indentation indicator": block(JOB, "|2"),
    "indented further": block(JOB, indent=9),
    "with a marker": block(f"---\n{JOB}"),
    "with an empty line first": block(f"\n{JOB}"),
    "folded": "  job.yaml: >\n    " + json.dumps(v1()).replace(', "', ',\n    "') + "\n",
    "in double quotes": f"  job.yaml: {json.dumps(JOB)}\n",
    "behind a question mark": "  ? job.yaml\n  : |\n" + textwrap.indent(JOB, "    "),
}


@pytest.mark.parametrize("way", WAYS)
def test_only_the_text_changes(way: str) -> None:
    """However it is written; comments, quotes, anchors and empty lines around it stay."""
    result = migrate_text(HEAD + WAYS[way] + TAIL)
    assert (result.converted, result.refused) == (1, 0)
    assert result.text.startswith(HEAD)
    assert result.text.endswith(TAIL)
    found = values(result)
    assert found["job.yaml"]["kind"] == "TrainJob"
    assert (found["a"], found["other"]) == ("b", "x")
    says(result.findings, "note", r'the job in data\["job.yaml"\] is rewritten in its place')


def test_a_text_at_the_end_of_the_file() -> None:
    """With and without a line end."""
    for end in ("\n", ""):
        result = migrate_text(HEAD + block(JOB).rstrip("\n") + end)
        assert result.text.startswith(HEAD)
        assert values(result)["job.yaml"]["kind"] == "TrainJob"


def test_an_empty_text_is_no_job() -> None:
    """Nothing to rewrite, nothing to count."""
    result = migrate_text("kind: ConfigMap\ndata: {a: '', b: 'PyTorchJob'}\n")
    assert [f.code for f in result.findings] == ["TJ910"]


@pytest.mark.parametrize("indent", [None, 2])
def test_json_stays_json(indent: int | None) -> None:
    """A ConfigMap written as JSON: a scalar between braces cannot be a block."""
    config = {"kind": "ConfigMap", "data": {"job.yaml": JOB, "z": "q"}}
    text = json.dumps(config, indent=indent) + "\n"
    result = migrate_text(text)
    assert result.converted == 1
    assert json.loads(result.text)["data"]["z"] == "q"
    assert yaml.load(json.loads(result.text)["data"]["job.yaml"])[0].data["kind"] == "TrainJob"
    before, _, after = text.partition(json.dumps(JOB))
    assert result.text.startswith(before)
    assert result.text.endswith(after)


def test_a_job_written_as_json_stays_json() -> None:
    """Whoever reads `job.json` parses JSON."""
    result = migrate_text(f"kind: ConfigMap\ndata:\n  job.json: |\n    {json.dumps(v1())}\n")
    (doc,) = yaml.load(result.text)
    assert json.loads(doc.data["data"]["job.json"])["kind"] == "TrainJob"


def test_several_texts_are_rewritten() -> None:
    """One after the other; what is refused stays."""
    other = yaml.dump(v1(metadata={"name": "No_Name"}))
    third = yaml.dump(v1(metadata={"name": "third"}))
    text = "kind: ConfigMap\ndata:\n" + "".join(
        f"  {key}: |\n{textwrap.indent(job, '    ')}" for key, job in (("a", JOB), ("b", other), ("c", third))
    )
    result = migrate_text(text)
    assert (result.converted, result.refused, result.exit_code) == (2, 1, 1)
    found = values(result)
    assert [found[k]["kind"] for k in "abc"] == ["TrainJob", "PyTorchJob", "TrainJob"]
    assert textwrap.indent(other, "    ") in result.text


def test_a_runtime_stands_before_the_config_map() -> None:
    """In its namespace."""
    text = "kind: ConfigMap\nmetadata: {name: c, namespace: ns}\ndata:\n" + block(yaml.dump(v1({"workingDir": "/w"})))
    result = migrate_text(text)
    runtime, config = (doc.data for doc in yaml.load(result.text))
    assert (runtime["kind"], runtime["metadata"]["namespace"], config["kind"]) == ("TrainingRuntime", "ns", "ConfigMap")


def test_a_partial_job_needs_no_name() -> None:
    """Somebody gives it one later."""
    result = migrate_text("kind: ConfigMap\ndata:\n" + block(yaml.dump(v1(metadata={}))))
    assert result.converted == 1
    assert list(values(result)["job.yaml"]["metadata"]) == ["annotations"]


def test_places_are_lines_of_the_file() -> None:
    """Inside a literal text too, with both paths."""
    text = HEAD + block(JOB.replace("reg.io/img:1", "reg.io/img:1\n            imagePullPolicy: IfNotPresent"))
    finding = says(migrate_text(text).findings, "note", "imagePullPolicy")
    assert finding.where is not None
    assert text.splitlines()[finding.where.line - 1].strip() == "imagePullPolicy: IfNotPresent"
    assert finding.where.path.startswith('data["job.yaml"] / spec.')


def test_comments_in_the_text_are_announced() -> None:
    """Those outside are kept."""
    says(migrate_text(HEAD + block(f"# inside\n{JOB}")).findings, "note", "the text is written anew; its comments")
    assert "TJ913" not in [f.code for f in migrate_text(HEAD + block(JOB)).findings]


REFUSED = {
    "two documents": ("kind: ConfigMap\ndata:\n" + block(f"{JOB}---\n{JOB}"), "TJ909"),
    "a list of jobs": ("kind: ConfigMap\ndata:\n" + block(yaml.dump({"kind": "List", "items": [v1()]})), "TJ909"),
    "another kind": ("kind: Secret\nstringData:\n" + block(JOB), "TJ909"),
    "no kind at all": ("files:\n" + block(JOB), "TJ909"),
    "a text in a text": ("kind: ConfigMap\ndata:\n" + block("x: |\n" + textwrap.indent(JOB, "  ")), "TJ909"),
    "an anchor that is used": ("kind: ConfigMap\ndata:\n" + block(JOB, "&j |") + "  copy: *j\n", "TJ909"),
    "another version": ("kind: ConfigMap\ndata:\n" + block(JOB.replace("kubeflow.org/v1", "acme.io/v1")), "TJ907"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_rewritten_is_refused(case: str) -> None:
    """The text is left untouched, and told with its place."""
    text, code = REFUSED[case]
    result = migrate_text(text)
    assert (result.text, result.converted) == ("", 0)
    assert code in [f.code for f in result.findings if f.severity == "error"]
    assert result.exit_code == 1


@pytest.mark.parametrize(
    ("inner", "line", "message"),
    [
        ("kind: PyTorchJob\n\tx: 1\n", 3, "a tab is used"),
        (JOB.replace("demo", "{{ x }}"), None, "placeholder|not a scalar"),
    ],
)
def test_a_broken_text_is_unreadable(inner: str, line: int | None, message: str) -> None:
    """At its line in the file."""
    result = migrate_text("kind: ConfigMap\ndata:\n" + block(inner))
    assert (result.text, result.exit_code) == ("", 2)
    finding = says([f for f in result.findings if f.unreadable], "error", message)
    assert finding.where is not None
    assert line is None or finding.where.line == line + 2


def test_a_template_in_a_refused_text_is_told() -> None:
    """So that the reader knows what to do first."""
    result = migrate_text("kind: Secret\nstringData:\n" + block(JOB.replace("demo", "'{{ x }}'")))
    says(result.findings, "error", r"placeholder \{\{ x \}\} is not filled in")
    assert result.exit_code == 2
