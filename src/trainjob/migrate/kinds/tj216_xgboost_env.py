"""The variables that v1 gave every process of an XGBoostJob and v2 does not.

What it does: sets MASTER_ADDR, MASTER_PORT, WORLD_SIZE, RANK, PYTHONUNBUFFERED and, with Workers, WORKER_PORT and
WORKER_ADDRS (for LightGBM), with v1's numbers; refuses DMLC_* names in the job's env, which Trainer reserves.
Why it matters: v1 gave no DMLC_*, so a v1 script starts its own tracker on rank 0 from MASTER_ADDR and WORLD_SIZE.
Trainer starts no tracker either; it only sets DMLC_TRACKER_URI, DMLC_TRACKER_PORT, DMLC_TASK_ID and DMLC_NUM_WORKER.
Formula: WORLD_SIZE = pods; RANK = 0 for the Master, i + 1 for Worker i (v1.9.4 xgboost.go).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trainjob.emit import MASTER_PORT
from trainjob.findings import Finding
from trainjob.migrate.kinds import shim
from trainjob.migrate.rule import Draft, Rule, Say
from trainjob.v1.pytorchjob import PyTorchJob
from trainjob.v1.traced import derived

# kubeflow/trainer v2.3.0 pkg/constants/constants.go, XGBoostReservedEnvNames.
_RESERVED = ("DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER")


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    say = Say("TJ216", job)
    for role in draft.roles:
        taken = [e["name"] for e in role.env if e["name"] in _RESERVED]
        if taken and not draft.two_roles:
            raise say.refuse(
                (*role.main_path, "env"),
                f"the job sets {', '.join(taken)}; the xgboost policy reserves these names and sets its own values "
                "(DMLC_NUM_WORKER is nodes x GPUs there)",
                "set them in the script, from MASTER_ADDR, RANK and WORLD_SIZE, and remove them from env",
            )
    shim.add(draft, list(_shim(draft)))
    place = draft.roles[0].main_path
    yield say.note(
        place,
        f"{'both jobs of the runtime set' if draft.two_roles else 'trainer.env sets'} MASTER_ADDR, MASTER_PORT, "
        f"WORLD_SIZE {draft.nodes}, RANK"
        + (", WORKER_ADDRS, WORKER_PORT" if draft.nodes > 1 else "")
        + " and PYTHONUNBUFFERED as v1 did, for a script that starts its own tracker or LightGBM",
        "WORLD_SIZE is a literal: change it together with numNodes",
    )
    if not draft.two_roles:
        yield say.note(
            place,
            "Trainer sets DMLC_* too, which v1 did not: a script that calls the collective without arguments of its "
            "own now looks for a tracker on rank 0",
            "hand the tracker's address to the collective, as v1 needed it",
        )
    yield from shim.scripts(say, job, draft, [n for n in job.kind.env if n != "PYTHONUNBUFFERED"])


def _shim(draft: Draft) -> Iterator[dict[str, Any]]:
    yield from shim.name_env(draft)
    yield {"name": "MASTER_ADDR", "value": shim.address(draft, 0)}
    yield {"name": "MASTER_PORT", "value": str(MASTER_PORT)}
    yield {"name": "WORLD_SIZE", "value": derived(str(draft.nodes), draft.nodes)}
    yield {"name": "RANK", "valueFrom": shim.rank_source(draft)}
    yield shim.UNBUFFERED
    if draft.nodes > 1:
        workers = ",".join(shim.address(draft, rank) for rank in range(1, draft.nodes))
        yield {"name": "WORKER_PORT", "value": str(MASTER_PORT)}
        yield {"name": "WORKER_ADDRS", "value": derived(workers, draft.name, draft.nodes)}


RULE = Rule("TJ216", "xgboost-env", (), _apply)
