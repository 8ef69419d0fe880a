"""Helm charts as inputs of `migrate`: what helm renders, with findings at the lines of the templates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from trainjob.cli.inputs import Input
from trainjob.findings import Finding, Location, Severity
from trainjob.migrate.codes import TEMPLATE_REFUSED
from trainjob.migrate.tree import helm


@dataclass(frozen=True, slots=True)
class ChartInput(Input):
    """One rendered chart. Its output is a rendered file too: templates are not rewritten."""

    rendered: helm.Rendered | None = None

    def lines(self) -> Iterator[str]:
        yield from (self.rendered.text if self.rendered is not None else "").splitlines(keepends=True)

    def mapped(self, findings: Iterable[Finding]) -> list[Finding]:
        return [self.rendered.mapped(f) if self.rendered is not None else f for f in findings]

    def edits(self) -> Iterator[Finding]:
        """The lines of the templates that have to change."""
        if self.rendered is not None:
            yield from helm.edits(self.rendered)


def chart_inputs(
    given: Path, folders: Iterable[Path], settings: helm.Settings, findings: list[Finding]
) -> Iterator[ChartInput]:
    """The charts of a folder argument, rendered; a finding for each that cannot be."""
    for chart in folders:
        try:
            rendered = helm.render(helm.find_helm(), chart, str(chart), settings)
        except helm.HelmError as err:
            where = Location(str(chart / helm.CHART), 1, 1)
            findings.append(
                Finding(
                    TEMPLATE_REFUSED, Severity.ERROR, f"not rendered: {err.message}", where, err.fix, unreadable=True
                )
            )
            continue
        yield ChartInput(str(chart), None, chart.relative_to(given) / "rendered.yaml", True, rendered)
