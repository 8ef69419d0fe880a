"""`trainjob validate`: objects against the facts of a Trainer version, without a cluster."""

from __future__ import annotations

import json
import sys

import click

from trainjob import emit
from trainjob.catalog import catalog
from trainjob.cli.common import fail_on_option, format_option, print_findings, say, target_option, threshold
from trainjob.cli.inputs import Input, cannot_read, collect
from trainjob.findings import Finding, Report
from trainjob.kube import yaml
from trainjob.migrate.document import unreadable
from trainjob.migrate.engine import not_text
from trainjob.targets import Target
from trainjob.validate import check_documents, trainer_objects


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.argument("paths", nargs=-1, required=True, metavar="FILE|DIR|-...")
@target_option
@format_option
@fail_on_option
def command(paths: tuple[str, ...], target: Target, style: str, fail_on: str) -> None:
    """Check TrainJobs and runtimes for a Trainer version, without a cluster.

    Checks the CRD's schema, its CEL rules, and what the webhooks of Trainer and JobSet check. A
    TrainJob's runtime is looked for in the same input, then in the catalogue. Other kinds are passed
    over and counted.

    \b
    trainjob validate job.yaml
    kustomize build overlays/rhoai-3.5 | trainjob validate - --target rhoai-3.5

    Exit codes: 0 valid, 1 findings at or above --fail-on, 2 unreadable input.
    """
    findings: list[Finding] = []
    inputs = collect(paths, findings)
    checked = others = 0
    known = {name: emit.for_target(catalog()[name].manifest, target) for name in catalog()}
    for item in inputs:
        documents = _read(item, findings)
        filled = [d for d in documents if d.data is not None]
        ours = [trainer_objects(d) for d in filled]
        checked += sum(ours)
        others += ours.count(0)
        findings.extend(check_documents(filled, target, known))
    report = Report(tuple(findings))
    if style == "json":
        click.echo(json.dumps({"target": target.name, "checked": checked, **json.loads(report.json())}, indent=2))
    else:
        print_findings(findings)
        counts = report.counts()
        say(
            f"{checked} checked for Trainer {target}"
            + (f", {others} of other kinds passed over" if others else "")
            + f"; {counts['error']} errors, {counts['warning']} warnings"
        )
    sys.exit(report.exit_code(threshold(fail_on)))


def _read(item: Input, findings: list[Finding]) -> list[yaml.Document]:
    out: list[yaml.Document] = []
    try:
        for doc in yaml.split_lines(item.lines(), item.name):
            out.append(yaml.parse(doc))
    except yaml.YamlError as err:
        findings.append(unreadable(err))
    except UnicodeDecodeError as err:
        findings.append(not_text(item.name, err))
    except OSError as err:
        findings.append(cannot_read(item.name, err.strerror or str(err)))
    return out
