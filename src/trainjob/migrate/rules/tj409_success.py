"""When the job has succeeded: v1 asked the Master, v2 asks every pod.

What it does: says so where there are Workers beside a Master; a runtime with two jobs keeps v1's rule.
Why it matters: a Worker that waits for a finished Master for ever, or fails after it, was never
noticed in v1 and keeps the TrainJob running, or fails it.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainjob.findings import Finding
from trainjob.migrate.rule import Draft, Rule, Say
from trainjob.v1.pytorchjob import PyTorchJob


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    if len(job.roles) == 2 and not draft.two_roles:
        yield Say("TJ409", job).note(
            (*job.kind.path, "Master"),
            f"success: v1 was done when the Master was, v2 when all {draft.nodes} pods are",
            "make sure that every process ends by itself",
        )


RULE = Rule("TJ409", "success-rule", (), _apply)
