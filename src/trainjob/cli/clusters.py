"""`migrate --from-cluster`: the inventory as a table or as JSON, on stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import click

from trainjob.cli.common import print_findings, say, threshold
from trainjob.cli.treeoptions import TreeOptions
from trainjob.findings import Report, Severity
from trainjob.migrate.cluster.client import ClusterError, Reader
from trainjob.migrate.cluster.inventory import Inventory, take
from trainjob.migrate.job import Options


def inventory(tree: TreeOptions, options: Options, *, style: str, fail_on: str, quiet: bool) -> int:
    """Print the inventory; the exit code: 0 clean, 1 findings, 2 nothing could be read."""
    if style not in ("text", "json"):
        raise click.UsageError("--from-cluster prints text or json")
    try:
        source = Reader.connect(tree.kubeconfig, tree.context)
        target = Reader.connect(tree.kubeconfig, tree.target_context) if tree.target_context else source
        namespace = None if tree.all_namespaces else tree.namespace or source.namespace
        found = take(source, target, namespace, options)
    except ClusterError as err:
        say(f"error: {err.message}" + (f"\n    fix: {err.fix}" if err.fix else ""))
        return 2
    if style == "json":
        sys.stdout.write(json.dumps(found.to_dict(), indent=2) + "\n")
    else:
        sys.stdout.write(table(found))
        print_findings(f for f in found.findings if not (quiet and f.severity is Severity.NOTE))
    return Report(tuple(found.findings)).exit_code(threshold(fail_on))


def table(found: Inventory) -> str:
    """The inventory for a reader."""
    where = f"namespace {found.namespace}" if found.namespace else "all namespaces"
    lines = [f"context {found.context}, {where}"]
    lines += [f"{name}: {version}" for name, version in found.versions.items()]
    if found.jobs:
        rows = [("NAMESPACE", "NAME", "STATE", "PODS", "DEVICES", "OWNER", "MADE BY", "VERDICT")]
        for job in found.jobs:
            devices = ", ".join(f"{count} {key}" for key, count in job.accelerators.items())
            codes = sorted({f.code for f in job.findings if f.severity is not Severity.NOTE})
            verdict = job.verdict + (f" ({' '.join(codes)})" if codes and job.verdict in ("look", "blocked") else "")
            rows.append((job.namespace, job.shown, job.state, str(job.pods), devices or "-", job.owner or "-",
                         job.made_by or "-", verdict))  # fmt: skip
        lines += ["", *_columns(rows)]
    else:
        lines += ["", "no PyTorchJobs"]
    if found.creators:
        made = [("CREATOR", "SCHEDULE", "HOW", "AT")]
        for creator in found.creators:
            schedule = (creator.schedule or "-") + (" (suspended)" if creator.suspended else "")
            made.append((creator.subject, schedule, f"{creator.how} {creator.sdk}".strip(), creator.where))
        lines += ["", *_columns(made)]
    state = found.target
    if state is not None:
        version = state.trainer.name if state.trainer is not None else "not found"
        lines += ["", f"target {state.context}: Trainer {version}{f' ({state.release})' if state.release else ''}, "
                  f"{len(state.missing)} missing"]  # fmt: skip
        lines += [f"  {need}" for need in state.missing]
    return "\n".join(lines) + "\n"


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
