"""The kind of the v1 job decides the mlPolicy of its runtime, and whether the target has it.

What it does: JAXJob gets `jax: {}`, XGBoostJob `xgboost: {}`, MPIJob `mpi`, in a runtime that is generated for the job;
a target without that policy refuses the job.
Why it matters: the jax and xgboost policies came with Trainer 2.2; an older server drops the field without a word, and
every process would train alone. There is no runtime of these kinds in the catalogue.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trainjob.findings import Finding
from trainjob.intent import Policy
from trainjob.migrate.rule import Draft, Rule, Say
from trainjob.targets import TARGETS
from trainjob.v1.pytorchjob import PyTorchJob

POLICIES: Final = {"JAXJob": Policy.JAX, "XGBoostJob": Policy.XGBOOST, "MPIJob": Policy.MPI}


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    policy = POLICIES[job.kind.name]
    if policy.value not in draft.target.policies:
        able = next(t for t in TARGETS if policy.value in t.policies)
        aliases = f" (OpenShift AI: {', '.join(TARGETS[-1].aliases)})"
        raise Say("TJ110", job).refuse(
            ("kind",),
            f"Trainer {draft.target} has no mlPolicy.{policy.value}, so nothing tells the pods of {job.kind.one} "
            "about each other",
            f"migrate with --target {able} or later{aliases}; until the server is that new, leave the job with the v1 "
            f"operator, or write a runtime without a policy whose env sets {', '.join(job.kind.env)} by hand",
        )
    draft.policy = policy
    yield from ()


RULE = Rule("TJ110", "policy-of-kind", (), _apply)
