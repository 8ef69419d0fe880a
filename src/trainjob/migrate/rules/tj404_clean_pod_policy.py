"""cleanPodPolicy has no counterpart; JobSet does about what `Running` did.

What it does: drops it and says the difference. Why it matters: with `All` the finished pods used to
vanish; now they stay until the TrainJob is deleted, which keeps their logs and their PVC mounts.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainjob.findings import Finding
from trainjob.migrate.rule import Claim, Draft, Outcome, Rule, Say
from trainjob.v1.pytorchjob import PyTorchJob

_AT = ("spec", "runPolicy", "cleanPodPolicy")


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:  # noqa: ARG001
    policy = job.run_policy.get("cleanPodPolicy")
    if not policy:
        return
    say = Say("TJ404", job)
    if policy == "All":
        yield say.warning(
            _AT,
            "cleanPodPolicy All is dropped: finished pods stay until the TrainJob is deleted",
            "delete finished TrainJobs with a janitor",
        )
    elif policy == "None":
        yield say.note(
            _AT, "cleanPodPolicy None: finished pods stay as in v1; pods that still run when the job ends are deleted"
        )
    else:
        yield say.note(
            _AT, f"cleanPodPolicy {policy}: JobSet does this by itself: it deletes what still runs at the end"
        )


RULE = Rule("TJ404", "clean-pod-policy", (Claim("spec.runPolicy.cleanPodPolicy", Outcome.DROPPED),), _apply)
