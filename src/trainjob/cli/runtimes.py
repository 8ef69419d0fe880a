"""`trainjob runtimes`: the catalogue, as a table and one by one, and what differs between two states."""

from __future__ import annotations

import json
import sys

import click

from trainjob import emit
from trainjob.catalog import CatalogError, Runtime, catalog
from trainjob.cli.common import say, target_option
from trainjob.cli.inputs import STDIN
from trainjob.kube.yaml import dump
from trainjob.targets import DEFAULT, Target


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """List, show and compare runtimes.

    \b
    trainjob runtimes list
    trainjob runtimes show torch-fsdp-8gpu
    kubectl get clustertrainingruntimes -o yaml | trainjob runtimes diff - overlays/prod
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
                f"({r.notice}) {r.summary}" if r.deprecated else r.summary,
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
    if runtime.deprecated:
        say(f"warning: {runtime.name} is {runtime.notice}")


@command.command("diff")
@click.argument("old", metavar="A")
@click.argument("new", metavar="B")
@target_option
@click.option("--common", is_flag=True, help="Leave out runtimes that only one side has.")
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True)
def diff(old: str, new: str, target: Target, common: bool, style: str) -> None:
    """What applying B over A would change, field by field, and whom each change reaches.

    A and B: a runtime of the catalogue, `catalogue` for all of it, a file, an overlay, a folder of
    files, or - for stdin. What the server fills in is left out. One runtime against one is compared
    whatever their names; against several it meets the one of its name.

    \b
    kubectl get clustertrainingruntimes -o yaml | trainjob runtimes diff - overlays/prod --common
    trainjob runtimes diff torch-fsdp-4gpu torch-fsdp-8gpu

    \b
    new-name               the server refuses the change under the same name
    strands-jobs           a job that names it cannot be updated or resumed
    running-jobs           running jobs are rendered anew (Trainer before 2.3)
    restarts-queued-jobs   running jobs of a Kueue queue are stopped and start again
    new-jobs               only jobs that are created later
    no-job                 nobody

    Exit codes: 0 no difference, 1 differences, 2 unreadable input.
    """
    from trainjob.cli.runtimediff import SideError, as_json, as_text, chosen, effects, side
    from trainjob.rundiff import MEANS, differences

    if old == new == STDIN:
        raise click.UsageError("only one side can be -")
    try:
        before, after = chosen(side(old, target), side(new, target), (old, new))
    except SideError as err:
        say(f"error: {err}")
        if err.fix:
            say(f"    fix: {err.fix}")
        sys.exit(2)
    found = list(differences(before, after, target, common=common))
    if style == "json":
        click.echo(as_json(found, target))
    else:
        for line in as_text(found):
            click.echo(line)
        for effect, count in effects(found).items():
            say(f"{count} {effect}: {MEANS[effect]}")
        if not found:
            say(f"no difference ({len(before)} and {len(after)} runtimes)")
    sys.exit(1 if found else 0)


def _facts(runtime: Runtime) -> dict[str, object]:
    return {
        "name": runtime.name,
        "topology": runtime.topology,
        "nodes": runtime.nodes,
        "gpusPerNode": runtime.gpus,
        "purpose": runtime.purpose,
        "gated": runtime.gated,
        "deprecated": runtime.deprecated,
        "replacedBy": runtime.replaced_by or None,
        "image": runtime.image,
        "resources": runtime.resources,
        "summary": runtime.summary,
    }
