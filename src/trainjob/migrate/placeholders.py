"""Templates that nobody rendered: Helm and Jinja, envsubst, `<NAME>`.

A placeholder in a name, an image or a number makes the job unreadable. In a command it may be
the shell's own variable, and Kubernetes leaves `$X` alone (it expands `$(X)` only): there it is
reported and kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainjob.findings import Finding, Location, Severity
from trainjob.kube.yaml import Path
from trainjob.migrate import codes
from trainjob.migrate.launch import shell_script

_MUSTACHE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{\{|\{%", re.S)
_DOLLAR = re.compile(r"(?<!\$)\$(?:\{[A-Za-z_][A-Za-z0-9_]*(?::?[-=?+][^}]*)?\}|[A-Z_][A-Z0-9_]*\b)")
_ANGLE = re.compile(r"<[A-Za-z][A-Za-z0-9 _.-]*>")
_TEXT_FIELDS = ("command", "args", "annotations", "description")


@dataclass(frozen=True, slots=True)
class Placeholder:
    """`hard`: in a place where only a value makes sense."""

    path: Path
    text: str
    hard: bool
    engine: str


def find(data: Any) -> list[Placeholder]:
    """All placeholders of a job, in document order."""
    return list(_walk(data, (), shell=False))


def unfilled(placeholder: Placeholder, where: Location, subject: str = "") -> Finding:
    """The error for a placeholder that makes the job unreadable."""
    return Finding(
        codes.PLACEHOLDER,
        Severity.ERROR,
        f"the {placeholder.engine} placeholder {placeholder.text} is not filled in",
        where,
        "render the template first; no value is guessed",
        subject,
        unreadable=True,
    )


def first_template_line(text: str) -> int | None:
    """Index of the first line with a Helm or Jinja action, None when there is none."""
    for i, line in enumerate(text.splitlines()):
        if "{{" in line or "{%" in line:
            return i
    return None


def _words(value: Any) -> list[str]:
    return [w for w in value if isinstance(w, str)] if isinstance(value, list) else []


def _walk(value: Any, path: Path, *, shell: bool) -> Iterator[Placeholder]:
    if isinstance(value, Mapping):
        runs_shell = shell
        if isinstance(value.get("command"), list) or isinstance(value.get("args"), list):
            runs_shell = shell_script(_words(value.get("command")), _words(value.get("args"))) is not None
        for key, item in value.items():
            yield from _walk(item, (*path, key), shell=runs_shell)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _walk(item, (*path, i), shell=shell)
    elif isinstance(value, str) and ("$" in value or "{" in value or "<" in value):
        yield from _in_text(value, path, shell=shell)


def _in_text(text: str, path: Path, *, shell: bool) -> Iterator[Placeholder]:
    free = any(part in _TEXT_FIELDS for part in path)
    is_env = "env" in path and path[-1] == "value"
    for match in _MUSTACHE.finditer(text):
        engine = "Jinja" if match[0].startswith("{%") else "Helm or Jinja"
        yield Placeholder(path, match[0], not free, engine)
    if not (free and shell):
        for match in _DOLLAR.finditer(text):
            yield Placeholder(path, match[0], not free and not is_env, "envsubst")
    if _ANGLE.fullmatch(text):
        yield Placeholder(path, text, not free, "hand-filled")
    elif not free and not is_env:
        for match in _ANGLE.finditer(text):
            yield Placeholder(path, match[0], True, "hand-filled")
