"""The table of `migrate --explain`."""

from __future__ import annotations

import json

from tests.report.support import CASES, EXAMPLE, REFUSED
from trainjob.migrate import migrate_text
from trainjob.migrate.document import Record
from trainjob.migrate.job import Options
from trainjob.report.fields import to_json, to_text


def records(text: bytes | str) -> tuple[Record, ...]:
    return migrate_text(text, file="job.yaml", options=Options(explain=True)).records


def test_a_line_says_value_rule_and_place() -> None:
    lines = to_text(records(EXAMPLE.read_bytes())).splitlines()
    assert lines[0] == "TrainJob llama-sft, from job.yaml:3:1"
    assert lines[1].split() == ["FIELD", "VALUE", "RULE", "FROM"]
    nodes = next(line for line in lines if line.startswith("spec.trainer.numNodes"))
    assert nodes.split(maxsplit=3) == [
        "spec.trainer.numNodes", "3", "TJ101,TJ102", "spec.pytorchReplicaSpecs.{Master,Worker}.replicas (lines 16, 45)",
    ]  # fmt: skip


def test_columns_stay_in_place() -> None:
    lines = to_text(records(EXAMPLE.read_bytes())).splitlines()
    column = lines[1].index("VALUE")
    for line in lines[1:]:
        if len(line) > column and line[:column].strip():
            assert line[column - 1] == " " or not line[column:].strip() or " " not in line, line


def test_values_are_one_printable_line() -> None:
    found = records(EXAMPLE.read_text(encoding="utf-8").replace("--epochs=3", r'"a\nb\u001b[31m' + "x" * 80 + '"'))
    lines = to_text(found).splitlines()
    line = next(x for x in lines if x.startswith("spec.trainer.command[2]"))
    assert "\x1b" not in "".join(lines)
    assert "..." in line


def test_a_refused_job_has_no_table() -> None:
    assert to_text(records(REFUSED.read_bytes())) == ""
    assert json.loads(to_json(records(REFUSED.read_bytes()))) == {"jobs": []}


def test_json_has_the_same_fields_with_lines() -> None:
    (job,) = json.loads(to_json(records(EXAMPLE.read_bytes())))["jobs"]
    assert job["migratedFrom"] == "job.yaml:3 PyTorchJob nlp/llama-sft"
    assert len(job["sourceSha256"]) == 64
    nodes = next(f for f in job["fields"] if f["path"] == "spec.trainer.numNodes")
    assert nodes == {
        "object": "TrainJob",
        "path": "spec.trainer.numNodes",
        "value": 3,
        "kind": "v1",
        "rules": ["TJ101", "TJ102"],
        "sources": [
            {"path": "spec.pytorchReplicaSpecs.Master.replicas", "line": 16, "column": 7},
            {"path": "spec.pytorchReplicaSpecs.Worker.replicas", "line": 45, "column": 7},
        ],
    }


def test_a_generated_runtime_has_a_table_of_its_own() -> None:
    text = to_text(records((CASES / "48-run-policy-exitcode" / "before.yaml").read_bytes()))
    heads = [line.split()[0] for line in text.splitlines() if ", from job.yaml" in line]
    assert heads == ["TrainingRuntime", "TrainJob"]
