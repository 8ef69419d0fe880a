"""`trainjob migrate` and its alias, the `migrate` script."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import click

from trainjob import targets
from trainjob.cli.common import (
    fail_on_option,
    print_findings,
    say,
    target_option,
    threshold,
    write_atomic,
)
from trainjob.cli.forms import Counts, Kept, body, report_options, summary
from trainjob.cli.inputs import Input, cannot_read, collect
from trainjob.cli.treeoptions import TreeOptions, check_usage, tree_options
from trainjob.cli.trees import Held, find_trees
from trainjob.findings import Finding, Location, Report, Severity
from trainjob.kube import yaml
from trainjob.migrate import codes, origin
from trainjob.migrate.document import DocumentResult, migrate_document, unreadable
from trainjob.migrate.engine import Joiner, Tally, no_job, not_text, script_maps
from trainjob.migrate.job import Options

# Files up to this size are read whole, so that a script in a later document is seen too.
_WHOLE_BYTES = 8 * 1024 * 1024


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.argument("paths", nargs=-1, metavar="FILE|DIR|-...")
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
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if a v1 job is left to migrate.")
@report_options
@fail_on_option
@click.option("-q", "--quiet", is_flag=True, help="Report warnings and errors only.")
@tree_options
def command(
    paths: tuple[str, ...],
    output: Path | None,
    overwrite: bool,
    target: targets.Target,
    runtime: str | None,
    check: bool,
    style: str,
    report: Path | None,
    explain: bool,
    docs_url: str,
    fail_on: str,
    quiet: bool,
    tree: TreeOptions,
) -> None:
    """Turn v1 PyTorchJobs into TrainJobs for Trainer v2, or say why not.

    JAXJobs, XGBoostJobs and MPIJobs too, where the Trainer version has a policy for them.

    Reads YAML (several documents, Lists, JSON, anchors) from files, folders and stdin (-). TrainJobs,
    and the TrainingRuntimes that they need, go to stdout or to -o DIR; the report goes to stderr, or
    to --report FILE.
    Other documents of the same file pass through byte for byte. A job that is refused stays as it is;
    a file that cannot be read gives no output.

    \b
    migrate pytorchjob.yaml > trainjob.yaml
    migrate manifests/ -o migrated/ --target rhoai-3.5
    kubectl get pytorchjobs -A -o yaml | migrate - --format json 2> report.json
    migrate manifests/ --check                      in CI
    migrate manifests/ -o migrated/ --format html --report review.html
    migrate manifests/ --check --format sarif --report migrate.sarif
    migrate --explain pytorchjob.yaml               where each field comes from
    migrate repository/ --in-place                  kustomize overlays too; committed files only
    migrate --from-cluster -A                       inventory of a live cluster, read-only

    Exit codes: 0 clean, 1 findings at or above --fail-on (or --check found a job), 2 unreadable input.
    """
    check_usage(tree, paths, output)
    if tree.from_cluster:
        from trainjob.cli.clusters import inventory

        sys.exit(inventory(tree, Options(target, runtime), style=style, fail_on=fail_on, quiet=quiet))
    findings: list[Finding] = []
    if explain and (style not in ("text", "json") or output or report or check or tree.in_place):
        raise click.UsageError(
            "--explain writes to stdout, as text or json; not with -o, --in-place, --report, --check"
        )
    inputs = collect(paths, findings)
    held = Held(
        find_trees(paths, findings), inputs, tree, Options(target, runtime, explain or style == "html"), findings
    )
    inputs = held.inputs
    run = _Run(held, Kept(style, explain), quiet, findings, report, docs_url)
    run.report(list(findings))
    if report is not None and any(i.path is not None and i.path.resolve() == report.resolve() for i in inputs):
        raise click.UsageError(f"--report {report} is an input; inputs are never overwritten")
    if (
        report is not None
        and output is not None
        and any((output / i.relative).resolve() == report.resolve() for i in inputs)
    ):
        raise click.UsageError(f"--report {report} is where -o writes a TrainJob; give another file")
    if output is not None and not check:
        blocked = _blocked(inputs, output, overwrite)
        if blocked:
            run.add(blocked)
            run.finish(inputs)
            sys.exit(2)
    run.all(inputs, None if check else output, to_stdout=not (check or explain or tree.in_place or output))
    run.whole(None if check else output, overwrite=overwrite, write=not (check or explain))
    run.finish(inputs)
    code = Report(tuple(run.findings)).exit_code(threshold(fail_on))
    if check and run.converted + run.refused and code == 0:
        code = 1
    sys.exit(code)


class _Run:
    """One call of the command: what was found and written so far."""

    def __init__(
        self, held: Held, kept: Kept, quiet: bool, findings: list[Finding], target: Path | None, docs_url: str
    ) -> None:
        self.held, self.options, self.quiet, self.findings = held, held.options, quiet, findings
        self.kept, self.target, self.docs_url = kept, target, docs_url
        # --explain prints its own product in the wanted form; what is said beside it stays text.
        self.style = "text" if kept.explain else kept.style
        self.converted = self.refused = self.without = self.written = self.runtimes = 0

    def report(self, findings: list[Finding]) -> None:
        """Print now (text on stderr) or keep for the end."""
        if self.style == "text" and self.target is None:
            print_findings(f for f in findings if self._told(f))

    def _told(self, finding: Finding) -> bool:
        return not (self.quiet and finding.severity is Severity.NOTE)

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
                spool.seek(0)
                if self.held.needed:
                    self.held.add(item, tally, spool.read() if tally.has_output else None)
                    spool.seek(0)
                if not tally.has_output:
                    continue
                if output is not None and not self.held.needed:
                    write_atomic(output / item.relative, spool.read())
                    self.written += 1
                elif to_stdout:
                    self._to_stdout(spool, first)
                    first = False

    def whole(self, output: Path | None, *, overwrite: bool, write: bool) -> None:
        """What concerns folders as wholes, and their output."""
        self.add(list(self.held.after(self.findings)))
        if not (self.held.needed and write):
            return
        written, found = 0, list[Finding]()
        if self.held.tree_options.in_place:
            written, found = self.held.replace(self.findings)
        elif output is not None:
            written, found = self.held.write_below(output, overwrite=overwrite)
        else:
            found = list(self.held.not_shown())
        self.written += written
        self.add(found)

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
        seen: list[DocumentResult] = []
        try:
            for result in self._documents(item):
                tally.add(result)
                self.held.saw(item, result)
                self.add(item.mapped(result.findings))
                self._remember(result)
                if self.kept.wants_views:
                    seen.append(result)
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
        self.kept.file(seen, unreadable=tally.unreadable)
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
            yield migrate_document(doc, self.options, scripts, _shown(item))

    def _remember(self, result: DocumentResult) -> None:
        self.runtimes += sum(job.runtime is not None for job in result.jobs)
        self.kept.saw(result)

    def finish(self, inputs: list[Input]) -> None:
        """The last words: a summary, or the report in another form."""
        if self.without and inputs and self.without == len(inputs) and all(i.from_folder for i in inputs):
            self.add([no_job(Location(str(Path(inputs[0].name).parent)), migrated=False)])
        if self.kept.explain:
            click.echo(self.kept.explained(), nl=False)
        found = tuple(self.findings)
        counts = Counts(
            self.options.target.name,
            self.converted,
            self.refused,
            self.runtimes,
            self.written,
            self.without,
            len(inputs),
        )
        if self.target is not None or self.style != "text":
            text = body(self.kept, counts, found, tuple(f for f in found if self._told(f)), self.docs_url)
            if self.target is None:
                click.echo(text, nl=not text.endswith("\n"), err=True)
                return
            try:
                write_atomic(self.target, text)
            except OSError as err:
                say(f"error: cannot write the report {self.target}: {err.strerror or err}")
                sys.exit(2)
        if inputs:
            say(summary(counts, found))
        if self.target is not None:
            say(f"report: {self.target}")


def _shown(item: Input) -> str:
    """How an output names its input: as it was given, or its place below the folder of an absolute path."""
    if item.path is not None and item.path.is_absolute():
        return item.relative.as_posix()
    return origin.shown(item.name)


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
