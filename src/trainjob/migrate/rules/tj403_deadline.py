"""activeDeadlineSeconds is carried; at the deadline v2 takes the pods and their logs away.

What it does: `spec.activeDeadlineSeconds` from Trainer 2.2 on, before that the Job's own deadline in
a generated runtime. Why it matters: v1 kept failed pods (cleanPodPolicy None) and let a job run on until
something about it changed (v1.9.4 pytorchjob_controller.go adds the deadline to a queue that nobody reads);
v2 deletes the JobSet in time.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainjob.findings import Finding
from trainjob.migrate.rule import Claim, Draft, Outcome, Rule, Say
from trainjob.v1.pytorchjob import PyTorchJob

_AT = ("spec", "runPolicy", "activeDeadlineSeconds")


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    seconds = job.run_policy.get("activeDeadlineSeconds")
    if seconds is None:
        return
    say = Say("TJ403", job)
    if seconds < 1:
        raise say.refuse(_AT, f"activeDeadlineSeconds is {seconds}; a TrainJob wants at least 1", "remove it or set it")
    draft.active_deadline_seconds = seconds
    yield say.warning(
        _AT,
        f"at the deadline of {seconds} s the pods and their logs are deleted; v1 kept them, and looked at the deadline "
        "only when something else changed",
        "ship the logs elsewhere, or write them to a volume",
    )


RULE = Rule(
    "TJ403",
    "active-deadline",
    (Claim("spec.runPolicy.activeDeadlineSeconds", Outcome.CARRIED, "spec.activeDeadlineSeconds"),),
    _apply,
)
