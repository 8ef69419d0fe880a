"""kustomize trees: what an overlay rendered before, migrated, is what it renders afterwards.

Each kustomization that reaches a PyTorchJob is rendered twice with the real engine: as it is, and with
the files converted. The first result, migrated, is what must come out. Patches that are aimed at
PyTorchJobs go; JSON patches that bridge the difference come in their place. Then the result is compared
once more: what does not agree is an error, and nothing of the tree is written.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from trainjob.findings import Finding, Location, Severity
from trainjob.kube import yaml
from trainjob.kustomize import Engine, KustomizeError, find_engine
from trainjob.migrate import codes
from trainjob.migrate.codes import NO_RUNTIME
from trainjob.migrate.engine import Migration, join, migrate_text
from trainjob.migrate.job import Options
from trainjob.migrate.kinds.registry import CONVERTED, CONVERTIBLE
from trainjob.migrate.tree import edits
from trainjob.migrate.tree.additions import CONFIGURATION, CONFIGURATION_TEXT, RUNTIMES, SORT
from trainjob.migrate.tree.kustomization import Aim, Kustomization, Patch
from trainjob.migrate.tree.limits import objections, render_hint
from trainjob.migrate.tree.objects import JOB, RUNTIME, Bridge, Objects, bridge, different
from trainjob.migrate.tree.rendering import early, render
from trainjob.targets import GROUP


class _RefusedError(Exception):
    """A kustomization cannot be migrated; the findings have been told."""


@dataclass(slots=True)
class TreeResult:
    """`changes`: resolved path -> new text, or None for a file that goes. Empty when `failed`."""

    findings: list[Finding] = field(default_factory=list)
    changes: dict[Path, str | None] = field(default_factory=dict)
    reached: bool = False
    failed: bool = False
    patches: int = 0


def migrate_overlays(
    root: Path,
    kustomizations: Mapping[Path, Kustomization],
    jobs: set[Path],
    converted: Mapping[Path, str],
    options: Options,
    *,
    told: set[tuple[str, str]] | None = None,
    engine: Callable[[], Engine] = find_engine,
) -> TreeResult:
    """Migrate the kustomizations of a tree. `jobs`: files that hold PyTorchJobs; `converted`: their new
    texts where there are any; `told`: (code, message) of findings that need no repeating."""
    with tempfile.TemporaryDirectory(prefix="trainjob-") as scratch:
        work = _Work(root, kustomizations, jobs, converted, options, told or set(), engine, Path(scratch) / "tree")
        return work.run()


@dataclass(slots=True)
class _Work:
    root: Path
    all: Mapping[Path, Kustomization]
    jobs: set[Path]
    converted: Mapping[Path, str]
    options: Options
    told: set[tuple[str, str]]
    find_engine: Callable[[], Engine]
    copy: Path
    result: TreeResult = field(default_factory=TreeResult)
    engine: Engine | None = None
    dropped: set[Path] = field(default_factory=set)

    def run(self) -> TreeResult:
        for kustomization in self._ordered():
            reached = self._reached(kustomization)
            aimed = kustomization.aimed(Aim.JOBS, Aim.JOBS_AND_OTHERS)
            if not reached and not aimed and not self._serves(kustomization):
                continue
            self.result.reached = True
            self.result.patches += len(aimed)
            try:
                self._one(kustomization, reached)
            except _RefusedError:
                self.result.failed = True
            except KustomizeError as err:
                self._engine_failed(kustomization, err)
                self.result.failed = True
        if self.result.failed:
            self.result.changes.clear()
        else:
            self._patch_files()
        return self.result

    # --- the graph -----------------------------------------------------------------------------------

    def _ordered(self) -> Iterator[Kustomization]:
        """Bases before the overlays that list them."""
        done: set[Path] = set()

        def visit(folder: Path) -> Iterator[Kustomization]:
            if folder in done or folder not in self.all:
                return
            done.add(folder)
            for below in self.all[folder].folders:
                yield from visit(below)
            yield self.all[folder]

        for folder in self.all:
            yield from visit(folder)

    def _below(self, kustomization: Kustomization) -> list[Kustomization]:
        """A kustomization and all that it lists, each once."""
        out: dict[Path, Kustomization] = {}
        pending = [kustomization]
        while pending:
            each = pending.pop()
            if each.folder not in out:
                out[each.folder] = each
                pending += [self.all[f] for f in each.folders if f in self.all]
        return list(out.values())

    def _reached(self, kustomization: Kustomization) -> set[Path]:
        return {f for k in self._below(kustomization) for f in k.files if f in self.jobs}

    def _serves(self, kustomization: Kustomization) -> bool:
        """A Component of an overlay that reaches jobs: its images and prefixes reach them too."""
        users = (k for k in self.all.values() if kustomization in self._below(k))
        return kustomization.component and any(self._reached(k) for k in users)

    def _top(self, kustomization: Kustomization) -> bool:
        return not any(kustomization.folder in k.folders for k in self.all.values())

    # --- one kustomization ---------------------------------------------------------------------------

    def _one(self, kustomization: Kustomization, reached: set[Path]) -> None:
        problems = list(objections(kustomization, self._below(kustomization), self.root))
        if problems:
            self.result.findings += [p for p in problems if p not in self.result.findings]
            raise _RefusedError
        if kustomization.component:
            text = self._with_configuration(kustomization, kustomization.text)
            if text != kustomization.text:
                self._write(kustomization.file, text)
            return
        if kustomization.plain:
            if self._top(kustomization) and any("kind: TrainingRuntime" in self.converted.get(f, "") for f in reached):
                self._write(kustomization.file, self._sorted(kustomization, kustomization.text))
            return
        want = Objects(self._migrated(kustomization, self._render(kustomization.folder)))
        text = self._without_patches(kustomization)
        text = self._with_configuration(kustomization, text)
        if self._top(kustomization) and any(i.kind == RUNTIME for i in want.all):
            text = self._sorted(kustomization, text)
        now = Objects(self._render_new(kustomization, text))
        gap = bridge(now, want)
        gaps = [gap] if gap else []
        if gap:
            try:
                whole = self._bridged(kustomization, text, gap, kustomization.local_name)
                now = Objects(self._render_new(kustomization, whole))
                agrees = not different(now, want)
            except KustomizeError:  # a patch sees no label or annotation that comes in after it
                if not kustomization.changes_afterwards:
                    raise
                agrees = False
            if agrees or not kustomization.changes_afterwards:
                text = whole
            else:
                self.result.changes.pop(kustomization.folder / RUNTIMES, None)
                text, gaps = self._in_two_steps(kustomization, text, want)
                now = Objects(self._render_new(kustomization, text))
        wrong = different(now, want)
        if wrong:
            lines = kustomization.aimed(Aim.JOBS, Aim.JOBS_AND_OTHERS, Aim.UNKNOWN)
            where = lines[0].where if lines else Location(kustomization.shown, 1, 1)
            raise self._refuse(where, f"what it renders cannot be kept: {'; '.join(wrong[:5])}", kustomization)
        if text != kustomization.text:
            self._write(kustomization.file, text)
        self._tell_patches(kustomization, gaps)

    def _in_two_steps(self, kustomization: Kustomization, text: str, want: Objects) -> tuple[str, list[Bridge]]:
        """First what differs where patches apply, before prefixes and labels come in; then the rest."""
        have = Objects(self._render_new(kustomization, early(text)))
        seen = self._render_old(kustomization, early(kustomization.text))
        gaps = [bridge(have, Objects(self._migrated(kustomization, seen)))]
        text = self._bridged(kustomization, text, gaps[0], lambda name: name)
        rest = bridge(Objects(self._render_new(kustomization, text)), want)
        if rest:
            gaps.append(rest)
            text = self._bridged(kustomization, text, rest, kustomization.local_name)
        return text, gaps

    def _migrated(self, kustomization: Kustomization, text: str) -> str:
        """What the kustomization rendered so far, migrated. Tells only what the files did not tell."""
        if not CONVERTIBLE.search(text):
            return text
        result = migrate_text(text, file=kustomization.shown, options=self.options)
        for finding in result.findings:
            if (finding.code, finding.message) not in self.told and finding.severity is not Severity.NOTE:
                self.told.add((finding.code, finding.message))
                place = Location(kustomization.shown, 1, 1, finding.where.path if finding.where else "")
                said = f"{finding.message} (in what this kustomization renders)"
                self.result.findings.append(replace(finding, message=said, where=place))
        if _unsolved(result) and kustomization.aimed(Aim.JOBS, Aim.JOBS_AND_OTHERS):
            for patch in kustomization.aimed(Aim.JOBS, Aim.JOBS_AND_OTHERS):
                self._error(patch.where, f"this patch must stay as long as a job of {kustomization.shown} is refused",
                            "solve the errors of that job first")  # fmt: skip
            raise _RefusedError
        return result.text if result.converted else text

    def _without_patches(self, kustomization: Kustomization) -> str:
        text = kustomization.text
        by_field: dict[str, list[int]] = {}
        for patch in kustomization.aimed(Aim.JOBS, Aim.JOBS_AND_OTHERS):
            if patch.aim is Aim.JOBS:
                by_field.setdefault(patch.field, []).append(patch.index)
            elif patch.file is not None:
                self._write(patch.file, _other_documents(patch.file))
        for key, indices in by_field.items():
            text = self._edit(kustomization, text, key, drop=indices)
        return text

    def _with_configuration(self, kustomization: Kustomization, text: str) -> str:
        if not any(kustomization.data.get(k) for k in ("images", "namePrefix", "nameSuffix")):
            return text
        self._new_file(kustomization, CONFIGURATION, CONFIGURATION_TEXT)
        if CONFIGURATION in (kustomization.data.get("configurations") or []):
            return text
        self._note(kustomization.where(), f"{CONFIGURATION} tells kustomize where a TrainJob holds images and names")
        return self._edit(kustomization, text, "configurations", add=[CONFIGURATION])

    def _sorted(self, kustomization: Kustomization, text: str) -> str:
        options = kustomization.data.get("sortOptions")
        if options is None:
            self._note(
                kustomization.where(),
                "sortOptions puts TrainJobs last: kustomize sorts a TrainJob before the TrainingRuntime that it needs",
            )
            return f"{text if text.endswith(chr(10)) else text + chr(10)}{SORT}"
        if "TrainJob" not in str(options) and options.get("order") != "fifo":
            self.result.findings.append(
                Finding(codes.KUSTOMIZE_EDIT, Severity.WARNING,
                        "sortOptions puts TrainJobs before the TrainingRuntime that they need, which Trainer refuses",
                        kustomization.where("sortOptions"), "add TrainJob to orderLast")
            )  # fmt: skip
        return text

    def _bridged(self, kustomization: Kustomization, text: str, gap: Bridge, local: Callable[[str], str]) -> str:
        patches: list[dict[str, object]] = []
        for i, operations in gap.operations.items():
            target = {"group": GROUP, "kind": JOB, "name": local(i.name)}
            patches.append({"target": target, "patch": yaml.dump(operations)})
        for i in gap.removed:
            name = local(i.name)
            metadata = {"name": name, "namespace": i.namespace} if i.namespace else {"name": name}
            gone = {"$patch": "delete", "apiVersion": f"{GROUP}/v1alpha1", "kind": JOB, "metadata": metadata}
            patches.append({"patch": yaml.dump(gone)})
        if gap.runtimes:
            earlier = self.result.changes.get(kustomization.folder / RUNTIMES)
            texts = [*([earlier] if earlier else []), *(yaml.dump(r) for r in gap.runtimes)]
            self._new_file(kustomization, RUNTIMES, join(texts))
            if earlier is None:
                text = self._edit(kustomization, text, "resources", add=[RUNTIMES])
        return self._edit(kustomization, text, "patches", add=patches)

    def _edit(
        self, kustomization: Kustomization, text: str, key: str, *, drop: list[int] | None = None,
        add: list[object] | list[dict[str, object]] | list[str] | None = None,
    ) -> str:  # fmt: skip
        try:
            return edits.change_list(text, key, drop=drop or (), add=add or ())
        except edits.EditError as err:
            raise self._refuse(Location(kustomization.shown, err.line, 1), str(err), kustomization) from None

    def _new_file(self, kustomization: Kustomization, name: str, text: str) -> None:
        path = kustomization.folder / name
        if path.exists() and path.read_text(encoding="utf-8", errors="replace") != text:
            raise self._refuse(Location(kustomization.shown, 1, 1), f"{name} exists and holds something else",
                               kustomization)  # fmt: skip
        self._write(path, text)

    def _patch_files(self) -> None:
        """Patch files that only patched PyTorchJobs go, unless someone still lists them."""
        held = {f for k in self.all.values() for f in k.files}
        for patch in self._file_patches():
            assert patch.file is not None
            others = [p for p in self._file_patches() if p.file == patch.file and p.aim is not Aim.JOBS]
            if patch.aim is Aim.JOBS and not others and patch.file not in held and patch.file.is_file():
                self.result.changes[patch.file] = None

    def _file_patches(self) -> list[Patch]:
        return [p for k in self.all.values() for p in k.patches if p.file is not None]

    # --- rendering -----------------------------------------------------------------------------------

    def _write(self, path: Path, text: str) -> None:
        self.result.changes[path] = text
        if self.copy.exists():
            self._into(self.copy, path, text)

    def _into(self, copy: Path, path: Path, text: str) -> None:
        place = copy / path.relative_to(self.root)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8", newline="")

    def _render_new(self, kustomization: Kustomization, text: str) -> str:
        """The tree with everything that is converted so far, and `text` as this kustomization."""
        if not self.copy.exists():
            self._copy_to(self.copy)
            for path, new in {**self.converted, **self.result.changes}.items():
                if new is not None and path.is_relative_to(self.root):
                    self._into(self.copy, path, new)
        self._into(self.copy, kustomization.file, text)
        return self._render(self.copy / kustomization.folder.relative_to(self.root))

    def _render_old(self, kustomization: Kustomization, text: str) -> str:
        """The tree as it was, with `text` as this kustomization."""
        copy = self.copy.with_name("old")
        if not copy.exists():
            self._copy_to(copy)
        self._into(copy, kustomization.file, text)
        try:
            return self._render(copy / kustomization.folder.relative_to(self.root))
        finally:
            self._into(copy, kustomization.file, kustomization.text)

    def _copy_to(self, place: Path) -> None:
        """The folders of kustomizations: an engine reads nothing outside of them."""
        for folder in self.all:
            if not any(folder != other and folder.is_relative_to(other) for other in self.all):
                to = place / folder.relative_to(self.root)
                shutil.copytree(folder, to, symlinks=True, ignore=shutil.ignore_patterns(".git"), dirs_exist_ok=True)

    def _render(self, folder: Path) -> str:
        if self.engine is None:
            self.engine = self.find_engine()
        return render(self.engine, folder)

    def _engine_failed(self, kustomization: Kustomization, err: KustomizeError) -> None:
        message = err.message
        for copy in (self.copy, self.copy.with_name("old")):
            message = message.replace(str(copy), str(self.root))
        patches = kustomization.aimed(Aim.JOBS, Aim.JOBS_AND_OTHERS, Aim.UNKNOWN)
        where = patches[0].where if patches else Location(kustomization.shown, 1, 1)
        self._error(where, message, err.fix or render_hint(kustomization))

    # --- findings ------------------------------------------------------------------------------------

    def _tell_patches(self, kustomization: Kustomization, gaps: list[Bridge]) -> None:
        aimed = kustomization.aimed(Aim.JOBS, Aim.JOBS_AND_OTHERS)
        parts = [f"{i.name}: {_paths(ops)}" for gap in gaps for i, ops in gap.operations.items()]
        parts += [f"{i.name}: removed" for gap in gaps for i in gap.removed]
        what = "; ".join(parts)
        replaced = f"this patch of PyTorchJobs is replaced by JSON patches of TrainJobs ({what})"
        for patch in aimed:
            self._note(patch.where, replaced if what else "this patch of PyTorchJobs changes no TrainJob and goes")
        if what and not aimed:
            self._note(kustomization.where(), f"JSON patches keep what it renders ({what})")
        if any(gap.runtimes for gap in gaps):
            self._note(
                kustomization.where(),
                f"{RUNTIMES} holds the runtimes that this overlay's jobs need; later changes of the base's pods do not "
                "reach them",
            )

    def _note(self, where: Location, message: str) -> None:
        self.result.findings.append(Finding(codes.KUSTOMIZE_EDIT, Severity.NOTE, message, where))

    def _error(self, where: Location, message: str, fix: str) -> None:
        finding = Finding(codes.KUSTOMIZE_REFUSED, Severity.ERROR, message, where, fix)
        if finding not in self.result.findings:
            self.result.findings.append(finding)

    def _refuse(self, where: Location, message: str, kustomization: Kustomization) -> _RefusedError:
        self._error(where, message, render_hint(kustomization))
        return _RefusedError()


def _other_documents(path: Path) -> str:
    """A patch file without its PyTorchJobs."""
    documents = yaml.load(path.read_text(encoding="utf-8"))
    return join([d.text for d in documents if not (isinstance(d.data, Mapping) and d.data.get("kind") in CONVERTED)])


def _paths(operations: list[dict[str, object]]) -> str:
    return ", ".join(str(o["path"]) for o in operations if o["op"] != "test")


def _unsolved(result: Migration) -> bool:
    """A job is refused that could be a TrainJob. Kinds without a runtime stay what they are, with their patches."""
    errors = [[f for f in r.findings if f.severity is Severity.ERROR] for r in result.records if r.job is None]
    return any(f.code != NO_RUNTIME for found in errors for f in found)
