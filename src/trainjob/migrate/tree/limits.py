"""What in a kustomization cannot be migrated, with its line and what to do instead."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from trainjob.findings import Finding, Location, Severity
from trainjob.migrate.codes import KUSTOMIZE_REFUSED
from trainjob.migrate.tree.kustomization import Aim, Kustomization
from trainjob.v1.kinds import MENTIONED


def render_hint(kustomization: Kustomization) -> str:
    """The way that always works."""
    folder = Path(kustomization.shown).parent
    return f"render it (`kubectl kustomize {folder} | migrate -`) and keep the result instead of the overlay"


def objections(kustomization: Kustomization, below: Iterable[Kustomization], root: Path) -> Iterator[Finding]:
    """Errors of one kustomization; `below` is it and all that it lists, `root` the folder to migrate."""
    for each in below:
        for name, where in each.remote:
            yield _error(
                where,
                f"{name} is remote and is not fetched: what it does to PyTorchJobs cannot be seen",
                "vendor it into the tree, or render the overlay yourself and migrate the result",
            )
    yield from _outside(kustomization, root)
    for key, where in kustomization.paths_into_jobs():
        yield _error(
            where,
            f"{key} reaches into PyTorchJobs by field paths; a TrainJob has others, and kustomize skips a path that "
            "does not exist without a word",
            render_hint(kustomization),
        )
    for patch in kustomization.aimed(Aim.JOBS, Aim.JOBS_AND_OTHERS):
        if kustomization.component:
            yield _error(
                patch.where,
                "a Component patches PyTorchJobs; it renders only inside an overlay, so its patch cannot be translated "
                "once for all",
                "move the patch into each overlay that lists the Component, or render those overlays",
            )
        elif patch.aim is Aim.JOBS_AND_OTHERS and patch.file is None:
            yield _error(
                patch.where, "one inline patch holds PyTorchJobs and other objects", "make one patch of each document"
            )


def _outside(kustomization: Kustomization, root: Path) -> Iterator[Finding]:
    for folder in kustomization.folders:
        if not folder.is_relative_to(root) and (not kustomization.plain or _speaks_of_jobs(folder)):
            both = os.path.relpath(Path(os.path.commonpath([root, folder])))
            yield _error(
                Location(kustomization.shown, 1, 1),
                f"it lists {os.path.relpath(folder)}, which lies outside of the folder to migrate",
                f"migrate the folder that holds both: {both}",
            )


def _error(where: Location, message: str, fix: str) -> Finding:
    return Finding(KUSTOMIZE_REFUSED, Severity.ERROR, message, where, fix)


def _speaks_of_jobs(folder: Path) -> bool:
    """Whether a YAML file below a folder names PyTorchJobs."""
    for path in folder.rglob("*.y*ml"):
        try:
            if MENTIONED.search(path.read_text(encoding="utf-8", errors="replace")):
                return True
        except OSError:
            continue
    return False
