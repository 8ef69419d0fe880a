"""ttlSecondsAfterFinished is never mapped: JobSet's TTL makes Trainer run the job again.

What it does: drops it and keeps the number in an annotation for a janitor.
Why it matters: the TTL of JobSet deletes only the JobSet. Trainer 2.3.0 then runs a failed TrainJob
again, Trainer 2.1 a finished one too (kubeflow/trainer#3779, #2981).
"""

from __future__ import annotations

from collections.abc import Iterator

from trainjob.findings import Finding
from trainjob.migrate.rule import Claim, Draft, Outcome, Rule, Say
from trainjob.v1.pytorchjob import PyTorchJob
from trainjob.v1.traced import derived

ANNOTATION = "trainjob.dev/v1-ttl-seconds-after-finished"


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    ttl = job.run_policy.get("ttlSecondsAfterFinished")
    if ttl is None:
        return
    draft.annotations[ANNOTATION] = derived(str(ttl), ttl)
    yield Say("TJ405", job).warning(
        ("spec", "runPolicy", "ttlSecondsAfterFinished"),
        f"ttlSecondsAfterFinished {ttl} is not carried: a TTL on the JobSet would run a failed TrainJob again",
        f"delete finished TrainJobs with a janitor; the annotation {ANNOTATION} keeps the number",
    )


RULE = Rule(
    "TJ405",
    "ttl-after-finished",
    (Claim("spec.runPolicy.ttlSecondsAfterFinished", Outcome.DROPPED, f"annotation {ANNOTATION}"),),
    _apply,
)
