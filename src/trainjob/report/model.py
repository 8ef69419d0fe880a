"""What every form of the report is made from: the jobs, the findings, and sums over them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from trainjob.findings import Finding, Location, Report, Severity
from trainjob.kube.names import QUEUE_LABEL
from trainjob.kube.yaml import dump_all
from trainjob.migrate.document import Record
from trainjob.report import footprint
from trainjob.report.footprint import Footprint
from trainjob.v1.pytorchjob import dict_at

MIGRATED: Final = "migrated"
REFUSED: Final = "refused"
HELD: Final = "held back"
# What differs between findings of one kind: quoted names, numbers.
_PARTICULAR: Final = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")


class Rule(Protocol):
    """What is known of a finding code: `title` is one line, `text` the whole page."""

    @property
    def code(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def text(self) -> str: ...


@dataclass(frozen=True, slots=True)
class JobView:
    """One PyTorchJob in the report. `held`: converted, but its file gives no output."""

    record: Record
    findings: tuple[Finding, ...]
    held: bool = False

    @property
    def where(self) -> Location:
        return self.record.where

    @property
    def state(self) -> str:
        if self.record.job is None:
            return REFUSED
        return HELD if self.held else MIGRATED

    @property
    def _metadata(self) -> Mapping[str, Any]:
        return dict_at(self.record.data, "metadata") if isinstance(self.record.data, Mapping) else {}

    @property
    def namespace(self) -> str:
        return _text(self._metadata.get("namespace"))

    @property
    def name(self) -> str:
        return _text(self._metadata.get("name") or self._metadata.get("generateName"))

    @property
    def label(self) -> str:
        """`namespace/name`, as far as both are known."""
        name = self.name or "(no name)"
        return f"{self.namespace}/{name}" if self.namespace else name

    @property
    def queue(self) -> str:
        """The Kueue queue, or the scheduler's queue of v1's schedulingPolicy; "" without one."""
        for key in ("labels", "annotations"):
            queue = dict_at(self._metadata, key).get(QUEUE_LABEL)
            if queue:
                return _text(queue)
        spec = dict_at(self.record.data, "spec") if isinstance(self.record.data, Mapping) else {}
        return _text(dict_at(dict_at(spec, "runPolicy"), "schedulingPolicy").get("queue"))

    @property
    def before(self) -> Footprint:
        return footprint.v1(self.record.data)

    @property
    def suggested(self) -> Footprint:
        return footprint.suggested(self.record.data)

    @property
    def after(self) -> Footprint | None:
        """None where nothing was written."""
        return None if self.record.job is None or self.held else footprint.v2(self.record.job)

    @property
    def runtime(self) -> str:
        return "" if self.record.job is None else str(self.record.job.manifest["spec"]["runtimeRef"]["name"])

    @property
    def generated(self) -> bool:
        return self.record.job is not None and self.record.job.runtime is not None

    @property
    def text_after(self) -> str:
        """The written objects as YAML; "" for a refused job."""
        return "" if self.record.job is None else dump_all(self.record.job.objects())

    @property
    def counts(self) -> dict[str, int]:
        return Report(self.findings).counts()


@dataclass(frozen=True, slots=True)
class Cause:
    """Findings that have one code and one way out: why jobs are refused, or something to look at.

    `jobs` are their places in `Review.jobs`; findings of a file as a whole have none.
    """

    code: str
    title: str
    severity: Severity
    findings: tuple[Finding, ...]
    jobs: tuple[int, ...]

    @property
    def example(self) -> str:
        """The message of the first finding; others may differ in names and numbers."""
        return self.findings[0].message

    @property
    def fix(self) -> str:
        return self.findings[0].fix


@dataclass(frozen=True, slots=True)
class QueueSum:
    """All jobs of one namespace and queue. `refused` is the part of `before` that stays in v1."""

    namespace: str
    queue: str
    jobs: int
    before: Footprint
    suggested: Footprint
    after: Footprint
    refused: Footprint


@dataclass(frozen=True, slots=True)
class Review:
    """One run of `migrate`. `findings` holds all of them in order, also those of no single job."""

    target: str
    jobs: tuple[JobView, ...]
    findings: tuple[Finding, ...]
    rules: Mapping[str, Rule] = field(default_factory=dict)
    files: int = 0
    without: int = 0
    written: int = 0

    @property
    def migrated(self) -> int:
        return sum(job.state == MIGRATED for job in self.jobs)

    @property
    def refused(self) -> int:
        return sum(job.state == REFUSED for job in self.jobs)

    @property
    def generated(self) -> int:
        """Generated runtimes, each name and namespace once."""
        made = {(j.namespace, j.runtime) for j in self.jobs if j.generated and j.state == MIGRATED}
        return len(made)

    @property
    def counts(self) -> dict[str, int]:
        return Report(self.findings).counts()

    def title(self, code: str) -> str:
        rule = self.rules.get(code)
        return rule.title if rule else code

    def causes(self, severity: Severity) -> list[Cause]:
        """Findings of this severity by cause, the one with the most jobs first."""
        holder: dict[int, list[int]] = {}
        for i, job in enumerate(self.jobs):
            for finding in job.findings:
                holder.setdefault(id(finding), []).append(i)
        by_cause: dict[tuple[str, str], list[Finding]] = {}
        for finding in self.findings:
            if finding.severity is severity:
                key = (finding.code, _PARTICULAR.sub("*", finding.fix or finding.message))
                by_cause.setdefault(key, []).append(finding)
        out = []
        for (code, _), found in by_cause.items():
            jobs = dict.fromkeys(i for f in found for i in holder.get(id(f), ()))
            out.append(Cause(code, self.title(code), severity, tuple(found), tuple(sorted(jobs))))
        return sorted(out, key=lambda c: (-len(c.jobs), -len(c.findings), c.code))

    def loose(self) -> list[Finding]:
        """Findings that belong to no job: of files, and of documents with several jobs."""
        told = {id(f) for job in self.jobs for f in job.findings}
        return [f for f in self.findings if id(f) not in told]

    def queues(self) -> list[QueueSum]:
        """Sums by namespace and queue, in the order of their names."""
        groups: dict[tuple[str, str], list[JobView]] = {}
        for job in self.jobs:
            groups.setdefault((job.namespace, job.queue), []).append(job)
        return [_sum(namespace, queue, jobs) for (namespace, queue), jobs in sorted(groups.items())]


def _sum(namespace: str, queue: str, jobs: list[JobView]) -> QueueSum:
    return QueueSum(
        namespace,
        queue,
        len(jobs),
        footprint.total(j.before for j in jobs),
        footprint.total(j.suggested for j in jobs),
        footprint.total(j.after for j in jobs if j.after is not None),
        footprint.total(j.before for j in jobs if j.after is None),
    )


def views(records: Iterable[Record], findings: Iterable[Finding], *, held: bool = False) -> list[JobView]:
    """The jobs of one document. What was found about the document goes to its job when it has only one."""
    records = list(records)
    if len(records) == 1:
        return [JobView(records[0], tuple(findings), held)]
    return [JobView(record, record.findings, held) for record in records]


def _text(value: Any) -> str:
    return "" if value is None else str(value)
