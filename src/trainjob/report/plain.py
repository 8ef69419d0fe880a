"""The report as text for a terminal, and as JSON."""

from __future__ import annotations

import json
from typing import Any

from trainjob.findings import Finding, Report
from trainjob.migrate.document import Record


def count(number: int, word: str) -> str:
    """`1 job`, `2 jobs`."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def summary(counts: dict[str, int], *, converted: int, refused: int, runtimes: int, written: int, without: int) -> str:
    """The last line of the text report."""
    return (
        f"{count(converted, 'job')} migrated, {refused} refused"
        + (f", {count(runtimes, 'runtime')} generated" if runtimes else "")
        + (f", {count(written, 'file')} written" if written else "")
        + (f", {count(without, 'file')} without a v1 job" if without else "")
        + f"; {count(counts['error'], 'error')}, {count(counts['warning'], 'warning')}, {count(counts['note'], 'note')}"
    )


def job_facts(record: Record) -> dict[str, Any]:
    """One converted job as plain data."""
    assert record.job is not None
    manifest = record.job.manifest
    metadata = manifest.get("metadata", {})
    return {
        "file": record.where.file,
        "name": metadata.get("name") or metadata.get("generateName"),
        "namespace": metadata.get("namespace"),
        "runtime": manifest["spec"]["runtimeRef"]["name"],
        "generatedRuntime": record.job.runtime is not None,
        "nodes": manifest["spec"]["trainer"].get("numNodes"),
    }


def to_json(
    findings: tuple[Finding, ...],
    jobs: list[dict[str, Any]],
    *,
    target: str,
    converted: int,
    refused: int,
    runtimes: int,
    without: int,
) -> str:
    """The report for a tool. `jobs` are the facts of the converted ones."""
    body = {
        "target": target,
        "converted": converted,
        "refused": refused,
        "generatedRuntimes": runtimes,
        "filesWithoutJobs": without,
        "jobs": jobs,
        "findings": [f.to_dict() for f in findings],
        "counts": Report(findings).counts(),
    }
    return json.dumps(body, indent=2)
