"""managedBy: MultiKueue stays, the v1 operator's own name is left out.

What it does: carries `kueue.x-k8s.io/multikueue`, drops `kubeflow.org/training-operator`.
Why it matters: another value makes Trainer ignore the job without a word.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainjob.findings import Finding
from trainjob.migrate.rule import Claim, Draft, Outcome, Rule, Say
from trainjob.v1.pytorchjob import PyTorchJob

MULTIKUEUE = "kueue.x-k8s.io/multikueue"
_AT = ("spec", "runPolicy", "managedBy")


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    manager = job.run_policy.get("managedBy")
    if not manager:
        return
    say = Say("TJ407", job)
    if manager == MULTIKUEUE:
        draft.managed_by = manager
        yield say.warning(
            _AT,
            "MultiKueue copies the TrainJob to a worker cluster, not its runtime",
            "install the runtime under the same name on every worker cluster",
        )
    elif manager == "kubeflow.org/training-operator":
        yield say.note(_AT, f"managedBy {manager} is left out: Trainer is the default")
    else:
        raise say.refuse(_AT, f"v1 knows no managedBy {manager!r}", f"use {MULTIKUEUE} or remove it")


RULE = Rule("TJ407", "managed-by", (Claim("spec.runPolicy.managedBy", Outcome.TRANSLATED, "spec.managedBy"),), _apply)
