"""runPolicy.backoffLimit becomes the Job's backoffLimit in a generated runtime.

What it does: carries the number. Why it matters: both count container restarts of the whole job; a
TrainJob has no such field. Replicas with restartPolicy Never were not counted in v1.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainjob.findings import Finding
from trainjob.intent import Failure
from trainjob.migrate.rule import Claim, Draft, Outcome, Rule, Say
from trainjob.v1.pytorchjob import PyTorchJob

_AT = ("spec", "runPolicy", "backoffLimit")


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    limit = job.run_policy.get("backoffLimit")
    if limit is None:
        return
    say = Say("TJ402", job)
    if draft.failure is Failure.NEVER:
        yield say.note(_AT, f"backoffLimit {limit} had no effect beside restartPolicy Never; 0 is set")
        return
    draft.backoff_limit = limit
    yield say.note(_AT, f"backoffLimit {limit} needs a generated runtime")


RULE = Rule(
    "TJ402",
    "backoff-limit",
    (Claim("spec.runPolicy.backoffLimit", Outcome.TRANSLATED, "TrainingRuntime Job backoffLimit"),),
    _apply,
)
