"""What the commands share: options, printing of findings, and reading and writing of files."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from trainjob import targets
from trainjob.findings import Finding, Severity

F = TypeVar("F", bound=Callable[..., Any])

YAML_SUFFIXES: Final = (".yaml", ".yml", ".json")
_COLOURS: Final = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}
THRESHOLDS: Final = ("note", "warning", "error", "never")


class _Target(click.ParamType[targets.Target]):
    name = "target"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> targets.Target:
        if isinstance(value, targets.Target):
            return value
        try:
            return targets.target(value)
        except ValueError as err:
            self.fail(str(err), param, ctx)


def target_option(function: F) -> F:
    """`--target`: which API generation to write for."""
    return click.option(
        "--target",
        type=_Target(),
        default=targets.DEFAULT.name,
        show_default=True,
        metavar="VERSION",
        help=f"Trainer version or OpenShift AI release that will read the output: {', '.join(targets.names())}.",
    )(function)


def format_option(function: F) -> F:
    """`--format`: how the report is written."""
    return click.option(
        "--format",
        "style",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="Form of the report.",
    )(function)


def fail_on_option(function: F) -> F:
    """`--fail-on`: which findings lead to exit code 1."""
    return click.option(
        "--fail-on",
        type=click.Choice(THRESHOLDS),
        default="warning",
        show_default=True,
        help="Findings of this severity or worse give exit code 1.",
    )(function)


def threshold(name: str) -> Severity | None:
    """The severity of a `--fail-on` value."""
    return None if name == "never" else Severity(name)


def wants_colour(stream: Any) -> bool:
    """Colour only on a terminal, and never against NO_COLOR."""
    return bool(stream.isatty()) and "NO_COLOR" not in os.environ


def say(text: str) -> None:
    """A line of talk, to stderr."""
    click.echo(text, err=True)


def print_findings(findings: Iterable[Finding]) -> None:
    """Findings as text on stderr."""
    colour = wants_colour(sys.stderr)
    for finding in findings:
        text = finding.text()
        if colour:
            head = f"{finding.severity.value}[{finding.code}]"
            text = click.style(head, fg=_COLOURS[finding.severity], bold=True) + text[len(head) :]
        click.echo(text, err=True, color=colour)


def read_text(path: Path) -> str:
    """A file as text with its line ends kept. Raises OSError or UnicodeDecodeError."""
    with path.open(encoding="utf-8", newline="") as stream:
        return stream.read()


def write_atomic(path: Path, text: str) -> None:
    """Write a file so that it exists either whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
            stream.write(text)
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
