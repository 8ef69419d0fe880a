"""SARIF: valid by the OASIS schema, and what code scanning needs of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from tests.report import hostile
from tests.report.support import EXAMPLE, of_cases, of_files, review, sarif_schema
from trainjob.findings import Finding, Location, Severity
from trainjob.report.model import Review
from trainjob.report.sarif import FINGERPRINT, to_sarif

RULES_DIR = Path(__file__).parents[2] / "docs" / "rules"
URL = "https://docs.example.com/rules/"


def sarif(found: Review, url: str = "") -> dict[str, Any]:
    out = json.loads(to_sarif(found.findings, found.rules, url))
    assert isinstance(out, dict)
    return out


def run(found: Review, url: str = "") -> dict[str, Any]:
    (only,) = sarif(found, url)["runs"]
    assert isinstance(only, dict)
    return only


@pytest.fixture(scope="module")
def validator() -> Any:
    return jsonschema_rs.Draft7Validator(sarif_schema(), validate_formats=True)


@pytest.mark.parametrize("url", ["", URL])
def test_it_is_valid(validator: Any, url: str) -> None:
    for found in (of_cases(), of_files(EXAMPLE), review([]), review([(hostile.FILE, hostile.TEXT)])):
        assert [e.message for e in validator.iter_errors(sarif(found, url))] == []


def test_the_schema_refuses_what_is_wrong(validator: Any) -> None:
    broken = sarif(of_files(EXAMPLE))
    broken["runs"][0]["results"][0]["level"] = "fatal"
    assert not validator.is_valid(broken)


def test_results_point_at_the_place() -> None:
    found = of_files(EXAMPLE)
    ttl = next(r for r in run(found)["results"] if r["ruleId"] == "TJ405")
    (where,) = ttl["locations"]
    assert where["physicalLocation"] == {
        "artifactLocation": {"uri": "examples/pytorchjob.yaml", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 13, "startColumn": 5},
    }
    assert where["logicalLocations"][0]["fullyQualifiedName"] == "spec.runPolicy.ttlSecondsAfterFinished"
    assert ttl["level"] == "warning"
    assert "delete finished TrainJobs" in ttl["message"]["text"]


def test_rules_are_listed_once_and_link_to_pages_that_exist() -> None:
    only = run(of_cases(), URL)
    rules = only["tool"]["driver"]["rules"]
    assert len({r["id"] for r in rules}) == len(rules)
    for result in only["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    for rule in rules:
        assert rule["helpUri"] == f"https://docs.example.com/rules/{rule['id']}.md"
        assert (RULES_DIR / f"{rule['id']}.md").exists()
        assert rule["shortDescription"]["text"]


def test_without_a_place_for_the_pages_a_rule_still_says_what_it_means() -> None:
    for rule in run(of_cases())["tool"]["driver"]["rules"]:
        assert "helpUri" not in rule
        assert rule["help"]["text"]


def test_fingerprints_are_unique_and_survive_moved_lines() -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    before = [r["partialFingerprints"][FINGERPRINT] for r in run(review([("a.yaml", text)]))["results"]]
    after = [r["partialFingerprints"][FINGERPRINT] for r in run(review([("a.yaml", "# new\n\n" + text)]))["results"]]
    assert before == after
    everything = [r["partialFingerprints"][FINGERPRINT] for r in run(of_cases())["results"]]
    assert len(set(everything)) == len(everything)


@pytest.mark.parametrize(
    ("file", "location"),
    [
        ("a b/job.yaml", {"uri": "a%20b/job.yaml", "uriBaseId": "%SRCROOT%"}),
        ("<stdin>", {"uri": "stdin", "uriBaseId": "%SRCROOT%"}),
        ("/srv/job.yaml", {"uri": "file:///srv/job.yaml"}),
    ],
)
def test_file_names_are_uris(file: str, location: dict[str, str]) -> None:
    finding = Finding("TJ101", Severity.NOTE, "m", Location(file, 3, 0))
    (result,) = json.loads(to_sarif([finding], {}))["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"] == location
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 3, "startColumn": 1}


def test_a_finding_without_a_place_has_no_location() -> None:
    (result,) = json.loads(to_sarif([Finding("TJ910", Severity.ERROR, "m")], {}))["runs"][0]["results"]
    assert "locations" not in result
    assert result["level"] == "error"
