"""schedulingPolicy is dropped: v2's gang is always the whole job.

What it does: reports each value. Why it matters: minAvailable and minResources have no counterpart;
the policy was read only by an operator started with `--gang-scheduler-name`, which no file shows, and
its priorityClass by Kueue too.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainjob.findings import Finding
from trainjob.kube.names import QUEUE_LABEL
from trainjob.migrate.rule import Claim, Draft, Outcome, Rule, Say
from trainjob.v1.pytorchjob import PyTorchJob

_AT = ("spec", "runPolicy", "schedulingPolicy")
_WHERE = {
    "minAvailable": "a gang of v2 is all pods",
    "minResources": "a gang of v2 is all pods, with what they request",
    "queue": "for Volcano set the annotation scheduling.volcano.sh/queue-name in the runtime's template.metadata; "
    "for Kueue the label kueue.x-k8s.io/queue-name on the TrainJob",
    "priorityClass": "set priorityClassName in the pod template, or Kueue's priority label",
    "scheduleTimeoutSeconds": "set podGroupPolicy.coscheduling.scheduleTimeoutSeconds in the runtime",
}


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    say = Say("TJ408", job)
    for key, value in (job.run_policy.get("schedulingPolicy") or {}).items():
        if key == "priorityClass" and QUEUE_LABEL in draft.labels:
            # Kueue v0.17.0 pkg/controller/jobs/kubeflow/kubeflowjob/kubeflowjob_controller.go, PriorityClass.
            yield say.warning(
                (*_AT, key),
                f"schedulingPolicy.priorityClass {value} is dropped; Kueue took the priority of the v1 job from it",
                "give the TrainJob the label kueue.x-k8s.io/priority-class with a WorkloadPriorityClass of that value",
            )
            continue
        yield say.warning(
            (*_AT, key),
            f"schedulingPolicy.{key} {value if not isinstance(value, dict) else '{...}'} is dropped; it held only if "
            "the v1 operator ran with --gang-scheduler-name",
            _WHERE.get(key, ""),
        )


RULE = Rule(
    "TJ408",
    "scheduling-policy",
    (Claim("spec.runPolicy.schedulingPolicy", Outcome.DROPPED),),
    _apply,
)
