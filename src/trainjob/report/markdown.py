"""The report as a pull request comment: GitHub and GitLab Markdown, in at most `limit` characters."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from typing import Final

from trainjob.findings import Finding, Severity
from trainjob.report.model import REFUSED, Cause, JobView, QueueSum, Review
from trainjob.report.plain import count

# GitHub refuses a comment of more than 65,536 characters.
LIMIT: Final = 60_000
_SPECIAL: Final = re.compile(r"([\\`*_\[\]|~$])")
# Between a character and the next it keeps mentions and links from being made.
_APART: Final = "\u200b"
_MARK: Final = {Severity.ERROR: "❌", Severity.WARNING: "⚠️", Severity.NOTE: "ℹ️"}


def text(value: str) -> str:
    """Plain words: nothing in them is Markdown, HTML, a link or a mention."""
    return _SPECIAL.sub(r"\\\1", inside_html(value))


def inside_html(value: str) -> str:
    """The same inside an HTML element, where no Markdown is read."""
    value = (
        " ".join(value.split())
        .replace("@", f"@{_APART}")
        .replace("://", f":{_APART}//")
        .replace("www.", f"www{_APART}.")
    )
    return html.escape(value, quote=False)


def code(value: str) -> str:
    """A code span that holds in a table too."""
    value = " ".join(value.split())
    ticks = max((len(run) for run in re.findall(r"`+", value)), default=0)
    fence = "`" * (ticks + 1)
    pad = " " if value.startswith("`") or value.endswith("`") else ""
    return f"{fence}{pad}{value}{pad}{fence}".replace("|", "\\|") if value else ""


def to_markdown(review: Review, limit: int = LIMIT) -> str:
    """Summary, blockers, things to look at, GPUs by queue, and the jobs folded away."""
    parts = [_head(review), *_causes(review), *_quota(review)]
    out = "\n".join(parts)
    shown, skipped = [], 0
    room = limit - len(out) - 200
    worst_first = sorted(review.jobs, key=lambda j: (j.state != REFUSED, -j.counts["error"], -j.counts["warning"]))
    for job in worst_first:
        block = _job(job)
        if skipped or len(block) + 1 > room:
            skipped += 1
            continue
        room -= len(block) + 1
        shown.append(block)
    if shown or skipped:
        out += "\n## Jobs\n\n" + "\n".join(shown)
    if skipped:
        out += f"\n{count(skipped, 'more job')} left out here; `--format html --report FILE` shows them all.\n"
    return out


def _head(review: Review) -> str:
    counts = review.counts
    return (
        "# PyTorchJob to TrainJob\n\n"
        f"**{count(len(review.jobs), 'job')}: {review.migrated} migrated, {review.refused} refused** for target "
        f"{text(review.target)}\n\n"
        "| jobs | migrated | refused | generated runtimes | errors | warnings | notes |\n"
        "|---:|---:|---:|---:|---:|---:|---:|\n"
        f"| {len(review.jobs)} | {review.migrated} | {review.refused} | {review.generated} "
        f"| {counts['error']} | {counts['warning']} | {counts['note']} |\n"
    )


def _causes(review: Review) -> Iterator[str]:
    for severity, title in ((Severity.ERROR, "Blockers by cause"), (Severity.WARNING, "To look at")):
        causes = review.causes(severity)
        if causes:
            yield f"## {title}\n\n| cause | jobs | findings | fix |\n|---|---:|---:|---|\n" + _lines(causes)


def _lines(causes: Iterable[Cause]) -> str:
    return "".join(
        f"| {code(c.code)} {text(c.example)} | {len(c.jobs)} | {len(c.findings)} | {text(c.fix)} |\n" for c in causes
    )


def _quota(review: Review) -> Iterator[str]:
    queues = review.queues()
    if not queues:
        return
    yield (
        "## Pods and GPUs by queue\n\n"
        "v1 started the Master's pod beside the Workers'. *By Worker count* is what a reader of `Worker.replicas` "
        "expects; a quota set by it is too small by the last column.\n\n"
        "| namespace | queue | jobs | pods in v1 | by Worker count | devices in v1 | devices in v2 | quota short by |\n"
        "|---|---|---:|---:|---:|---:|---:|---:|\n" + "".join(_queue(q) for q in queues)
    )


def _queue(q: QueueSum) -> str:
    short = q.before.more_devices_than(q.suggested)
    return (
        f"| {code(q.namespace) or '(none)'} | {code(q.queue) or '(none)'} | {q.jobs} | {q.before.pods} "
        f"| {q.suggested.pods} | {text(q.before.device_text)} | {text(q.after.device_text)} | {text(short) or '0'} |\n"
    )


def _job(job: JobView) -> str:
    counts = job.counts
    words = ", ".join(count(counts[s.value], s.value) for s in Severity if counts[s.value]) or "no findings"
    place = f"{job.where.file}:{job.where.line}" if job.where.line else job.where.file
    mark = "❌" if job.record.job is None else "⚠️" if counts["warning"] or job.held else "✅"
    lines = [
        f"<details><summary>{mark} {inside_html(job.label)}: {job.state}, {words} ({inside_html(place)})</summary>\n",
        f"{_shape(job)}\n",
        *(_finding(f) for f in job.findings),
        "\n</details>\n",
    ]
    return "\n".join(lines)


def _shape(job: JobView) -> str:
    shape = f"v1: {count(job.before.pods, 'pod')}, {text(job.before.device_text)} devices"
    if job.after is not None:
        own = ", a runtime of its own" if job.generated else ""
        shape += (
            f"; v2: {count(job.after.pods, 'pod')}, {text(job.after.device_text)} devices on {code(job.runtime)}{own}"
        )
    return shape + "."


def _finding(finding: Finding) -> str:
    line = f"line {finding.where.line}: " if finding.where is not None and finding.where.line else ""
    out = f"- {_MARK[finding.severity]} {code(finding.code)} {line}{text(finding.message)}"
    return out + (f"<br>fix: {text(finding.fix)}" if finding.fix else "")
