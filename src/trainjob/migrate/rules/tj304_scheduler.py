"""Scheduler, priority and runtime class are carried in a generated runtime.

What it does: copies them. Why it matters: a TrainJob cannot patch them, and whether the v1 operator
gang-scheduled its pods was a flag of the operator: no manifest shows it.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainjob.findings import Finding
from trainjob.kube.names import QUEUE_LABEL
from trainjob.migrate.rule import POD, Claim, Draft, Outcome, Rule, Say
from trainjob.v1.pytorchjob import PyTorchJob

_FIELDS = (
    "schedulerName", "priorityClassName", "priority", "preemptionPolicy", "runtimeClassName", "overhead",
    "schedulingGroup",
)  # fmt: skip


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    say = Say("TJ304", job)
    for role in draft.roles:
        for key in _FIELDS:
            value = role.pod.get(key)
            if value in (None, "") or (key == "schedulerName" and value == "default-scheduler"):
                continue
            role.spec[key] = value
            yield say.note(role.at(key), f"{key} {value} needs a generated runtime")
            if key == "schedulerName":
                yield say.warning(
                    role.at(key),
                    f"does {value} schedule these pods as a gang? In v1 a flag of the operator made the PodGroup; "
                    "the file cannot show it, so no podGroupPolicy is set",
                    "if it did, add spec.podGroupPolicy (volcano or coscheduling) to the generated runtime",
                )
            if key == "priorityClassName" and QUEUE_LABEL in draft.labels:
                yield say.note(
                    role.at(key), "in a Kueue queue the label kueue.x-k8s.io/priority-class on the TrainJob decides"
                )


RULE = Rule(
    "TJ304",
    "scheduler",
    tuple(Claim(f"{POD}.{f}", Outcome.TRANSLATED, f"TrainingRuntime {f}") for f in _FIELDS),
    _apply,
)
