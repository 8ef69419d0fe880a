"""Repositories that Argo CD or Flux apply: a runtime comes before its job, and no running job is pruned.

Sources: Argo CD docs, user-guide sync-waves (order: phase, wave, kind, name), sync-options (Prune=false on
the live object), resource_hooks; fluxcd/kustomize-controller api v1 (prune, dependsOn), the label and
annotation kustomize.toolkit.fluxcd.io/prune: disabled; fluxcd/pkg ssa/manager_apply.go (ApplyAll).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from trainjob import emit
from trainjob.findings import Finding, Location, Severity
from trainjob.kube import yaml
from trainjob.kube.yaml import Document
from trainjob.migrate.codes import GITOPS_ORDER, GITOPS_PRUNE
from trainjob.v1.traced import derived

_ARGO: Final = "argocd.argoproj.io/"
_WAVE: Final = f"{_ARGO}sync-wave"
_HOOK: Final = f"{_ARGO}hook"
_OPTIONS: Final = f"{_ARGO}sync-options"
_FLUX_PRUNE: Final = "kustomize.toolkit.fluxcd.io/prune"
_APPS: Final = re.compile(r"argoproj\.io/|kustomize\.toolkit\.fluxcd\.io/")


@dataclass(frozen=True, slots=True)
class App:
    """What applies a folder of the repository. `path` is empty where it is not known."""

    kind: str
    name: str
    path: str
    prune: bool
    where: Location

    @property
    def argo(self) -> bool:
        return self.kind.startswith("Argo")

    def covers(self, file: str) -> bool:
        """Whether a file, named from the root of the tree, is in its folder."""
        return not self.path or f"/{file}".startswith(f"/{self.path}/") or f"/{self.path}/" in f"/{file}"

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Moved:
    """A job that was migrated: the file from the root of the tree, and what matters of its TrainJob."""

    file: str
    name: str
    annotations: Mapping[str, str]
    own_runtime: bool

    @property
    def kept(self) -> bool:
        """Neither tool prunes it."""
        options = [o.strip() for o in self.annotations.get(_OPTIONS, "").split(",")]
        return "Prune=false" in options or self.annotations.get(_FLUX_PRUNE) == "disabled"


def ordered(job: emit.TrainJob, *, argo: bool) -> emit.TrainJob:
    """The job with a runtime that Argo CD applies before it: by name alone a TrainJob comes first, and
    Trainer's webhook refuses a TrainJob without its runtime."""
    annotations = job.manifest.get("metadata", {}).get("annotations") or {}
    if job.runtime is None or not (argo or any(k.startswith(_ARGO) for k in annotations)):
        return job
    try:
        wave = int(annotations.get(_WAVE, "0"))
    except ValueError:
        return job
    metadata = dict(job.runtime["metadata"])
    own = {**metadata.get("annotations", {}), _WAVE: derived(str(wave - 1), annotations.get(_WAVE))}
    if _HOOK in annotations:  # a hook's runtime belongs to the same phase, and stays there
        own |= {_HOOK: annotations[_HOOK], f"{_HOOK}-delete-policy": "BeforeHookCreation"}
    metadata["annotations"] = own
    return replace(job, runtime={**job.runtime, "metadata": metadata})


def apps(file: str, text: str) -> Iterator[App]:
    """The Argo CD and Flux objects of a file that apply folders."""
    if not _APPS.search(text):
        return
    try:
        for doc in yaml.load(text, file):
            if isinstance(doc.data, Mapping):
                yield from _apps(doc, doc.data)
    except yaml.YamlError:
        return


def _apps(doc: Document, data: Mapping[str, Any]) -> Iterator[App]:
    group, kind = str(data.get("apiVersion", "")).partition("/")[0], data.get("kind")
    name = str((data.get("metadata") or {}).get("name", ""))
    spec = data.get("spec")
    if not isinstance(spec, Mapping):
        return
    if group == "kustomize.toolkit.fluxcd.io" and kind == "Kustomization":
        where = doc.locate(("spec", "prune"))
        yield App("Flux Kustomization", name, _path(spec.get("path")), spec.get("prune") is True, where)
    elif group == "argoproj.io" and kind in ("Application", "ApplicationSet"):
        at: tuple[str, ...] = ("spec",)
        if kind == "ApplicationSet":
            at, spec = ("spec", "template", "spec"), (spec.get("template") or {}).get("spec") or {}
        sources = spec.get("sources") or [spec.get("source") or {}]
        automated = (spec.get("syncPolicy") or {}).get("automated") or {}
        where = doc.locate((*at, "syncPolicy", "automated", "prune"))
        for source in sources:
            if isinstance(source, Mapping):
                yield App(f"Argo CD {kind}", name, _path(source.get("path")), automated.get("prune") is True, where)


