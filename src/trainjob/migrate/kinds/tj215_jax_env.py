"""The variables that v1 gave every process of a JAXJob and v2 calls otherwise.

What it does: sets COORDINATOR_ADDRESS (a host, without a port), COORDINATOR_PORT, NUM_PROCESSES, PROCESS_ID and
PYTHONUNBUFFERED beside Trainer's own JAX_COORDINATOR_ADDRESS (host and port), JAX_NUM_PROCESSES and JAX_PROCESS_ID.
Why it matters: v1 set no JAX_*, so a v1 script reads the short names and hands them to `jax.distributed.initialize`.
Without them it fails, or trains in every pod alone. Both sets name the same coordinator, at port 29500.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainjob.emit import MASTER_PORT
from trainjob.findings import Finding
from trainjob.migrate.kinds import shim
from trainjob.migrate.rule import Draft, Rule, Say
from trainjob.v1.pytorchjob import PyTorchJob
from trainjob.v1.traced import derived

_TRAINERS = ("JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID")


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    say = Say("TJ215", job)
    (role,) = draft.roles
    own = [e["name"] for e in role.env if e["name"] in _TRAINERS]
    if own:
        # jobset/builder.go writes trainer.env over what the jax plug-in set.
        yield say.note(
            (*role.main_path, "env"),
            f"{', '.join(own)} of the job wins over Trainer's own, as it did in v1 where nothing else set it",
            "remove it: Trainer sets the same for the number of nodes",
        )
    shim.add(
        draft,
        [
            *shim.name_env(draft),
            {"name": "COORDINATOR_ADDRESS", "value": shim.address(draft, 0)},
            {"name": "COORDINATOR_PORT", "value": str(MASTER_PORT)},
            {"name": "NUM_PROCESSES", "value": derived(str(draft.nodes), draft.nodes)},
            {"name": "PROCESS_ID", "valueFrom": shim.rank_source(draft)},
            shim.UNBUFFERED,
        ],
    )
    yield say.note(
        role.main_path,
        f"trainer.env sets COORDINATOR_ADDRESS, COORDINATOR_PORT, NUM_PROCESSES {draft.nodes}, PROCESS_ID and "
        "PYTHONUNBUFFERED as v1 did; JAX_COORDINATOR_ADDRESS and its kin are Trainer's and say the same",
        "NUM_PROCESSES is a literal: change it together with numNodes, or read the JAX_* names",
    )
    yield from shim.scripts(say, job, draft, [n for n in job.kind.env if n != "PYTHONUNBUFFERED"])


RULE = Rule("TJ215", "jax-env", (), _apply)
