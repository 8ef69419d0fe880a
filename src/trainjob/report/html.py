"""One HTML page that needs nothing else: no network, no other file, no script to be read.

Every text of a manifest goes through `esc`; besides, a Content-Security-Policy lets only this page's
own script run, known by its hash.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterator
from typing import Final

from trainjob import __version__
from trainjob.findings import Finding, Severity
from trainjob.report import diff, footprint
from trainjob.report.diff import Line
from trainjob.report.footprint import Footprint
from trainjob.report.model import Cause, JobView, QueueSum, Review
from trainjob.report.plain import count
from trainjob.report.style import CSS, JS

# A new line, or on narrow screens a comma.
BREAK: Final = '<i class="c">, </i><br>'
NONE: Final = '<span class="dim">none</span>'
_CAUSE: Final = ("cause", "jobs", "findings", "what to do", "which")
_QUOTA: Final = (
    "namespace", "queue", "jobs", "v1 ran", "by Worker count", "quota short by", "v2 asks for", "not migrated",
)  # fmt: skip
_JOB: Final = ("namespace/name", "file", "state", "v1", "v2", "queue", "runtime", "findings")
_NUMBERS: Final = frozenset({"jobs", "findings", "v1", "v2", *_QUOTA[3:]})


def esc(value: object) -> str:
    """Text that is safe between tags and in quoted attributes."""
    return html.escape(str(value), quote=True)


def to_html(review: Review) -> str:
    """The whole page."""
    return "".join(_page(review))


def _page(review: Review) -> Iterator[str]:
    digest = base64.b64encode(hashlib.sha256(JS.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'; "
        "form-action 'none'"
    )
    yield (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{esc(policy)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Migration: {count(len(review.jobs), 'PyTorchJob')}</title>\n<style>{CSS}</style></head><body>\n"
    )
    yield (
        "<h1>PyTorchJob to TrainJob: migration review</h1>\n"
        f'<p class="dim">target {esc(review.target)} · {count(review.files, "file")} read · '
        f"trainjob {esc(__version__)}</p>\n"
    )
    yield _cards(review)
    yield from _causes(review, Severity.ERROR, "Blockers by cause", "These jobs are not converted.")
    yield from _causes(
        review, Severity.WARNING, "To decide", "Something that the job had is lost, or behaves differently afterwards."
    )
    yield from _quota(review)
    yield from _loose(review.loose())
    yield from _table(review)
    yield from _details(review)
    yield f"<script>{JS}</script>\n</body></html>\n"


def _cards(review: Review) -> str:
    counts = review.counts
    cards = [
        (len(review.jobs), "jobs", ""),
        (review.migrated, "migrated", "migrated"),
        (review.refused, "refused", "refused" if review.refused else ""),
        (review.generated, "generated runtimes", ""),
        (counts["error"], "errors", "error" if counts["error"] else ""),
        (counts["warning"], "warnings", "warning" if counts["warning"] else ""),
        (counts["note"], "notes", ""),
    ]
    inner = "".join(f'<div class="card"><b class="{c}">{n}</b><span>{esc(what)}</span></div>' for n, what, c in cards)
    return f'<div class="cards">{inner}</div>\n'


def _causes(review: Review, severity: Severity, title: str, words: str) -> Iterator[str]:
    causes = review.causes(severity)
    if not causes:
        return
    yield (
        f'<h2>{esc(title)}</h2><p class="dim">{esc(words)}</p>\n<div class="scroll"><table><thead><tr>{_heads(_CAUSE)}'
        "</tr></thead><tbody>\n"
    )
    for cause in causes:
        yield _cause(review, cause)
    yield "</tbody></table></div>\n"


def _cause(review: Review, cause: Cause) -> str:
    links = ", ".join(f'<a href="#job-{i}">{esc(review.jobs[i].label)}</a>' for i in cause.jobs)
    if len(cause.jobs) > 5:
        links = f"<details><summary>{len(cause.jobs)} jobs</summary>{links}</details>"
    code = f'<b class="{cause.severity.value}" title="{esc(cause.title)}">{esc(cause.code)}</b>'
    cells = (f"{code} {esc(cause.example)}", len(cause.jobs), len(cause.findings), esc(cause.fix), links)
    kinds = ("", "n", "n", "", "w")
    return "<tr>" + "".join(map(_cell, _CAUSE, cells, kinds)) + "</tr>\n"


# --- quota ---------------------------------------------------------------------------------------


def _quota(review: Review) -> Iterator[str]:
    queues = review.queues()
    if not queues:
        return
    yield (
        "<h2>Pods and GPUs by namespace and queue</h2>\n<p>v1 started the Master's pod beside the Workers', and each "
        "asks for the same devices. Who reads only <code>Worker.replicas</code> expects what stands under <i>by "
        "Worker count</i>; a quota set by it is too small, and jobs stay Suspended. The numbers of v2 are read from "
        "the written objects.</p>\n"
        f'<div class="scroll"><table><thead><tr>{_heads(_QUOTA)}</tr></thead><tbody>\n'
    )
    for queue in queues:
        yield _queue(queue, esc(queue.namespace) or NONE, esc(queue.queue))
    if len(queues) > 1:
        parts = [(q.before, q.suggested, q.after, q.refused) for q in queues]
        sums = [footprint.total(column) for column in zip(*parts, strict=True)]
        whole = QueueSum("", "", sum(q.jobs for q in queues), *sums)
        yield f"</tbody><tfoot>{_queue(whole, 'all', 'all')}</tfoot>"
    else:
        yield "</tbody>"
    yield "</table></div>\n"


def _queue(q: QueueSum, namespace: str, queue: str) -> str:
    short = q.before.more_devices_than(q.suggested)
    cells = (
        namespace,
        queue or NONE,
        q.jobs,
        _size(q.before),
        _size(q.suggested),
        _stack(short or "0"),
        _size(q.after),
        _size(q.refused),
    )
    kinds = ("", "", "n", "n z", "n z", "n z short" if short else "n", "n z", "n z")
    return "<tr>" + "".join(map(_cell, _QUOTA, cells, kinds)) + "</tr>\n"


def _heads(names: tuple[str, ...]) -> str:
    return "".join(f"<th{' class=n' if name in _NUMBERS else ''}>{esc(name)}</th>" for name in names)


def _cell(name: str, inner: object, kind: str = "") -> str:
    """A cell that carries its column's name, for narrow screens, where a row is a list."""
    return f'<td data-l="{esc(name)}"{f" class={chr(34)}{kind}{chr(34)}" if kind else ""}>{inner}</td>'


