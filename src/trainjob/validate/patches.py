"""Checks of what a TrainJob patches: names that exist, and what a patch may say.

kubeflow/trainer pkg/runtime/framework/plugins/jobset/jobset.go (v2.0.1 to v2.3.0). The webhook
looks for unknown names too, but in the runtime after the patches are merged into it, where every
container of a patch exists (in 2.3 every job too): it lets them pass, and the Job without image or
without containers is refused later. These checks look into the runtime itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from trainjob.findings import Finding
from trainjob.kube.names import is_subdomain
from trainjob.kube.schema import Path
from trainjob.validate.case import Case
from trainjob.validate.view import DATASET, MODEL, NODE, Job, PodPatch, entries, text

KUEUE_MANAGER: Final = "kueue.x-k8s.io/manager"
# k8s.io/apimachinery v0.34 pkg/util/validation/validation.go, IsDomainPrefixedPath
_URL_PATH: Final = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+\Z")
_NO_ENV: Final = (DATASET, MODEL, NODE)


def check_managers(case: Case) -> Iterator[Finding]:
    """TJ540, TJ541: who a runtimePatch says it is from."""
    for index, patch in entries(case.obj, "spec", "runtimePatches"):
        manager = patch.get("manager")
        if case.target.patches != "runtimePatches" or not isinstance(manager, str) or not manager:
            continue
        path: Path = ("spec", "runtimePatches", index, "manager")
        domain, _, rest = manager.partition("/")
        if not domain or not rest or not is_subdomain(domain) or not _URL_PATH.match(rest):
            yield case.find(
                "TJ540", path, 'must be a domain-prefixed path (such as "acme.io/foo")',
                "write a domain that you own, a slash and a name",
            )  # fmt: skip
        elif manager == KUEUE_MANAGER:
            yield case.find(
                "TJ541", path, f"{KUEUE_MANAGER} is Kueue's own entry, and Kueue adds a second one",
                "remove the entry before you submit an exported TrainJob again",
            )  # fmt: skip


def check_patch_names(case: Case) -> Iterator[Finding]:
    """TJ542 to TJ544: jobs and containers that the runtime does not have."""
    if case.runtime is None:
        return
    by_name = {job.name: job for job in case.jobs}
    for patch in case.patches:
        job = by_name.get(patch.job)
        if job is None:
            yield case.find(
                "TJ542", patch.job_path, f'the runtime has no job "{patch.job}"',
                f"it has: {', '.join(by_name) or 'no job at all'}",
            )  # fmt: skip
        else:
            yield from _containers(case, patch, job)


def _containers(case: Case, patch: PodPatch, job: Job) -> Iterator[Finding]:
    regular, init = job.containers(), job.containers("initContainers")
    for field, mine, other in (("containers", regular, init), ("initContainers", init, regular)):
        kind = "container" if field == "containers" else "init container"
        for index, container in entries(patch.pod, field):
            name = text(container.get("name"))
            path = (*patch.pod_path, field, index, "name")
            if name not in mine and name in other:
                right = "containers" if field == "initContainers" else "initContainers"
                told = f'"{name}" is in {right} of the runtime: this adds a {kind} without image'
                yield case.find("TJ544", path, told, f"move the entry to {right}")
            elif name not in mine:
                yield case.find(
                    "TJ543", path, f'job {job.name} of the runtime has no {kind} "{name}"',
                    f"a patch cannot add one; there is: {', '.join(sorted(mine)) or 'none'}",
                )  # fmt: skip


def check_patch_env(case: Case) -> Iterator[Finding]:
    """TJ545: variables of the main containers belong in spec.trainer and spec.initializer."""
    for patch in case.patches:
        for index, container in entries(patch.pod, "containers"):
            if container.get("name") in _NO_ENV and container.get("env"):
                name = text(container["name"])
                place = "spec.trainer.env" if name == NODE else f"spec.initializer.{name.split('-')[0]}.env"
                yield case.find(
                    "TJ545", (*patch.pod_path, "containers", index, "env"),
                    f"must not have envs for the {DATASET}, {MODEL}, {NODE} containers",
                    f"move the variables to {place}",
                )  # fmt: skip


def check_patched_once(case: Case) -> Iterator[Finding]:
    """TJ547: in Trainer 2.0 a job may be the target of one podSpecOverride only."""
    if case.target.patches != "podSpecOverrides":
        return
    seen: set[str] = set()
    for patch in case.patches:
        if patch.job in seen:
            yield case.find(
                "TJ547", patch.job_path, f'Duplicate value: "{patch.job}" is the target of two overrides',
                "put everything for one job into one override",
            )  # fmt: skip
        seen.add(patch.job)


def check_tolerations(case: Case) -> Iterator[Finding]:
    """TJ548: the list is atomic, so a patch drops what the runtime tolerates."""
    if case.runtime is None:
        return
    by_name = {job.name: job for job in case.jobs}
    for patch in case.patches:
        job = by_name.get(patch.job)
        new = patch.pod.get("tolerations")
        if job is None or not isinstance(new, list) or not new:
            continue
        lost = [t for _, t in entries(job.pod, "tolerations") if t not in new]
        if lost:
            names = ", ".join(text(t.get("key")) or "everything" for t in lost)
            yield case.find(
                "TJ548", (*patch.pod_path, "tolerations"),
                f"the patch replaces the tolerations of the runtime; lost: {names}",
                "repeat the runtime's tolerations in the patch",
            )  # fmt: skip
