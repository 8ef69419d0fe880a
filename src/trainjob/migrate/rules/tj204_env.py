"""The user's env is carried; what v1 overwrote is dropped, what v2 reserves is handled.

What it does: keeps the last of duplicate names, drops values that the v1 operator overwrote
(RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, PYTHONUNBUFFERED, PET_*), rewrites field references.
Why it matters: the v2 CRD refuses duplicate names, and the torch plug-in refuses its five PET_* names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from trainjob.emit import RANK_ANNOTATION
from trainjob.findings import Finding
from trainjob.kube.yaml import Path
from trainjob.migrate.roles import operator_env
from trainjob.migrate.rule import CONTAINER, Claim, Draft, Outcome, Rule, Say
from trainjob.v1.kinds import MPI, PYTORCH, Kind
from trainjob.v1.pytorchjob import OPERATOR_PET_ENV, PyTorchJob
from trainjob.v1.traced import derived

# XGBoostJob: for LightGBM, where there is more than one pod.
_ONLY_WITH_WORKERS = ("WORKER_PORT", "WORKER_ADDRS")
# Kubernetes reads `$$(NAME)` as the text `$(NAME)`.
_OPERATOR_REFERENCE = re.compile(r"(?<!\$)(?:\$\$)*\$\((\w+)\)")
# What torch-v1-compat sets (runtimes/torch-v1-compat.yaml), before the TrainJob's own env.
_SET_BEFORE = (
    "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT", "PET_NNODES",
    "PYTHONUNBUFFERED",
)  # fmt: skip
_V1_LABEL = re.compile(r"metadata\.labels\['training\.kubeflow\.org/([a-z-]+)'\]")


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    say = Say("TJ204", job)
    for role in draft.roles:
        at = (*role.main_path, "env")
        yield from translate(
            say, role.main.get("env") or [], at, role.env, job, two_roles=draft.two_roles and job.kind is not MPI
        )
        if len(role.env) > 120:
            raise say.refuse(at, f"{len(role.env)} variables; a TrainJob takes 128", "use envFrom with a ConfigMap")


def translate(
    say: Say, env: list[Any], at: Path, out: list[dict[str, Any]], job: PyTorchJob, *, two_roles: bool
) -> Iterator[Finding]:
    """Append the v2 form of an env list to `out`; also used for sidecars."""
    last = {e.get("name"): i for i, e in enumerate(env)}
    overwritten: list[str] = []
    for i, entry in enumerate(env):
        name = entry.get("name")
        here = (*at, i)
        if not name:
            raise say.refuse(here, "an env entry without a name", "give it a name or remove it")
        if last[name] != i:
            yield say.warning(here, f"{name} is set twice; the last one wins, as in v1", "remove this one")
            continue
        if name in operator_env(job.kind) and _operator_sets(name, job):
            overwritten.append(name)
            continue
        if name in OPERATOR_PET_ENV and job.kind is PYTORCH:
            yield say.warning(here, f"{name} is reserved in v2 and set by Trainer: the value given here is dropped")
            continue
        entry = _value_from(entry)
        yield from _field_ref(say, entry, here, job.kind, two_roles=two_roles)
        if entry.get("value") == "":
            entry = {k: v for k, v in entry.items() if k != "value"}
            yield say.note(
                (*here, "value"),
                f'{name} is written without a value: still set, to the empty text. An explicit `value: ""` '
                "would keep a queued job suspended for ever (kubeflow/trainer#3888)",
            )
        if entry.get("value") == job.kind.container and entry.get("value"):
            yield say.warning(
                (*here, "value"),
                f"{name} names the container {job.kind.container!r}; the training container is called `node` now",
                "change the value if it means the container",
            )
        out.append(entry)
        if not two_roles and job.kind is PYTORCH:
            yield from _reference(say, entry, here)
    if overwritten:
        yield say.note(
            at,
            f"{', '.join(overwritten)}: dropped, because the v1 operator overwrote "
            f"{'it' if len(overwritten) == 1 else 'them'}; v2's own values stand there now",
        )


def _reference(say: Say, entry: dict[str, Any], here: Path) -> Iterator[Finding]:
    """v1 set its variables after the user's, so `$(RANK)` in a value stayed text; the runtime sets them before."""
    named = [name for name in _OPERATOR_REFERENCE.findall(str(entry.get("value") or "")) if name in _SET_BEFORE]
    if named:
        yield say.note(
            (*here, "value"),
            f"$({named[0]}) in {entry['name']} stayed text in v1, whose variables stood after the user's; v2 fills it "
            "in",
            f"write $$({named[0]}) to keep the text",
        )


def _operator_sets(name: str, job: PyTorchJob) -> bool:
    """Did the v1 operator set this variable for this job (envvar.go)? Then the user's value never won."""
    if job.kind is not PYTORCH:
        return name not in _ONLY_WITH_WORKERS or "Worker" in job.roles
    if name in ("PYTHONUNBUFFERED", "PET_NPROC_PER_NODE", "PET_NNODES"):
        return True
    return "Master" in job.roles


def _value_from(entry: dict[str, Any]) -> dict[str, Any]:
    """A copy without the field reference's apiVersion, which Trainer's apply conversion drops."""
    source = entry.get("valueFrom")
    if not source:
        return {k: v for k, v in entry.items() if k != "valueFrom"}
    source = {k: dict(v) if isinstance(v, dict) else v for k, v in source.items()}
    if "fieldRef" in source:
        source["fieldRef"].pop("apiVersion", None)
    return {**entry, "valueFrom": source}


def _field_ref(say: Say, entry: dict[str, Any], here: Path, kind: Kind, *, two_roles: bool) -> Iterator[Finding]:
    source = entry.get("valueFrom") or {}
    if source.get("resourceFieldRef", {}).get("containerName") == kind.container:
        source["resourceFieldRef"]["containerName"] = derived("node", source["resourceFieldRef"]["containerName"])
    if "fileKeyRef" in source:
        raise say.refuse((*here, "valueFrom", "fileKeyRef"), "Trainer drops fileKeyRef", "use a ConfigMap key")
    was = source.get("fieldRef", {}).get("fieldPath", "")
    match = _V1_LABEL.match(was)
    if not match:
        return
    label, place = match[1], (*here, "valueFrom", "fieldRef", "fieldPath")
    if label == "job-name":
        source["fieldRef"]["fieldPath"] = derived("metadata.labels['jobset.sigs.k8s.io/jobset-name']", was)
        yield say.note(place, "the v1 label job-name becomes jobset.sigs.k8s.io/jobset-name")
    elif label == "replica-index":
        source["fieldRef"]["fieldPath"] = derived(RANK_ANNOTATION if not two_roles else _JOB_INDEX, was)
        if "Master" not in kind.roles:
            yield say.note(place, "the v1 label replica-index becomes the completion index, which is the same number")
            return
        yield say.warning(
            place,
            "the v1 label replica-index becomes the completion index; with a Master, Worker i is index i+1 now",
            "check what the program does with the number",
        )
    else:
        raise say.refuse(place, f"pods have no label {match[0]} in v2, and nothing that says the same", "remove it")


_JOB_INDEX = "metadata.labels['jobset.sigs.k8s.io/job-index']"

RULE = Rule("TJ204", "env", (Claim(f"{CONTAINER}.env", Outcome.CARRIED, "spec.trainer.env"),), _apply)
