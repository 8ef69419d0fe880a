"""The variables that v1 gave every process and v2 does not.

What it does: sets MASTER_ADDR, MASTER_PORT, WORLD_SIZE, RANK and PYTHONUNBUFFERED with v1's numbers,
unless the container's first program is torchrun itself, which sets them for its processes.
Why it matters: v2 sets PET_* only. `python train.py` fails without RANK, and a script that asks
`WORLD_SIZE > 1` trains on every node alone and exits with 0: nothing would tell you.
Formula: WORLD_SIZE = pods x nprocPerNode if that is an integer, else pods (v1.9.4 envvar.go).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trainjob.emit import GLOBAL_INDEX, MASTER_PORT, NODE, RANK_ANNOTATION
from trainjob.findings import Finding
from trainjob.migrate.launch import Style, classify, reads_v1_env
from trainjob.migrate.rule import Draft, RoleDraft, Rule, Say
from trainjob.v1.pytorchjob import PyTorchJob
from trainjob.v1.traced import derived

_UNBUFFERED = {"name": "PYTHONUNBUFFERED", "value": "1"}


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    say = Say("TJ206", job)
    shim = rendezvous_env(draft)
    for role in draft.roles:
        launch = classify(role.command, role.args)
        bare = launch.bare and not draft.two_roles
        names = {e["name"] for e in role.env}
        for entry in [_UNBUFFERED] if bare else shim:
            if entry["name"] not in names:
                role.env.append(dict(entry))
        yield from _rendezvous(say, draft, role)
        if bare:
            continue
        if draft.name is None:
            message = "the runtime torch-v1-compat sets"
        else:
            message = "trainer.env sets" if not draft.two_roles else "both jobs of the runtime set"
        why = _why(launch.style, shell=launch.shell)
        yield say.note(
            role.main_path,
            f"{message} MASTER_ADDR, MASTER_PORT, WORLD_SIZE {draft.world_size}, RANK and PYTHONUNBUFFERED as v1 did: "
            f"{why}",
            "" if draft.name is None else "WORLD_SIZE is a literal: change it together with numNodes",
        )
        yield from _python_traps(say, role, launch.style, job)
    yield from _scripts(say, job, draft)


def _rendezvous(say: Say, draft: Draft, role: RoleDraft) -> Iterator[Finding]:
    """elasticPolicy's own variables. v1 set them after the user's, so they win."""
    mine = {e["name"] for e in draft.rendezvous}
    lost = [e["name"] for e in role.env if e["name"] in mine]
    if lost:
        role.env = [e for e in role.env if e["name"] not in mine]
        yield say.note(
            (*role.main_path, "env"), f"{', '.join(lost)}: dropped, because v1 set the values of elasticPolicy over it"
        )
    role.env += [dict(e) for e in draft.rendezvous]


def rendezvous_env(draft: Draft) -> list[dict[str, Any]]:
    """The shim as env entries; without a name only what the v1-compat runtime cannot know."""
    world_size = derived(str(draft.world_size), draft.world_size)
    if draft.name is None:
        if draft.world_size != draft.nodes:
            return [{"name": "WORLD_SIZE", "value": world_size}]
        return []
    address = derived(f"{draft.name}-{NODE}-0-0.{draft.name}", draft.name)
    rank = GLOBAL_INDEX if draft.two_roles else RANK_ANNOTATION
    rank_source = {"fieldRef": {"fieldPath": rank}}
    out: list[dict[str, Any]] = [
        {"name": "MASTER_ADDR", "value": address},
        {"name": "MASTER_PORT", "value": str(MASTER_PORT)},
        {"name": "WORLD_SIZE", "value": world_size},
        {"name": "RANK", "valueFrom": rank_source},
        _UNBUFFERED,
    ]
    if draft.two_roles:  # without the torch policy nobody else sets them
        nproc = draft.procs_per_node if draft.procs_per_node is not None else "auto"
        out += [
            {"name": "PET_MASTER_ADDR", "value": address},
            {"name": "PET_MASTER_PORT", "value": str(MASTER_PORT)},
            {"name": "PET_NNODES", "value": derived(str(draft.nodes), draft.nodes)},
            {"name": "PET_NPROC_PER_NODE", "value": derived(str(nproc), nproc)},
            {"name": "PET_NODE_RANK", "valueFrom": rank_source},
        ]
    return out


def _why(style: Style, *, shell: bool) -> str:
    if style is Style.ENTRYPOINT:
        return "the image's entrypoint may read them"
    if style.torch:
        return "the command uses them, or may; torchrun overrides them for its own processes"
    if style is Style.ACCELERATE:
        return "without RANK accelerate trains on each node alone"
    return "a shell script may read them" if shell and style is Style.OTHER else "the program reads its rank from them"


def _python_traps(say: Say, role: RoleDraft, style: Style, job: PyTorchJob) -> Iterator[Finding]:
    if "Master" in job.roles or job.elastic is not None or style is not Style.PYTHON:
        return
    yield say.note(
        role.main_path,
        "without a Master v1 set no RANK, WORLD_SIZE and MASTER_ADDR; now they are set, so a script that asks for "
        "them trains together with the other pods",
    )


def _scripts(say: Say, job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    """Scripts that come from a ConfigMap of the same stream."""
    for role in draft.roles:
        for i, volume in enumerate(role.pod.get("volumes") or ()):
            name = (volume.get("configMap") or {}).get("name")
            for key, text in sorted(job.scripts.get(str(name), {}).items()):
                at = role.at("volumes", i)
                if reads_v1_env(text):
                    yield say.note(at, f"{key} in ConfigMap {name} reads the v1 variables; they are set")
                elif "PET_" in text:
                    yield say.note(at, f"{key} in ConfigMap {name} reads PET_*, which v2 sets under the same names")
                if job.name and (f"{job.name}-master-" in text or f"{job.name}-worker-" in text):
                    yield say.warning(
                        at,
                        f"{key} in ConfigMap {name} holds a v1 host name of this job; the ConfigMap is not changed",
                        f"use $MASTER_ADDR, or {job.name}-node-0-0.{job.name}",
                    )


RULE = Rule("TJ206", "rendezvous-env", (), _apply)