def _stack(value: object) -> str:
    """Several devices in one cell, one on a line."""
    return BREAK.join(esc(part) for part in str(value).split(", "))


# --- jobs ----------------------------------------------------------------------------------------


def _loose(findings: list[Finding]) -> Iterator[str]:
    if findings:
        yield f'<h2>About files and documents</h2>\n<ul class="f">{"".join(map(_finding, findings))}</ul>\n'


def _table(review: Review) -> Iterator[str]:
    states = sorted({job.state for job in review.jobs})
    boxes = "".join(
        f'<label><input type="checkbox" value="{esc(s)}" checked> <span class="{esc(s.split()[0])}">{esc(s)}</span>'
        "</label> "
        for s in states
    )
    yield (
        '<h2>Jobs</h2>\n<div class="bar" id="bar" hidden><input type="search" id="q" aria-label="filter the jobs" '
        f'placeholder="name, file, queue, code"> {boxes}<span class="dim" id="n"></span></div>\n'
        f'<div class="scroll"><table class="jobs"><thead><tr>{_heads(_JOB)}</tr></thead><tbody>\n'
    )
    for i, job in enumerate(review.jobs):
        yield _job_row(i, job)
    yield "</tbody></table></div>\n"


def _place(job: JobView) -> str:
    return f"{job.where.file}:{job.where.line}" if job.where.line else job.where.file


def _tag(job: JobView) -> str:
    return f'<span class="tag {esc(job.state.split()[0])}">{esc(job.state)}</span>'


def _size(size: Footprint | None) -> str:
    if size is None:
        return "-"
    return count(size.pods, "pod") + (BREAK + _stack(size.device_text) if size.device_text != "0" else "")


