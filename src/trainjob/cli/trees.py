"""Folders as wholes, for `migrate`: what is held back until the last file is read, and then written.

A folder in which a kustomization reaches a PyTorchJob is written as a whole below -o, so that it renders;
if one of its kustomizations cannot be migrated, nothing of it is written.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from trainjob.cli.charts import chart_inputs
from trainjob.cli.common import write_atomic
from trainjob.cli.inplace import ReplaceError, objections, replace_all
from trainjob.cli.inputs import Input
from trainjob.cli.treeoptions import TreeOptions
from trainjob.findings import Finding, Location, Severity
from trainjob.kube.yaml import YamlError
from trainjob.migrate import codes, gitops
from trainjob.migrate.document import DocumentResult
from trainjob.migrate.engine import Tally
from trainjob.migrate.job import Options
from trainjob.migrate.tree import helm, kustomization
from trainjob.migrate.tree.edits import EditError
from trainjob.migrate.tree.kustomization import Aim, Kustomization
from trainjob.migrate.tree.overlays import TreeResult, migrate_overlays
from trainjob.migrate.tree.runtimes import unique_runtimes
from trainjob.v1.kinds import MENTIONED


@dataclass(slots=True)
class Tree:
    """One folder argument. `jobs` and `texts` are keyed by resolved paths."""

    given: Path
    root: Path
    kustomizations: dict[Path, Kustomization] = field(default_factory=dict)
    jobs: set[Path] = field(default_factory=set)
    texts: dict[Path, str] = field(default_factory=dict)
    result: TreeResult = field(default_factory=TreeResult)
    charts: list[Path] = field(default_factory=list)
    apps: list[gitops.App] = field(default_factory=list)
    moved: list[gitops.Moved] = field(default_factory=list)

    def own_files(self) -> set[Path]:
        """Kustomizations, and patches of PyTorchJobs: no jobs of their own."""
        out = {k.file for k in self.kustomizations.values()}
        for each in self.kustomizations.values():
            aimed = each.aimed(Aim.JOBS, Aim.JOBS_AND_OTHERS)
            out |= {p.file for p in aimed if p.file is not None and p.file not in each.files}
        return out

    def reached(self) -> dict[str, set[str]]:
        """Kustomization -> files that it lists, also through others; names from the root."""

        def below(folder: Path, seen: frozenset[Path] = frozenset()) -> set[Path]:
            each = self.kustomizations.get(folder)
            if each is None or folder in seen:
                return set()
            return set(each.files).union(*(below(f, seen | {folder}) for f in each.folders))

        def name(path: Path) -> str:
            return path.relative_to(self.root).as_posix()

        return {
            name(k.file): {name(f) for f in below(folder) if f.is_relative_to(self.root)}
            for folder, k in self.kustomizations.items()
        }


def find_trees(paths: tuple[str, ...], findings: list[Finding]) -> list[Tree]:
    """The folders among the arguments, with their kustomizations."""
    out = []
    for given in map(Path, dict.fromkeys(paths)):
        if str(given) == "-" or not given.is_dir():
            continue
        tree = Tree(given, given.resolve(), charts=list(helm.charts(given)))
        for file in kustomization.find(tree.root):
            shown = str(given / file.relative_to(tree.root))
            try:
                tree.kustomizations[file.parent] = kustomization.read(file, shown)
            except (OSError, UnicodeDecodeError) as err:
                findings.append(_error(codes.CANNOT_READ, Location(shown), f"cannot read it: {err}", "check the file"))
            except YamlError as err:
                findings.append(_not_looked_at(file, err.where, err.message))
            except EditError as err:
                findings.append(_not_looked_at(file, Location(shown, err.line, 1), str(err)))
        out.append(tree)
    return out


def _not_looked_at(file: Path, where: Location, why: str) -> Finding:
    """A kustomization that is no YAML, for example a template: an error only where it speaks of jobs."""
    worst = Severity.ERROR if MENTIONED.search(_text(file)) else Severity.WARNING
    return Finding(
        codes.YAML_ERROR, worst, f"not looked at: {why}; what it does to the jobs that it lists is not known", where,
        "render it first, or write one YAML document", unreadable=worst is Severity.ERROR,
    )  # fmt: skip


def _error(code: str, where: Location, message: str, fix: str) -> Finding:
    return Finding(code, Severity.ERROR, message, where, fix, unreadable=True)


class Held:
    """The outputs of a run, until all are known."""

    def __init__(
        self,
        trees: list[Tree],
        inputs: list[Input],
        tree_options: TreeOptions,
        options: Options,
        findings: list[Finding],
    ) -> None:
        self.trees, self.tree_options, self.options = trees, tree_options, options
        own = {t.given: t.own_files() for t in trees}
        settings = helm.Settings(tree_options.helm_values, tree_options.helm_release, tree_options.helm_namespace)
        self.charts = [c for t in trees for c in chart_inputs(t.given, t.charts, settings, findings)]
        self.inputs = [*(i for i in inputs if not self._owned(i, own)), *self.charts]
        self.rendered: dict[Path, str] = {}
        self.single: dict[Path, str] = {}
        self.relative: dict[Path, Path] = {}
        for item in inputs:
            tree = self._tree_of(item)
            if tree is not None and item.path is not None:
                tree.apps += gitops.apps(item.name, _text(item.path)) if not self._owned(item, own) else ()
        if any(app.argo for tree in trees for app in tree.apps):
            self.options = replace(options, argo=True)

    def _tree_of(self, item: Input) -> Tree | None:
        if not item.from_folder or item.path is None:
            return None
        return next((t for t in self.trees if t.given / item.relative == item.path), None)

    def _owned(self, item: Input, own: dict[Path, set[Path]]) -> bool:
        tree = self._tree_of(item)
        if tree is None or item.path is None:
            return False
        return tree.root / item.relative in own[tree.given] or any(item.path.is_relative_to(c) for c in tree.charts)

    @property
    def needed(self) -> bool:
        return self.tree_options.in_place or any(t.kustomizations or t.charts for t in self.trees)

    def add(self, item: Input, tally: Tally, text: str | None) -> None:
        """The outcome of one input; `text` is None where there is no output."""
        tree = self._tree_of(item)
        if item.path is None:  # a chart, or stdin
            if text is not None:
                self.rendered[item.relative] = text
        elif tree is None:
            if text is not None:
                self.single[item.path] = text
                self.relative[item.path] = item.relative
        else:
            place = tree.root / item.relative
            if tally.converted or tally.refused or tally.unreadable:
                tree.jobs.add(place)
            if text is not None:
                tree.texts[place] = text

    def saw(self, item: Input, result: DocumentResult) -> None:
        """One document of an input: which jobs move."""
        tree = self._tree_of(item)
        for job in result.jobs if tree is not None else ():
            metadata = job.manifest.get("metadata", {})
            name = str(metadata.get("name") or metadata.get("generateName") or "")
            annotations = metadata.get("annotations") or {}
            assert tree is not None
            file = item.relative.as_posix()
            tree.moved.append(gitops.Moved(file, name, annotations, job.runtime is not None))

    def after(self, findings: list[Finding]) -> Iterator[Finding]:
        """What is known when every file is read."""
        for chart in self.charts:
            yield from chart.edits()
        yield from self._overlays(findings)
        for tree in self.trees:
            yield from gitops.check(tree.apps, tree.moved, tree.reached())

    def _overlays(self, findings: list[Finding]) -> Iterator[Finding]:
        """Migrate the kustomizations of every tree."""
        told = {(f.code, f.message) for f in findings}
        for tree in self.trees:
            if not tree.kustomizations:
                continue
            reached = {f for k in tree.kustomizations.values() for f in k.files}
            tree.texts |= unique_runtimes({p: t for p, t in sorted(tree.texts.items()) if p in reached})
            tree.result = migrate_overlays(
                tree.root, tree.kustomizations, tree.jobs, tree.texts, self.options, told=told
            )
            yield from tree.result.findings
            if tree.result.failed:
                yield Finding(
                    codes.KUSTOMIZE_REFUSED, Severity.ERROR, f"nothing of {tree.given} is written, because a "
                    "kustomization in it cannot be migrated", Location(str(tree.given)), "see its own errors above",
                )  # fmt: skip

    def not_shown(self) -> Iterator[Finding]:
        """What a stream on stdout cannot say."""
        for tree in self.trees:
            if tree.result.changes:
                first = next(iter(tree.result.changes))
                yield Finding(
                    codes.KUSTOMIZE_REFUSED, Severity.ERROR,
                    f"{len(tree.result.changes)} kustomize files change too, which stdout cannot show: this is not the "
                    "whole", Location(str(tree.given / first.relative_to(tree.root))),
                    "say -o DIR or --in-place; or render an overlay: kubectl kustomize DIR | migrate -",
                )  # fmt: skip

    def write_below(self, output: Path, *, overwrite: bool) -> tuple[int, list[Finding]]:
        """Write below -o DIR; the number of files that hold something new, and why some are not written."""
        jobs: dict[Path, str | Path] = {output / self.relative[p]: t for p, t in self.single.items()}
        jobs |= {output / p: t for p, t in self.rendered.items()}
        changed = len(jobs)
        for tree in self.trees:
            if tree.result.failed:
                continue
            new = {**tree.texts, **{p: t for p, t in tree.result.changes.items() if t is not None}}
            changed += len(new)
            jobs |= {output / p.relative_to(tree.root): t for p, t in new.items()}
            if tree.result.reached:
                gone = {p for p, t in tree.result.changes.items() if t is None}
                rest = (p for p in _files(tree.root, output) if p not in new and p not in gone)
                jobs |= {output / p.relative_to(tree.root): p for p in rest}
        found = [] if overwrite else [_exists(p) for p in jobs if p.exists()]
        if found:
            return 0, found
        for place, content in jobs.items():
            if isinstance(content, str):
                write_atomic(place, content)
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(content, place)
        return changed, []

    def replace(self, findings: list[Finding]) -> tuple[int, list[Finding]]:
        """`--in-place`; the number of files that changed, and why nothing was replaced."""
        refused = [f for f in findings if f.severity is Severity.ERROR]
        if self.charts:
            return 0, [
                _error(codes.TEMPLATE_REFUSED, Location(c.name), "templates of a chart are not rewritten in place",
                       "edit the lines that are listed, or write the rendered chart with -o DIR")
                for c in self.charts
            ]  # fmt: skip
        if refused and (not self.tree_options.partial or any(f.unreadable for f in refused)):
            message = "nothing is replaced, because of the errors above"
            fix = "solve them, leave those files out, or say --partial to replace the others"
            return 0, [Finding(codes.IN_PLACE, Severity.ERROR, message, None, fix)]
        changes: dict[Path, str | None] = dict(self.single)
        roots = {p: p.parent for p in self.single}
        for tree in self.trees:
            if not tree.result.failed:
                mine = {**tree.texts, **tree.result.changes}
                changes |= mine
                roots |= dict.fromkeys(mine, tree.root)
        changes = {p: t for p, t in changes.items() if t is None or not _holds(p, t)}
        found = objections(changes, roots, self.tree_options.backup)
        if found:
            return 0, found
        try:
            replace_all(changes, self.tree_options.backup)
        except ReplaceError as err:
            return 0, [_error(codes.IN_PLACE, Location(""), f"not replaced: {err}", "check permissions and space")]
        return len(changes), []


def _text(path: Path) -> str:
    """A file's text, empty where it cannot be read: its own finding says so."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _holds(path: Path, text: str) -> bool:
    return path.is_file() and path.read_bytes() == text.encode("utf-8")


def _files(root: Path, output: Path) -> Iterator[Path]:
    """Regular files of a tree, without Git's own and without what is written now."""
    inside = output.resolve()
    for path in sorted(root.rglob("*")):
        if ".git" not in path.parts[len(root.parts) :] and path.is_file() and not path.is_relative_to(inside):
            yield path


def _exists(path: Path) -> Finding:
    return _error(codes.CANNOT_READ, Location(str(path)), "not written: it exists",
                  "remove it, choose another folder, or say --overwrite")  # fmt: skip
