"""`trainjob migrate-sdk`: Python scripts of the v1 SDK, and pipelines that create PyTorchJobs."""

from __future__ import annotations

import difflib
import importlib.util
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from trainjob.cli.common import (
    YAML_SUFFIXES,
    fail_on_option,
    format_option,
    print_findings,
    say,
    threshold,
    wants_colour,
    write_atomic,
)
from trainjob.cli.inplace import ReplaceError, objections, replace_all
from trainjob.cli.inputs import STDIN, Input, cannot_read, collect
from trainjob.findings import Finding, Location, Report, Severity
from trainjob.kube import yaml
from trainjob.migrate.codes import CANNOT_READ
from trainjob.migrate.document import unreadable
from trainjob.sdkmod import codes

if TYPE_CHECKING:
    from trainjob.sdkmod.engine import Options

EXTRA: Final = "trainjob[sdk-migration]"
_SUFFIXES: Final = (".py", ".yaml", ".yml")
_REQUIREMENTS: Final = ("requirements*.txt", "pyproject.toml", "setup.cfg", "setup.py", "environment.y*ml", "Pipfile")
_COLOURS: Final = {"+": "green", "-": "red", "@": "cyan"}


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.argument("paths", nargs=-1, required=True, metavar="FILE|DIR|-...")
@click.option(
    "--in-place", is_flag=True, help="Rewrite the files; each must be committed and unchanged in Git, or --backup."
)
@click.option(
    "--backup", metavar="SUFFIX",
    help="With --in-place: keep the old text beside each file under this suffix, e.g. .bak.",
)  # fmt: skip
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="DIR",
    help="Write each script that is rewritten below DIR, under the same relative name.",
)  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace files that exist below -o DIR (never an input).")
@click.option(
    "--diff", "show_diff", is_flag=True, help="Print what would change as a diff (the default for several files)."
)
@click.option(
    "--runtime", metavar="NAME", default="torch-distributed", show_default=True,
    help="Runtime for training functions.",
)  # fmt: skip
@click.option(
    "--sdk-version", type=click.Choice(["1.7", "1.8", "1.9"]),
    help="kubeflow-training that the scripts were written for; by default what a requirements file names, else 1.9.",
)  # fmt: skip
@format_option
@fail_on_option
@click.option("-q", "--quiet", is_flag=True, help="Report warnings and errors only.")
def command(
    paths: tuple[str, ...],
    in_place: bool,
    backup: str | None,
    output: Path | None,
    overwrite: bool,
    show_diff: bool,
    runtime: str,
    sdk_version: str | None,
    style: str,
    fail_on: str,
    quiet: bool,
) -> None:
    """Turn Python scripts of the v1 SDK (TrainingClient) into TrainerClient, and find pipeline steps.

    Each call is rewritten, or marked above with `# TODO(trainjob): TJ7xx ...` and the reason; the rest of the
    file stays byte for byte. A second run changes nothing. One script goes to stdout, several give a diff;
    the report goes to stderr. YAML files (compiled pipelines, Argo workflows, components) are only reported.

    \b
    trainjob migrate-sdk train.py > train_v2.py
    trainjob migrate-sdk src/ pipelines/ --diff
    trainjob migrate-sdk src/ --in-place
    trainjob migrate-sdk pipeline.yaml

    Exit codes: 0 clean, 1 findings at or above --fail-on (each mark is one), 2 unreadable input or wrong usage.
    """
    if sum([in_place, output is not None, show_diff]) > 1:
        raise click.UsageError("--in-place, -o and --diff exclude each other")
    if backup is not None and not in_place:
        raise click.UsageError("--backup goes with --in-place")
    if backup is not None and backup.endswith(".py"):
        raise click.UsageError("--backup .py would make scripts of the copies; say --backup .bak")
    if in_place and STDIN in paths:
        raise click.UsageError("stdin cannot be rewritten in place")
    _need_libcst()
    findings: list[Finding] = []
    inputs = collect(paths, findings, _SUFFIXES)
    run = _Run(style, quiet, findings, runtime, sdk_version)
    run.print(findings)
    done = [d for item in inputs if (d := run.one(item)) is not None]
    changed = [d for d in done if d.new != d.old]
    blocked = _blocked(inputs, changed, output, overwrite) if output is not None else []
    if blocked:
        run.add(blocked)
    elif in_place:
        _in_place(run, changed, backup)
    elif output is not None:
        for script in changed:
            write_atomic(output / script.relative, script.new)
        run.written = len(changed)
    elif len(inputs) == 1 and not show_diff and not inputs[0].from_folder:
        for script in done:
            sys.stdout.write(script.new)
            sys.stdout.flush()
    else:
        _diff(changed)
    run.finish(inputs)
    sys.exit(Report(tuple(run.findings)).exit_code(threshold(fail_on)))


