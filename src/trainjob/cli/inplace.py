"""`--in-place`: replace inputs, all of them or none, and only what Git or a backup can bring back."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from trainjob.cli.common import YAML_SUFFIXES
from trainjob.findings import Finding, Location, Severity
from trainjob.migrate.codes import IN_PLACE

# New text of a file, or None for one that goes.
Changes = Mapping[Path, str | None]


class ReplaceError(OSError):
    """A file could not be replaced; all others are as they were."""


def objections(changes: Changes, roots: Mapping[Path, Path], backup: str | None) -> list[Finding]:
    """Why these files must not be replaced. `roots`: the folder that each one must lie in."""
    found = [f for path in changes for f in _link(path, roots.get(path, path.parent))]
    if backup is not None:
        if backup.endswith(YAML_SUFFIXES) or "/" in backup or not backup:
            return [_finding(Path(), f"--backup {backup!r} is no suffix for copies", "say --backup .orig")]
        for path in changes:
            if path.exists() and saved(path, backup).exists():
                found.append(_finding(saved(path, backup), "the backup exists", "remove it, or take another suffix"))
        return found
    return found + _not_in_git([p for p in changes if p.exists()])


def saved(path: Path, backup: str) -> Path:
    """Where the backup of a file stands."""
    return path.with_name(path.name + backup)


def _finding(path: Path, message: str, fix: str) -> Finding:
    return Finding(IN_PLACE, Severity.ERROR, f"not replaced: {message}", Location(str(path)), fix, unreadable=True)


def _link(path: Path, root: Path) -> Iterable[Finding]:
    if path.is_symlink() or not path.resolve().is_relative_to(root.resolve()):
        yield _finding(path, f"it is a symbolic link, or lies outside of {root}", "give the file that it leads to")


def _not_in_git(paths: list[Path]) -> list[Finding]:
    """Files that Git could not bring back: untracked, changed, or in no repository."""
    found: list[Finding] = []
    by_folder: dict[Path, list[Path]] = {}
    for path in paths:
        by_folder.setdefault(path.parent.resolve(), []).append(path)
    tops: dict[Path, list[Path]] = {}
    for folder, files in by_folder.items():
        top = _top(folder, tops)
        if top is None:
            found += [
                _finding(p, "it is in no Git repository", "git init and commit it, or say --backup .orig")
                for p in files
            ]  # fmt: skip
        else:
            tops.setdefault(top, []).extend(files)
    for top, files in tops.items():
        names = {p.parent.resolve().relative_to(top).joinpath(p.name).as_posix(): p for p in files}
        tracked = set(_git(top, names, "ls-files", "-z"))
        changed = {line[3:] for line in _git(top, names, "status", "--porcelain", "-z", "--no-renames")}
        for name, path in names.items():
            if name not in tracked:
                found.append(_finding(path, "Git does not track it", "commit it first, or say --backup .orig"))
            elif name in changed:
                found.append(_finding(path, "it has changes that are not committed",
                                      "commit or undo them first, or say --backup .orig"))  # fmt: skip
    return found


def _top(folder: Path, known: Mapping[Path, object]) -> Path | None:
    """The top of the working tree that holds a folder."""
    for top in known:
        if folder.is_relative_to(top) and not any((p / ".git").exists() for p in _between(folder, top)):
            return top
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), "rev-parse", "--show-toplevel"], capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    return Path(done.stdout.strip()).resolve() if done.returncode == 0 else None


def _between(folder: Path, top: Path) -> Iterable[Path]:
    while folder != top:
        yield folder
        folder = folder.parent


def _git(top: Path, names: Iterable[str], *arguments: str) -> list[str]:
    """Lines of a git command about some files. Literal names: `*` in a name is no pattern."""
    out: list[str] = []
    batch = list(names)
    for start in range(0, len(batch), 500):
        command = ["git", "-C", str(top), "--literal-pathspecs", *arguments, "--", *batch[start : start + 500]]
        env = os.environ | {"GIT_OPTIONAL_LOCKS": "0"}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
        out += [line for line in done.stdout.split("\0") if line]
    return out


def replace_all(changes: Changes, backup: str | None) -> None:
    """Replace every file. When one fails, all are brought back and ReplaceError is raised."""
    staged: dict[Path, Path] = {}
    done: dict[Path, Path | None] = {}
    with tempfile.TemporaryDirectory(prefix="trainjob-") as folder:
        try:
            for path, text in changes.items():
                if text is not None:
                    staged[path] = _stage(path, text)
            for i, path in enumerate(changes):
                before = Path(folder, str(i)) if path.exists() else None
                if before is not None:
                    shutil.copy2(path, before)
                    if backup is not None:
                        shutil.copy2(path, saved(path, backup))
                done[path] = before
                if path in staged:
                    staged[path].replace(path)
                    del staged[path]
                else:
                    path.unlink(missing_ok=True)
        except OSError as err:
            for path, old in done.items():
                _bring_back(path, old, backup)
            raise ReplaceError(f"{err.filename or ''}: {err.strerror}; all files are as they were") from err
        finally:
            for temporary in staged.values():
                temporary.unlink(missing_ok=True)


def _stage(path: Path, text: str) -> Path:
    """The new text beside the file, with the file's mode."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
        stream.write(text)
    if path.exists():
        mode = stat.S_IMODE(path.stat().st_mode)
    else:
        mask = os.umask(0)
        os.umask(mask)
        mode = 0o666 & ~mask
    Path(name).chmod(mode)
    return Path(name)


def _bring_back(path: Path, before: Path | None, backup: str | None) -> None:
    if before is None:
        path.unlink(missing_ok=True)
        return
    shutil.copy2(before, path)
    if backup is not None:
        saved(path, backup).unlink(missing_ok=True)
