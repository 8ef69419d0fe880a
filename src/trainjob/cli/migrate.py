"""`trainjob migrate` and its alias, the `migrate` script."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import click

from trainjob import targets
from trainjob.cli.common import (
    fail_on_option,
    format_option,
    print_findings,
    say,
    target_option,
    threshold,
    write_atomic,
)
from trainjob.cli.inputs import Input, cannot_read, collect
from trainjob.findings import Finding, Location, Report, Severity
from trainjob.kube import yaml
from trainjob.migrate import codes
from trainjob.migrate.document import DocumentResult, migrate_document, unreadable
from trainjob.migrate.engine import Joiner, Tally, no_job, not_text, script_maps
from trainjob.migrate.job import Options

# Files up to this size are read whole, so that a script in a later document is seen too.
_WHOLE_BYTES = 8 * 1024 * 1024


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.argument("paths", nargs=-1, required=True, metavar="FILE|DIR|-...")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="DIR",
    help="Write one file per input file below DIR, under the same relative name.",
)  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace files that exist below -o DIR (never an input).")
@target_option
@click.option(
    "--runtime", metavar="NAME",
    help="Use this ClusterTrainingRuntime where a job needs none of its own, e.g. torch-distributed.",
)  # fmt: skip
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if a PyTorchJob is left to migrate.")
@format_option
@fail_on_option
@click.option("-q", "--quiet", is_flag=True, help="Report warnings and errors only.")
def command(
    paths: tuple[str, ...],
    output: Path | None,
    overwrite: bool,
    target: targets.Target,
    runtime: str | None,
    check: bool,
    style: str,
    fail_on: str,
    quiet: bool,
) -> None:
    """Turn v1 PyTorchJobs into TrainJobs for Trainer v2, or say why not.

    Reads YAML (several documents, Lists, JSON, anchors) from files, folders and stdin (-). TrainJobs,
    and the TrainingRuntimes that they need, go to stdout or to -o DIR; the report goes to stderr.
    Other documents of the same file pass through byte for byte. A job that is refused stays as it is;
    a file that cannot be read gives no output.

    \b
    migrate pytorchjob.yaml > trainjob.yaml
    migrate manifests/ -o migrated/ --target rhoai-3.5
    kubectl get pytorchjobs -A -o yaml | migrate - --format json 2> report.json
    migrate manifests/ --check                      in CI

    Exit codes: 0 clean, 1 findings at or above --fail-on (or --check found a job), 2 unreadable input.
    """
    findings: list[Finding] = []
    inputs = collect(paths, findings)
    run = _Run(Options(target, runtime), style, quiet, findings)
    run.report(list(findings))
    if output is not None and not check:
        blocked = _blocked(inputs, output, overwrite)
        if blocked:
            run.add(blocked)
            run.finish(inputs)
            sys.exit(2)
    run.all(inputs, None if check else output, to_stdout=not check and output is None)
    run.finish(inputs)
    code = Report(tuple(run.findings)).exit_code(threshold(fail_on))
    if check and run.converted + run.refused and code == 0:
        code = 1
    sys.exit(code)


class _Run:
    """One call of the command: what was found and written so far."""

    def __init__(self, options: Options, style: str, quiet: bool, findings: list[Finding]) -> None:
        self.options, self.style, self.quiet, self.findings = options, style, quiet, findings
        self.converted = self.refused = self.without = self.written = self.runtimes = 0
        self.jobs: list[dict[str, Any]] = []

    def report(self, findings: list[Finding]) -> None:
        """Print now (text) or keep for the end (json)."""
        if self.style == "text":
            print_findings(f for f in findings if not (self.quiet and f.severity is Severity.NOTE))

    def add(self, findings: list[Finding]) -> None:
        self.findings.extend(findings)
        self.report(findings)

    def all(self, inputs: list[Input], output: Path | None, *, to_stdout: bool) -> None:
        progress = sys.stderr.isatty() and len(inputs) > 20 and self.style == "text"
        first = True
        for i, item in enumerate(inputs, 1):
            if progress:
                click.echo(f"\r[{i}/{len(inputs)}] ", nl=False, err=True)
            with tempfile.SpooledTemporaryFile(max_size=_WHOLE_BYTES, mode="w+", encoding="utf-8", newline="") as spool:
                tally = self.one(item, spool)
                if not tally.has_output:
                    continue
                spool.seek(0)
                if output is not None:
                    write_atomic(output / item.relative, spool.read())
                    self.written += 1
                elif to_stdout:
                    self._to_stdout(spool, first)
                    first = False

    def _to_stdout(self, spool: IO[str], first: bool) -> None:
        if not first:
            start = spool.read(3)
            sys.stdout.write("" if start == "---" else "---\n")
            spool.seek(0)
        shutil.copyfileobj(spool, sys.stdout)
        sys.stdout.flush()

    def one(self, item: Input, spool: IO[str]) -> Tally:
        """Migrate one input into `spool`."""
        tally = Tally()
        joiner = Joiner(spool.write)
        try:
            for result in self._documents(item):
                tally.add(result)
                self.add(list(result.findings))
                self._remember(result)
                for part in result.parts:
                    joiner.add(part)
        except yaml.YamlError as err:
            tally.unreadable = True
            self.add([unreadable(err)])
        except UnicodeDecodeError as err:
            tally.unreadable = True
            self.add([not_text(item.name, err)])
        except OSError as err:
            tally.unreadable = True
            self.add([cannot_read(item.name, err.strerror or str(err))])
        self.converted += tally.converted
        self.refused += tally.refused
        if tally.nothing:
            self.without += 1
            if not item.from_folder:
                self.add([no_job(Location(item.name, 1, 1), migrated=tally.migrated)])
        return tally

    def _documents(self, item: Input) -> Iterator[DocumentResult]:
        size = item.path.stat().st_size if item.path is not None else _WHOLE_BYTES + 1
        documents = yaml.split_lines(item.lines(), item.name)
        scripts: dict[str, dict[str, str]] = {}
        if size <= _WHOLE_BYTES:
            whole = list(documents)
            scripts = script_maps(whole)
            documents = iter(whole)
        for doc in documents:
            if size > _WHOLE_BYTES and "ConfigMap" in doc.text and len(scripts) < 200:
                scripts |= script_maps([doc], force=True)
            yield migrate_document(doc, self.options, scripts)

    def _remember(self, result: DocumentResult) -> None:
        self.runtimes += sum(job.runtime is not None for job in result.jobs)
        if self.style == "json":
            for job in result.jobs:
                metadata = job.manifest.get("metadata", {})
                self.jobs.append(
                    {
                        "file": result.document.file,
                        "name": metadata.get("name") or metadata.get("generateName"),
                        "namespace": metadata.get("namespace"),
                        "runtime": job.manifest["spec"]["runtimeRef"]["name"],
                        "generatedRuntime": job.runtime is not None,
                        "nodes": job.manifest["spec"]["trainer"].get("numNodes"),
                    }
                )

    def finish(self, inputs: list[Input]) -> None:
        """The last words: a summary, or the JSON report."""
        if self.without and inputs and self.without == len(inputs) and all(i.from_folder for i in inputs):
            self.add([no_job(Location(str(Path(inputs[0].name).parent)), migrated=False)])
        if self.style == "json":
            body = {
                "target": self.options.target.name,
                "converted": self.converted,
                "refused": self.refused,
                "generatedRuntimes": self.runtimes,
                "filesWithoutJobs": self.without,
                "jobs": self.jobs,
                "findings": [f.to_dict() for f in self.findings],
                "counts": Report(tuple(self.findings)).counts(),
            }
            click.echo(json.dumps(body, indent=2), err=True)
            return
        counts = Report(tuple(self.findings)).counts()
        if inputs:
            say(
                f"{_n(self.converted, 'job')} migrated, {self.refused} refused"
                + (f", {_n(self.runtimes, 'runtime')} generated" if self.runtimes else "")
                + (f", {_n(self.written, 'file')} written" if self.written else "")
                + (f", {_n(self.without, 'file')} without a PyTorchJob" if self.without else "")
                + f"; {_n(counts['error'], 'error')}, {_n(counts['warning'], 'warning')}, {_n(counts['note'], 'note')}"
            )


def _n(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def _blocked(inputs: list[Input], output: Path, overwrite: bool) -> list[Finding]:
    """Outputs that must not be written: an input, a file that exists, two inputs of one name."""
    found: list[Finding] = []
    taken: dict[Path, str] = {}
    sources = {i.path.resolve() for i in inputs if i.path is not None}
    if output.exists() and not output.is_dir():
        return [_cannot_write(output, "it is not a folder", "give a folder")]
    for item in inputs:
        place = (output / item.relative).resolve()
        if place in sources:
            found.append(_cannot_write(place, "it is an input; inputs are never overwritten", "choose another folder"))
        elif place in taken:
            found.append(_cannot_write(place, f"{taken[place]} and {item.name} both lead there", "migrate them apart"))
        elif place.exists() and not overwrite:
            found.append(_cannot_write(place, "it exists", "remove it, choose another folder, or say --overwrite"))
        taken[place] = item.name
    return found


def _cannot_write(path: Path, why: str, fix: str) -> Finding:
    return Finding(
        codes.CANNOT_READ, Severity.ERROR, f"not written: {why}", Location(str(path)), fix, unreadable=True
    )  # fmt: skip


def main() -> None:
    """Entry point of the `migrate` script."""
    command(prog_name="migrate")