@dataclass(frozen=True, slots=True)
class _Script:
    item: Input
    old: str
    new: str

    @property
    def relative(self) -> Path:
        return Path("stdin.py") if self.item.path is None else self.item.relative

    @property
    def root(self) -> Path:
        """The folder that was given, or that holds the file that was given."""
        assert self.item.path is not None
        return self.item.path.parents[len(self.item.relative.parts) - 1]


class _Run:
    """One call of the command: what was found so far."""

    def __init__(
        self, style: str, quiet: bool, findings: list[Finding], runtime: str, sdk_version: str | None
    ) -> None:  # fmt: skip
        self.style, self.quiet, self.findings, self.runtime = style, quiet, findings, runtime
        self.version: tuple[int, int] | None = None
        if sdk_version is not None:
            self.version = (1, int(sdk_version.partition(".")[2]))
        self.calls = self.marks = self.without = self.written = 0

    def print(self, findings: list[Finding]) -> None:
        if self.style == "text":
            print_findings(f for f in findings if not (self.quiet and f.severity is Severity.NOTE))

    def add(self, findings: list[Finding]) -> None:
        self.findings.extend(findings)
        self.print(findings)

    def one(self, item: Input) -> _Script | None:
        """Migrate one script, or report on one YAML file."""
        try:
            text = "".join(item.lines())
        except UnicodeDecodeError:
            self.add([_unreadable(item.name, "it is not UTF-8 text")])
            return None
        except OSError as err:
            self.add([cannot_read(item.name, err.strerror or str(err))])
            return None
        if item.name.endswith(YAML_SUFFIXES):
            self._yaml(item, text)
            return None
        return self._python(item, text)

    def _yaml(self, item: Input, text: str) -> None:
        from trainjob.sdkmod.pipelines import yaml_steps

        try:
            found = yaml_steps(text, item.name)
        except yaml.YamlError as err:
            self.add([unreadable(err)])
            return
        self.add(found)
        if not found:
            self._nothing(item)

    def _python(self, item: Input, text: str) -> _Script | None:
        from trainjob.sdkmod.engine import migrate_script

        result = migrate_script(text, file=item.name, options=self._options(item))
        self.add(list(result.findings))
        if any(f.unreadable for f in result.findings):
            return None
        self.calls += result.calls
        self.marks += result.marks
        if not result.found:
            self._nothing(item)
        return _Script(item, text, result.text)

    def _options(self, item: Input) -> Options:
        from trainjob.sdkmod.engine import Options

        folder = item.path.parent if item.path is not None else Path()
        pins = "" if self.version is not None else _requirements(folder)
        return Options(self.runtime, self.version, pins, str(folder))

    def _nothing(self, item: Input) -> None:
        self.without += 1
        if not item.from_folder:
            where = Location(item.name, 1, 1)
            self.add(
                [Finding(codes.NOTHING, Severity.NOTE, "nothing of the v1 SDK and no PyTorchJob was found", where)]
            )

    def finish(self, inputs: list[Input]) -> None:
        """The last words: a summary, or the JSON report."""
        counts = Report(tuple(self.findings)).counts()
        if self.style == "json":
            body = {
                "rewritten": self.calls,
                "marks": self.marks,
                "written": self.written,
                "filesWithoutV1": self.without,
                "findings": [f.to_dict() for f in self.findings],
                "counts": counts,
            }
            click.echo(json.dumps(body, indent=2), err=True)
        elif inputs:
            say(
                f"{_n(self.calls, 'place')} rewritten, {_n(self.marks, 'mark')} to decide"
                + (f", {_n(self.written, 'file')} written" if self.written else "")
                + (f", {_n(self.without, 'file')} without the v1 SDK" if self.without else "")
                + f"; {_n(counts['error'], 'error')}, {_n(counts['warning'], 'warning')}, {_n(counts['note'], 'note')}"
            )


