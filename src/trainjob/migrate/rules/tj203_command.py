"""Command and args are carried word by word, and read for what they need from v1.

What it does: recognises the launcher (torchrun, torch.distributed.run, accelerate, deepspeed, python,
a shell, the image's entrypoint), keeps the command, and says what its flags mean in v2.
Why it matters: flags of torchrun win over PET_*, so `--nnodes=3` fixes the size for good; a deepspeed
launcher with a hostfile needs ssh, which neither version gives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainjob.findings import Finding
from trainjob.migrate.launch import Launch, Style, classify
from trainjob.migrate.rule import CONTAINER, Claim, Draft, Outcome, RoleDraft, Rule, Say
from trainjob.v1.kinds import MPI, PYTORCH
from trainjob.v1.pytorchjob import PyTorchJob

_FIXED_ADDRESS = re.compile(
    r"(?:tcp://|(?:addr|address|endpoint|host|ip)[= \n]\s*\"?)((?:\d{1,3}\.){3}\d{1,3}(?::\d+)?)"
)


_ADDRESS = {
    "PyTorchJob": "$MASTER_ADDR and $MASTER_PORT",
    "XGBoostJob": "$MASTER_ADDR and $MASTER_PORT",
    "JAXJob": "$COORDINATOR_ADDRESS and $COORDINATOR_PORT",
}


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    say = Say("TJ203", job)
    for role in draft.roles:
        main, at = role.main, role.main_path
        role.command = list(main["command"]) if main.get("command") else None
        role.args = list(main["args"]) if main.get("args") else None
        for key, words in (("command", role.command), ("args", role.args)):
            if words is not None and len(words) > 128:
                raise say.refuse((*at, key), f"{len(words)} items; a TrainJob takes 128", "use a script or `sh -c`")
        launch = classify(role.command, role.args)
        place = (*at, "command") if role.command else ((*at, "args") if role.args else at)
        if launch.style is Style.DEEPSPEED and job.kind is not MPI and (draft.nodes > 1 or "hostfile" in launch.flags):
            raise say.refuse(
                place,
                "the deepspeed launcher starts its processes on other pods through ssh and a hostfile; a torch "
                "TrainJob has neither, and Workers that only sleep would keep it running for ever",
                "use an MPI runtime (deepspeed-distributed), or start the script with torchrun on every node",
            )
        match = launch.rank_from_hostname
        if match:
            raise say.refuse(
                place,
                f"the rank is taken from the host name ({match[0].strip()!r}): v1 hosts are <job>-worker-<i>, v2 hosts "
                "<job>-node-0-<rank> without `worker` and without the shift by one, so the same text gives other ranks",
                f"use ${job.kind.rank} (set by {'mpirun' if job.kind is MPI else 'this migration'})"
                + (" or $PET_NODE_RANK" if job.kind is PYTORCH else ""),
            )
        if job.kind is PYTORCH:
            yield from _flags(say, job, draft, role, launch)
        address = _FIXED_ADDRESS.search(launch.text) if draft.nodes > 1 else None
        if address:
            yield say.warning(
                place,
                f"the rendezvous is at the fixed address {address[1]}: it is kept, and rank 0 must run on that node",
                f"use {_ADDRESS.get(job.kind.name, 'the variables of v1')}, which follow rank 0",
            )
        if launch.style is Style.ENTRYPOINT and draft.nodes > 1 and job.kind is not MPI:
            yield say.note(
                at,
                "the image's entrypoint starts the training: it gets the v1 variables, but what it does with them "
                "cannot be seen from here",
            )
        gpus = main.get("resources", {}).get("limits", {})
        if (
            job.kind is PYTORCH
            and launch.style is Style.PYTHON
            and any("gpu" in k.lower() and str(v) not in ("0", "1") for k, v in gpus.items())
        ):
            yield say.note(
                place,
                "plain python is one process per pod, as in v1; it does not become torchrun, which would start one "
                "process per GPU and multiply the batch",
            )


def _flags(say: Say, job: PyTorchJob, draft: Draft, role: RoleDraft, launch: Launch) -> Iterator[Finding]:
    at = (*role.main_path, "command") if role.command else (*role.main_path, "args")
    if not launch.style.torch:
        if re.search(r"--(nnodes|nproc[_-]per[_-]node)\b", launch.text):
            yield say.note(
                at, "--nnodes and --nproc_per_node here belong to the script, not to torchrun: kept as they are"
            )
        return
    nnodes = launch.literal("nnodes")
    if nnodes is not None:
        text = f"--nnodes={nnodes} is kept: flags win over PET_NNODES, so a later change of numNodes has no effect"
        if nnodes == draft.nodes:
            yield say.warning(at, text, "remove --nnodes: PET_NNODES says the same")
        else:
            yield say.warning(
                at,
                f"--nnodes={nnodes} does not fit the {draft.nodes} pods of this job (it did not in v1 either)",
                "remove --nnodes, or correct the replicas",
            )
    if re.search(r"--nnodes[= ]\"?\$\{?WORLD_SIZE", launch.text) and draft.world_size != draft.nodes:
        yield say.warning(
            at,
            f"--nnodes=$WORLD_SIZE is {draft.world_size} here, with {draft.nodes} pods: torchrun waits for nodes that "
            "never come (in v1 too)",
            "use $PET_NNODES",
        )
    if launch.shell is False and not launch.bare and launch.style.torch and not launch.reads_rank_env:
        yield say.warning(
            at,
            "torchrun is started by another program: what that program reads from v1's env cannot be seen, so the "
            "v1 variables are set",
        )
    given = any(f.startswith(("rdzv", "master-addr", "node-rank", "standalone")) for f in launch.flags)
    if "Master" not in job.roles and job.elastic is None and draft.nodes > 1 and not given:
        yield say.note(
            at,
            "without a Master v1 set no address and no rank, so torchrun had no rendezvous: each pod trained alone. "
            "v2 sets both, and the pods now train together",
        )


RULE = Rule(
    "TJ203",
    "command",
    (
        Claim(f"{CONTAINER}.command", Outcome.CARRIED, "spec.trainer.command"),
        Claim(f"{CONTAINER}.args", Outcome.CARRIED, "spec.trainer.args"),
    ),
    _apply,
)
