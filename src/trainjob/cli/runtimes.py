"""`trainjob runtimes`: the catalogue, as a table and one by one."""

from __future__ import annotations

import json
import sys

import click

from trainjob import emit
from trainjob.catalog import CatalogError, Runtime, catalog
from trainjob.cli.common import say, target_option
from trainjob.kube.yaml import dump
from trainjob.targets import DEFAULT, Target


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """List and show the curated runtimes.

    \b
    trainjob runtimes list
    trainjob runtimes show torch-fsdp-8gpu
    """


@command.command("list")
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True)
def list_(style: str) -> None:
    """Every runtime: nodes, GPUs per node, what for."""
    runtimes = [catalog()[name] for name in catalog()]
    if style == "json":
        click.echo(json.dumps([_facts(r) for r in runtimes], indent=2))
        return
    rows = [("NAME", "NODES", "GPUS/NODE", "CPU", "MEMORY", "INSTALLED BY", "FOR")]
    for r in runtimes:
        limits = r.resources.get("limits", {})
        rows.append(
            (
                r.name,
                r.shown_nodes,
                r.shown_gpus,
                str(limits.get("cpu", "-")),
                str(limits.get("memory", "-")),
                "multi-node component" if r.gated else "every overlay",
                r.summary,
            )
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    for row in rows:
        click.echo("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=False)) + "  " + row[-1])


@command.command("show")
@click.argument("name")
@target_option
def show(name: str, target: Target) -> None:
    """One runtime as YAML: the file as it is, or rewritten for an older Trainer."""
    try:
        runtime = catalog()[name]
    except CatalogError as err:
        say(f"error: {err}")
        sys.exit(2)
    if target is DEFAULT:
        click.echo(runtime.file.read_text(encoding="utf-8"), nl=False)
    else:
        click.echo(dump(emit.for_target(runtime.manifest, target)), nl=False)


def _facts(runtime: Runtime) -> dict[str, object]:
    return {
        "name": runtime.name,
        "topology": runtime.topology,
        "nodes": runtime.nodes,
        "gpusPerNode": runtime.gpus,
        "purpose": runtime.purpose,
        "gated": runtime.gated,
        "image": runtime.image,
        "resources": runtime.resources,
        "summary": runtime.summary,
    }
