"""Findings are values: their text, their JSON, and what they mean for the exit code."""

from __future__ import annotations

import json

import pytest

from trainjob.findings import Finding, Location, Report, Severity, merge

ERROR = Finding(
    "TJ105", Severity.ERROR, "bad name", Location("a.yaml", 3, 5, "metadata.name"), "rename it", "PyTorchJob x"
)
WARNING = Finding("TJ405", Severity.WARNING, "lost")
NOTE = Finding("TJ101", Severity.NOTE, "3 pods", Location("a.yaml"))
BROKEN = Finding("TJ905", Severity.ERROR, "no YAML", Location("b.yaml", 1, 1), unreadable=True)


def test_severities_are_ordered() -> None:
    """Error over warning over note."""
    assert sorted(Severity, key=lambda s: s.rank) == [Severity.NOTE, Severity.WARNING, Severity.ERROR]


@pytest.mark.parametrize(
    ("location", "text"),
    [(Location("a"), "a"), (Location("a", 3, 5), "a:3:5"), (Location("a", 3, 5, "x.y"), "a:3:5")],
)
def test_places_are_written_for_editors(location: Location, text: str) -> None:
    """file:line:column, or the file alone."""
    assert str(location) == text


def test_text_of_a_finding() -> None:
    """Severity, code, place and message; then path and fix where there are any."""
    assert ERROR.text() == "error[TJ105] a.yaml:3:5: bad name\n    at: metadata.name\n    fix: rename it"
    assert WARNING.text() == "warning[TJ405]: lost"
    assert NOTE.text() == "note[TJ101] a.yaml: 3 pods"


def test_json_of_a_finding() -> None:
    """Only what is known."""
    assert ERROR.to_dict() == {
        "code": "TJ105",
        "severity": "error",
        "message": "bad name",
        "fix": "rename it",
        "subject": "PyTorchJob x",
        "file": "a.yaml",
        "line": 3,
        "column": 5,
        "path": "metadata.name",
    }
    assert WARNING.to_dict() == {"code": "TJ405", "severity": "warning", "message": "lost"}
    assert NOTE.to_dict() == {"code": "TJ101", "severity": "note", "message": "3 pods", "file": "a.yaml"}


@pytest.mark.parametrize(
    ("findings", "threshold", "code"),
    [
        ((), Severity.NOTE, 0),
        ((NOTE,), Severity.NOTE, 1),
        ((NOTE,), Severity.WARNING, 0),
        ((NOTE, WARNING), Severity.WARNING, 1),
        ((WARNING,), Severity.ERROR, 0),
        ((ERROR,), Severity.ERROR, 1),
        ((ERROR,), None, 0),
        ((BROKEN,), None, 2),
        ((NOTE, BROKEN, ERROR), Severity.NOTE, 2),
    ],
)
def test_exit_codes(findings: tuple[Finding, ...], threshold: Severity | None, code: int) -> None:
    """2 for unreadable input whatever the threshold, 1 at or above it, else 0."""
    assert Report(findings).exit_code(threshold) == code


def test_the_default_threshold_is_a_warning() -> None:
    """A loss does not end with 0."""
    assert Report((WARNING,)).exit_code() == 1
    assert Report((NOTE,)).exit_code() == 0


def test_a_report_counts() -> None:
    """By severity, with the worst of them, and the ones that matter."""
    report = Report.of(iter([NOTE, ERROR, WARNING, NOTE]))
    assert report.counts() == {"error": 1, "warning": 1, "note": 2}
    assert report.worst is Severity.ERROR
    assert report.at_least(Severity.WARNING) == (ERROR, WARNING)
    assert Report().worst is None


def test_a_report_is_written() -> None:
    """As lines, and as JSON that can be read back."""
    report = Report((NOTE, WARNING))
    assert report.text() == "note[TJ101] a.yaml: 3 pods\nwarning[TJ405]: lost\n"
    assert Report().text() == ""
    body = json.loads(report.json())
    assert body == {"findings": [NOTE.to_dict(), WARNING.to_dict()], "counts": {"error": 0, "warning": 1, "note": 1}}


def test_reports_are_merged_in_order() -> None:
    """With their facts."""
    both = merge([Report((ERROR,), ({"a": 1},)), Report((), ()), Report((NOTE,), ({"b": 2},))])
    assert both == Report((ERROR, NOTE), ({"a": 1}, {"b": 2}))
