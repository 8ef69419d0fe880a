"""`trainjob validate`: objects against the facts of a Trainer version, without a cluster."""

from __future__ import annotations

import json
import sys

import click

from trainjob import emit
from trainjob.catalog import catalog
from trainjob.cli.common import fail_on_option, format_option, print_findings, say, target_option, threshold
from trainjob.cli.inputs import Input, cannot_read, collect
from trainjob.findings import Finding, Report, Severity
from trainjob.kube import yaml
from trainjob.migrate.codes import CANNOT_READ
from trainjob.migrate.document import unreadable
from trainjob.migrate.engine import not_text
from trainjob.targets import Target
from trainjob.validate import check_documents, claims_of, trainer_objects
from trainjob.validate.queue import Queues, QueuesError, Verdict, check_queues


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.argument("paths", nargs=-1, required=True, metavar="FILE|DIR|-...")
@click.option(
    "--queues", multiple=True, metavar="FILE|DIR",
    help="Kueue's objects: refuse jobs that their queue can never admit. Repeatable.",
)  # fmt: skip
@click.option("-n", "--namespace", default="", help="Namespace of jobs that name none, for --queues.")
@target_option
@format_option
@fail_on_option
def command(
    paths: tuple[str, ...], queues: tuple[str, ...], namespace: str, target: Target, style: str, fail_on: str
) -> None:
    """Check TrainJobs and runtimes for a Trainer version, without a cluster.

    Checks the CRD's schema, its CEL rules, and what the webhooks of Trainer and JobSet check. A
    TrainJob's runtime is looked for in the same input, then in the catalogue. PersistentVolumeClaims in
    any input tell which claims several nodes can mount. Other kinds are passed over and counted.

    With --queues also whether Kueue can ever admit each TrainJob: what its pods ask for in sum, against
    the nominal quota and what may be borrowed. Take the queues from Git or from the cluster:

    \b
    kubectl get clusterqueues,localqueues,cohorts,resourceflavors,topologies,workloadpriorityclasses,\\
    namespaces,limitranges -A -o yaml > queues.yaml

    \b
    trainjob validate job.yaml
    trainjob validate job.yaml claims.yaml
    trainjob validate job.yaml --queues queues.yaml
    trainjob build ... --queue team-a | trainjob validate - --queues queues.yaml -n team-a
    kustomize build overlays/rhoai-3.5 | trainjob validate - --target rhoai-3.5

    Exit codes: 0 valid, 1 findings at or above --fail-on, 2 unreadable input.
    """
    findings: list[Finding] = []
    inputs = collect(paths, findings)
    checked = others = 0
    known = {name: emit.for_target(catalog()[name].manifest, target) for name in catalog()}
    given = _queues(queues, findings) if queues else None
    verdicts: list[Verdict] = []
    read = [[d for d in _read(item, findings) if d.data is not None] for item in inputs]
    claims = claims_of(d for documents in read for d in documents)
    for filled in read:
        ours = [trainer_objects(d) for d in filled]
        checked += sum(ours)
        others += sum(1 for d, number in zip(filled, ours, strict=True) if not number and not claims_of([d]))
        findings.extend(check_documents(filled, target, known, claims))
        if given is not None:
            verdicts += check_queues(filled, given, target, known, namespace)
    findings.extend(f for v in verdicts for f in v.findings)
    report = Report(tuple(findings))
    if style == "json":
        body = {"target": target.name, "checked": checked, **json.loads(report.json())}
        if given is not None:
            body["queues"] = [v.to_dict() for v in verdicts]
        click.echo(json.dumps(body, indent=2))
    else:
        print_findings(findings)
        for verdict in verdicts:
            if verdict.admitted:
                say(verdict.text())
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


def _queues(arguments: tuple[str, ...], findings: list[Finding]) -> Queues | None:
    """The queue objects behind --queues, or None with a finding that says why not."""
    documents = [d for item in collect(arguments, findings) for d in _read(item, findings)]
    try:
        return Queues.read(documents)
    except QueuesError as err:
        if not any(f.unreadable for f in findings):
            findings.append(
                Finding(CANNOT_READ, Severity.ERROR, f"--queues: {err.message}", err.where, unreadable=True)
            )
    except yaml.YamlError as err:
        findings.append(unreadable(err))
    return None
