"""`trainjob build`: a TrainJob from options."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from trainjob.builder import BuildError, train_job
from trainjob.catalog import CatalogError
from trainjob.cli.common import print_findings, say, target_option, write_atomic
from trainjob.findings import Finding
from trainjob.targets import Target


def _pairs(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:  # noqa: ARG001
    out: dict[str, str] = {}
    for value in values:
        key, eq, rest = value.partition("=")
        if not eq or not key:
            raise click.BadParameter(f"{value!r} is not KEY=VALUE")
        out[key] = rest
    return out


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--name", required=True, help="Name of the TrainJob; 48 characters for up to 10 nodes.")
@click.option("--runtime", required=True, help="Runtime of the catalogue; see `trainjob runtimes list`.")
@click.option("--image", help="Image with your code; the runtime's own when left out.")
@click.option("-n", "--namespace", help="Namespace of the TrainJob.")
@click.option("--env", multiple=True, callback=_pairs, metavar="NAME=VALUE", help="Environment variable; repeatable.")
@click.option("--label", multiple=True, callback=_pairs, metavar="KEY=VALUE", help="Label; repeatable.")
@click.option("--queue", help="Kueue LocalQueue.")
@click.option("--priority", help="Kueue WorkloadPriorityClass.")
@click.option("--nodes", type=click.IntRange(min=1), help="Pods; the runtime's number when left out.")
@click.option("--allow-multi-node", metavar="REASON", help="Why one node is not enough; kept as an annotation.")
@click.option("--procs-per-node", type=click.IntRange(min=1), help="Processes per node; one a GPU when left out.")
@click.option(
    "--resource", multiple=True, callback=_pairs, metavar="NAME=AMOUNT",
    help="Per node, over the runtime's, e.g. cpu=16, memory=128Gi, gpu=4; repeatable.",
)  # fmt: skip
@click.option(
    "--checkpoints", metavar="CLAIM|s3://...",
    help="Where checkpoints are kept: CLAIM[/FOLDER][:MODE], mounted at /checkpoints, or s3://bucket/folder. "
    "MODE: rwo, rwop, rwx or rox.",
)  # fmt: skip
@click.option("--no-checkpoints", is_flag=True, help="Keep none: a restart begins at the first step.")
@click.option("--s3-secret", metavar="SECRET", help="Secret with the S3 credentials, e.g. a data connection.")
@click.option("--cache", metavar="CLAIM", help="Claim at /cache for models that jobs share: CLAIM[:MODE[,ro]].")
@click.option(
    "--mount", multiple=True, callback=_pairs, metavar="PATH=CLAIM",
    help="Mount a claim, CLAIM[:MODE[,ro]]; repeatable.",
)  # fmt: skip
@click.option("--service-account", help="Service account of the pods.")
@click.option("--deadline", type=click.IntRange(min=1), metavar="SECONDS", help="activeDeadlineSeconds.")
@click.option("--suspend", is_flag=True, help="Create it suspended.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write here, not to stdout.")
@target_option
@click.argument("command_line", nargs=-1, metavar="[-- COMMAND...]")
def command(
    name: str,
    runtime: str,
    image: str | None,
    namespace: str | None,
    env: dict[str, str],
    label: dict[str, str],
    queue: str | None,
    priority: str | None,
    nodes: int | None,
    allow_multi_node: str | None,
    procs_per_node: int | None,
    resource: dict[str, str],
    checkpoints: str | None,
    no_checkpoints: bool,
    s3_secret: str | None,
    cache: str | None,
    mount: dict[str, str],
    service_account: str | None,
    deadline: int | None,
    suspend: bool,
    output: Path | None,
    target: Target,
    command_line: tuple[str, ...],
) -> None:
    """Write a TrainJob for a runtime of the catalogue, checked for its Trainer version.

    \b
    trainjob build --name tune --runtime torch-fsdp-8gpu --image registry.example.com/team/tune:1.0 \\
        --queue team-a --checkpoints tune-ckpt -- torchrun /workspace/train.py --epochs=1
    """
    values: dict[str, Any] = {
        "name": name,
        "runtime": runtime,
        "image": image,
        "namespace": namespace,
        "env": env,
        "labels": label,
        "queue": queue,
        "priority": priority,
        "nodes": nodes,
        "allow_multi_node": allow_multi_node,
        "procs_per_node": procs_per_node,
        "resources": resource,
        "s3_secret": s3_secret,
        "cache": cache,
        "claims": mount,
        "service_account": service_account,
        "active_deadline_seconds": deadline,
        "suspend": suspend,
        "command": list(command_line) or None,
    }
    if checkpoints and no_checkpoints:
        raise click.UsageError("--checkpoints and --no-checkpoints exclude each other")
    if checkpoints or no_checkpoints:
        values["checkpoints"] = checkpoints
    warnings: list[Finding] = []
    try:
        job = train_job(target=target, on_warning=warnings.append, **values)
    except BuildError as err:
        if err.findings:
            print_findings(err.findings)
        else:
            say(f"error: {err}")
        sys.exit(1)
    except CatalogError as err:
        say(f"error: {err}")
        sys.exit(2)
    print_findings(warnings)
    for where, why in job.reasons:
        say(f"note: a runtime of its own carries {where}: {why}")
    if output is None:
        click.echo(job.to_yaml(), nl=False)
        return
    if output.exists():
        say(f"error: {output} exists; remove it or choose another file")
        sys.exit(2)
    write_atomic(output, job.to_yaml())
