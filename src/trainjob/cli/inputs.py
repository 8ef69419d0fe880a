"""The inputs of a command: files, folders and stdin, with a finding for each that cannot be read."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from trainjob.cli.common import YAML_SUFFIXES
from trainjob.findings import Finding, Location, Severity
from trainjob.migrate.codes import CANNOT_READ

STDIN = "-"


@dataclass(frozen=True, slots=True)
class Input:
    """One file (or stdin). `relative` is its place below an output folder."""

    name: str
    path: Path | None
    relative: Path
    from_folder: bool = False

    def lines(self) -> Iterator[str]:
        """Its lines with their line ends. Raises OSError or UnicodeDecodeError."""
        if self.path is None:
            stream = sys.stdin
            stream.reconfigure(encoding="utf-8", errors="strict", newline="")  # type: ignore[union-attr]
            yield from stream
            return
        with self.path.open(encoding="utf-8", newline="") as file:
            yield from file

    def mapped(self, findings: Iterable[Finding]) -> list[Finding]:
        """Findings about these lines, at the places that the user can edit."""
        return list(findings)


def collect(
    arguments: tuple[str, ...], findings: list[Finding], suffixes: tuple[str, ...] = YAML_SUFFIXES
) -> list[Input]:
    """Every input behind the arguments, folders walked in a fixed order for files of some suffixes;
    symbolic links to folders are not followed."""
    out: list[Input] = []
    for argument in arguments:
        if argument == STDIN:
            out.append(Input("<stdin>", None, Path("stdin.yaml")))
            continue
        path = Path(argument)
        try:
            if path.is_dir():
                out.extend(_walk(path, findings, suffixes))
            elif path.exists():
                out.append(Input(argument, path, Path(path.name)))
            else:
                path.lstat()
                findings.append(cannot_read(argument, "the link points to nothing, or to itself"))
        except OSError as err:
            findings.append(cannot_read(argument, err.strerror or str(err)))
    return out


def _walk(root: Path, findings: list[Finding], suffixes: tuple[str, ...]) -> Iterator[Input]:
    def unreadable(err: OSError) -> None:
        findings.append(cannot_read(str(err.filename), err.strerror or str(err)))

    for folder, folders, files in os.walk(root, onerror=unreadable):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        for name in sorted(files):
            if name.endswith(suffixes):
                path = Path(folder, name)
                yield Input(str(path), path, path.relative_to(root), from_folder=True)


def cannot_read(name: str, why: str) -> Finding:
    """The finding for a file or folder that cannot be opened."""
    return Finding(
        CANNOT_READ,
        Severity.ERROR,
        f"cannot read {name}: {why}",
        Location(name),
        "check the path and its permissions",
        unreadable=True,
    )