def _need_libcst() -> None:
    """End with a message where the extra is not installed."""
    if importlib.util.find_spec("libcst") is None:
        say(f"error: migrate-sdk reads Python with LibCST, which is not installed: pip install '{EXTRA}'")
        sys.exit(2)


def _n(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def _requirements(folder: Path) -> str:
    """The requirement files beside a script and above it, up to the root of its repository."""
    out = []
    current = folder.resolve()
    for place in (current, *list(current.parents)[:3]):
        for pattern in _REQUIREMENTS:
            for file in sorted(place.glob(pattern)):
                try:
                    text = file.read_text(encoding="utf-8")
                except (OSError, UnicodeDecodeError):
                    continue
                out += re.findall(r".*kubeflow[-_.]training.*", text)
        if (place / ".git").exists():
            break
    return "\n".join(out)


def _in_place(run: _Run, changed: list[_Script], backup: str | None) -> None:
    """Replace the inputs, all of them or none."""
    changes = {s.item.path: s.new for s in changed if s.item.path is not None}
    roots = {s.item.path: s.root for s in changed if s.item.path is not None}
    blocked = objections(changes, roots, backup)
    if blocked:
        run.add(blocked)
        return
    try:
        replace_all(changes, backup)
    except ReplaceError as err:
        run.add([_unreadable(err.args[0], "not written", "see why it cannot be written")])
        return
    run.written = len(changes)


def _blocked(inputs: list[Input], changed: list[_Script], output: Path, overwrite: bool) -> list[Finding]:
    """Outputs that must not be written: an input, a file that exists, two inputs of one name."""
    if output.exists() and not output.is_dir():
        return [_unreadable(str(output), "it is not a folder", "not written", "give a folder")]
    sources = {i.path.resolve() for i in inputs if i.path is not None}
    out: list[Finding] = []
    taken: set[Path] = set()
    for script in changed:
        place = (output / script.relative).resolve()
        if place in sources:
            out.append(
                _unreadable(str(place), "it is an input", "not written", "say --in-place, or choose another folder")
            )
        elif place in taken:
            out.append(_unreadable(str(place), "two inputs lead there", "not written", "migrate them apart"))
        elif place.exists() and not overwrite:
            out.append(_unreadable(str(place), "it exists", "not written", "choose another folder, or say --overwrite"))
        taken.add(place)
    return out


def _unreadable(
    name: str, why: str, what: str = "cannot read it", fix: str = "give a Python or YAML file in UTF-8"
) -> Finding:
    return Finding(CANNOT_READ, Severity.ERROR, f"{what}: {why}", Location(name), fix, unreadable=True)


def _diff(changed: list[_Script]) -> None:
    colour = wants_colour(sys.stdout)
    for script in changed:
        name = script.item.name.lstrip("/")
        lines = difflib.unified_diff(
            script.old.splitlines(keepends=True), script.new.splitlines(keepends=True), f"a/{name}", f"b/{name}"
        )
        for line in lines:
            text = line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
            style = _COLOURS.get(text[0]) if colour else None
            click.echo(click.style(text, fg=style) if style else text, nl=False)