def _path(value: Any) -> str:
    """A folder of the repository; empty for its root and for a template."""
    text = str(value or "")
    return "" if "{{" in text else text.removeprefix("./").strip("/").removeprefix(".")


def check(
    found: Iterable[App], moved: list[Moved], reached: Mapping[str, Collection[str]] | None = None
) -> Iterator[Finding]:
    """What happens at the next sync, one finding for each app. `reached`: kustomization -> files of its jobs."""
    seen: set[tuple[str, str]] = set()
    for app in found:
        files = {f for k, below in (reached or {}).items() if app.covers(k) for f in below}
        mine = [m for m in moved if m.file in files or app.covers(m.file)]
        if not mine or (app.kind, app.name) in seen:
            continue
        seen.add((app.kind, app.name))
        yield from _prune(app, mine)
        yield from _order(app, mine)
    bare = [m for m in moved if any(k.startswith(_ARGO) for k in m.annotations) and not m.kept]
    if bare and not any(kind.startswith("Argo") for kind, _ in seen):
        yield Finding(
            GITOPS_PRUNE,
            Severity.WARNING,
            f"{_names(bare)}: Argo CD applies them, by an Application that is not in this tree. If it prunes, the next "
            "sync deletes the PyTorchJobs, running ones too",
            Location(bare[0].file),
            _ADVICE_ARGO,
        )


_ADVICE_ARGO: Final = (
    "first commit the annotation argocd.argoproj.io/sync-options: Prune=false on the PyTorchJobs and sync; or merge "
    "when they have finished"
)
_ADVICE_FLUX: Final = (
    "first commit the annotation kustomize.toolkit.fluxcd.io/prune: disabled on the PyTorchJobs and reconcile; or "
    "merge when they have finished"
)


def _prune(app: App, mine: list[Moved]) -> Iterator[Finding]:
    lost = [m for m in mine if not m.kept]
    if app.prune and lost:
        yield Finding(
            GITOPS_PRUNE,
            Severity.WARNING,
            f"{app} prunes: when this is merged it deletes the PyTorchJobs {_names(lost)}, running ones too, and "
            "starts their TrainJobs at once",
            app.where,
            _ADVICE_ARGO if app.argo else _ADVICE_FLUX,
        )
    else:
        yield Finding(
            GITOPS_PRUNE,
            Severity.NOTE,
            f"{app} leaves the PyTorchJobs {_names(mine)} in the cluster and creates their TrainJobs beside them",
            app.where,
            "delete the PyTorchJobs when they have finished",
        )


def _order(app: App, mine: list[Moved]) -> Iterator[Finding]:
    with_runtime = [m for m in mine if m.own_runtime]
    if with_runtime and app.argo:
        yield Finding(
            GITOPS_ORDER,
            Severity.NOTE,
            f"the runtimes of {_names(with_runtime)} get a sync-wave before their jobs: {app} would apply a "
            "TrainJob first",
            app.where,
        )
    elif with_runtime:
        yield Finding(
            GITOPS_ORDER,
            Severity.WARNING,
            f"{app} tries all its objects in a dry run before it applies any: the TrainJobs {_names(with_runtime)} are "
            "refused as long as their TrainingRuntimes do not exist",
            app.where,
            "move the TrainingRuntimes into a Flux Kustomization of their own and name it in dependsOn",
        )
    if app.argo:
        yield Finding(
            GITOPS_ORDER,
            Severity.NOTE,
            f"{app}: a TrainJob's spec cannot be changed, so an edit in Git fails the next sync",
            app.where,
            "give each run a new name, or make the job a hook (argocd.argoproj.io/hook: Sync)",
        )


def _names(jobs: list[Moved]) -> str:
    shown = ", ".join(m.name for m in jobs[:5])
    return shown if len(jobs) <= 5 else f"{shown} and {len(jobs) - 5} more"
