"""A kustomize tree in a folder, migrated with a real engine, and what its renderings mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.migrate.rules.support import v1
from trainjob.findings import Severity
from trainjob.kube import yaml
from trainjob.kustomize import Engine, EngineNotFoundError
from trainjob.migrate import Options, migrate_text
from trainjob.migrate.tree import kustomization
from trainjob.migrate.tree.overlays import TreeResult, migrate_overlays
from trainjob.migrate.tree.rendering import render
from trainjob.migrate.tree.runtimes import unique_runtimes

ORIGIN = ("trainjob.dev/migrated-from", "trainjob.dev/source-sha256")
GPU = {"resources": {"limits": {"nvidia.com/gpu": 1}}}
JOB = yaml.dump(v1(GPU, workers=1, metadata={"name": "tune", "labels": {"app": "tune"}}))
BASE = {"base/job.yaml": JOB, "base/kustomization.yaml": "resources:\n- job.yaml  # the job\n"}


def no_engine() -> Engine:
    raise EngineNotFoundError("no kustomize engine", "install kubectl")


@dataclass
class Tree:
    """`before`: what each overlay rendered as PyTorchJobs."""

    root: Path
    engine: Engine
    before: dict[str, str] = field(default_factory=dict)

    def write(self, files: Mapping[str, str]) -> Tree:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return self

    def render(self, folder: str) -> str:
        return render(self.engine, self.root / folder)

    def migrate(self, *, write: bool = True, engine: Any = None) -> TreeResult:
        """Migrate every file and kustomization as the command does."""
        root = self.root.resolve()
        found = {p.parent: kustomization.read(p, p.relative_to(root).as_posix()) for p in kustomization.find(root)}
        patches = {p.file for k in found.values() for p in k.aimed(kustomization.Aim.JOBS)}
        jobs, texts, told = set(), {}, set()
        for path in sorted(root.rglob("*.yaml")):
            if path in patches or path.name in kustomization.NAMES:
                continue
            result = migrate_text(path.read_text(encoding="utf-8"), file=path.name)
            if result.converted or result.refused:
                jobs.add(path)
                told |= {(f.code, f.message) for f in result.findings}
            if result.converted:
                texts[path] = result.text
        texts |= unique_runtimes(texts)
        result = migrate_overlays(
            root, found, jobs, texts, Options(), told=told, engine=engine or (lambda: self.engine)
        )
        if write and not result.failed:
            for path, text in {**texts, **result.changes}.items():
                path.unlink() if text is None else path.write_text(text, encoding="utf-8")
        return result

    def check(self, *overlays: str) -> TreeResult:
        """The invariant: what an overlay rendered, migrated, is what it renders afterwards."""
        before = {o: self.render(o) for o in overlays}
        result = self.migrate()
        assert not errors(result), errors(result)
        for overlay, text in before.items():
            assert meaning(self.render(overlay)) == meaning(migrate_text(text).text or text), overlay
        return result


def meaning(text: str) -> dict[tuple[str, str, str], Any]:
    """The objects by kind, namespace and name; a TrainJob holds its own runtime, whose name says nothing."""
    objects = [d.data for d in yaml.load(text) if d.data]
    runtimes = {_name(o): o["spec"] for o in objects if o["kind"] == "TrainingRuntime"}
    out = {}
    for obj in objects:
        if obj["kind"] == "TrainingRuntime":
            continue
        if obj["kind"] == "TrainJob":
            notes = obj["metadata"].get("annotations", {})
            for key in ORIGIN:
                notes.pop(key, None)
            if not notes:
                obj["metadata"].pop("annotations", None)
            ref = obj["spec"]["runtimeRef"]
            if ref["kind"] == "TrainingRuntime":
                ref["name"] = runtimes[_name(obj)[0], ref["name"]]
        out[obj["kind"], *_name(obj)] = obj
    return out


def _name(obj: Mapping[str, Any]) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def errors(result: TreeResult) -> list[str]:
    return [f"{f.where}: {f.message}" for f in result.findings if f.severity is Severity.ERROR]
