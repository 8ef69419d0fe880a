"""The report of `migrate` in the form that was asked for; each form is imported only then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from trainjob.findings import Finding, Report
from trainjob.migrate.document import DocumentResult, Record
from trainjob.report import plain
from trainjob.report.model import JobView, Review, views

F = TypeVar("F", bound=Callable[..., Any])
FORMATS: Final = ("text", "json", "sarif", "markdown", "html")


@dataclass(slots=True)
class Counts:
    """What one run came to, as the text and JSON reports count it."""

    target: str
    converted: int = 0
    refused: int = 0
    runtimes: int = 0
    written: int = 0
    without: int = 0
    files: int = 0


@dataclass(slots=True)
class Kept:
    """What the form of the report needs of the documents; the other forms keep nothing in memory."""

    style: str
    explain: bool = False
    facts: list[dict[str, Any]] = field(default_factory=list)
    views: list[JobView] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)

    def saw(self, result: DocumentResult) -> None:
        if self.explain:
            self.records += result.records
        elif self.style == "json":
            self.facts += [plain.job_facts(record) for record in result.records if record.job is not None]

    @property
    def wants_views(self) -> bool:
        return self.style in ("markdown", "html") and not self.explain

    def file(self, results: list[DocumentResult], *, unreadable: bool) -> None:
        """One input is at its end."""
        for result in results:
            self.views += views(result.records, result.findings, held=unreadable)

    def explained(self) -> str:
        """The product of --explain."""
        from trainjob.report import fields

        return (fields.to_json if self.style == "json" else fields.to_text)(self.records)


def body(kept: Kept, counts: Counts, found: tuple[Finding, ...], told: tuple[Finding, ...], docs_url: str) -> str:
    """The whole report. `told`: the findings that the text form shows."""
    if kept.style == "json":
        return plain.to_json(
            found,
            kept.facts,
            target=counts.target,
            converted=counts.converted,
            refused=counts.refused,
            runtimes=counts.runtimes,
            without=counts.without,
        )
    if kept.style == "text":
        return Report(told).text() + summary(counts, found) + "\n"
    from trainjob.cli.codes import documented

    rules = documented()
    if kept.style == "sarif":
        from trainjob.report.sarif import to_sarif

        return to_sarif(found, rules, docs_url)
    review = Review(counts.target, tuple(kept.views), found, rules, counts.files, counts.without, counts.written)
    if kept.style == "markdown":
        from trainjob.report.markdown import to_markdown

        return to_markdown(review)
    from trainjob.report.html import to_html

    return to_html(review)


def summary(counts: Counts, found: tuple[Finding, ...]) -> str:
    """The last line of the text report."""
    return plain.summary(
        Report(found).counts(),
        converted=counts.converted,
        refused=counts.refused,
        runtimes=counts.runtimes,
        written=counts.written,
        without=counts.without,
    )


def report_options(function: F) -> F:
    """`--format`, `--report`, `--explain` and `--docs-url`."""
    for option in reversed(
        (
            click.option(
                "--format", "style", type=click.Choice(FORMATS), default="text", show_default=True,
                help="Form of the report: sarif for code scanning, markdown for a pull request comment, html for a "
                "review page.",
            ),
            click.option(
                "--report", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
                help="Write the report to FILE instead of stderr; a summary line stays on stderr.",
            ),
            click.option(
                "--explain", is_flag=True,
                help="Instead of the TrainJobs print, for each of their fields, the v1 field (with its line) and the "
                "rule that it came from; with --format json as JSON.",
            ),
            click.option(
                "--docs-url", metavar="URL", envvar="TRAINJOB_DOCS_URL", default="",
                help="Where docs/rules is published; SARIF rules then link to their page (helpUri).",
            ),
        )
    ):  # fmt: skip
        function = option(function)
    return function