def _job_row(i: int, job: JobView) -> str:
    codes = " ".join(dict.fromkeys(f.code for f in job.findings))
    text = f"{job.label} {_place(job)} {job.queue} {job.runtime} {codes}".lower()
    own = ' <span class="dim">(generated)</span>' if job.generated else ""
    cells = (
        f'<a href="#job-{i}">{esc(job.label)}</a>',
        f"<code>{esc(_place(job))}</code>",
        _tag(job),
        _size(job.before),
        _size(job.after),
        esc(job.queue),
        esc(job.runtime) + own,
        _marks(job),
    )
    kinds = ("", "", "", "n", "n", "", "", "n")
    return (
        f'<tr data-state="{esc(job.state)}" data-job="job-{i}" data-text="{esc(text)}">'
        + "".join(map(_cell, _JOB, cells, kinds))
        + "</tr>\n"
    )


def _marks(job: JobView) -> str:
    counts = job.counts
    shown = [f'<span class="{s.value}">{count(counts[s.value], s.value)}</span>' for s in Severity if counts[s.value]]
    return BREAK.join(shown)


def _details(review: Review) -> Iterator[str]:
    if review.jobs:
        yield (
            '<h2>Job by job</h2>\n<p class="dim">In the texts <span class="key gone">nothing of this line is in the '
            'output</span> <span class="key new">new</span> <span class="key changed">another value</span>; unmarked '
            "lines are kept.</p>\n"
        )
    for i, job in enumerate(review.jobs):
        yield (
            f'<details id="job-{i}"><summary><b>{esc(job.label)}</b> {_tag(job)} '
            f'<code>{esc(_place(job))}</code></summary><div class="in">\n'
        )
        if job.findings:
            loud = sorted((f for f in job.findings if f.severity is not Severity.NOTE), key=lambda f: -f.severity.rank)
            notes = [f for f in job.findings if f.severity is Severity.NOTE]
            yield f'<ul class="f">{"".join(map(_finding, loud))}</ul>\n' if loud else ""
            if notes:
                yield f'<details class="q"><summary>{count(len(notes), "note")}</summary><ul class="f">'
                yield f"{''.join(map(_finding, notes))}</ul></details>\n"
        yield from _diff(job)
        yield "</div></details>\n"


def _finding(finding: Finding) -> str:
    where = finding.where
    place = f" <code>{esc(where)}</code>" if where is not None else ""
    path = f' <code class="dim">{esc(where.path)}</code>' if where is not None and where.path else ""
    fix = f"<div><b>fix:</b> {esc(finding.fix)}</div>" if finding.fix else ""
    level = finding.severity.value
    return (
        f'<li class="{level}"><span class="k">{level} {esc(finding.code)}</span>{place}{path}'
        f"<div>{esc(finding.message)}</div>{fix}</li>"
    )


def _diff(job: JobView) -> Iterator[str]:
    if job.record.job is None:
        yield "<p>Refused: this job stays in its document as it was.</p>\n"
    elif job.held:
        yield "<p>Held back: another part of the file cannot be read, so the file gives no output.</p>\n"
    columns = '<colgroup><col class="l"><col><col class="e"></colgroup>'
    yield f'<div class="pair"><table class="d">{columns}<thead><tr><th colspan="3">before: {esc(_place(job))}</th></tr>'
    yield "</thead>"
    yield "<tbody>\n"
    for line in diff.before(job.record, job.findings):
        said = " ".join(dict.fromkeys(_code(f) for f in line.findings))
        yield _line(line, said)
    yield "</tbody></table>\n"
    if job.record.job is not None:
        yield f'<table class="d">{columns}<thead><tr><th colspan="3">after, and from which line</th></tr></thead>'
        yield "<tbody>\n"
        for line in diff.after(job.record):
            yield _line(line, _from(line))
        yield "</tbody></table>"
    yield "</div>\n"


def _line(line: Line, end: str) -> str:
    return f'<tr class="{line.change.value}"><td>{line.number or ""}<td>{esc(line.text)}<td>{end}\n'


def _code(finding: Finding) -> str:
    return f'<span class="{finding.severity.value}" title="{esc(finding.message)}">{esc(finding.code)}</span>'


def _from(line: Line) -> str:
    shown = ", ".join(str(n) for n in line.origin[:2])
    return shown + (", …" if len(line.origin) > 2 else "")
