"""What is left of the pod: grace period, shared process namespace, resource claims and the like.

What it does: carries terminationGracePeriodSeconds as a patch where the target can, the rest in a
generated runtime. Why it matters: a checkpoint on SIGTERM needs its grace period.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainjob.findings import Finding
from trainjob.kube.names import QUEUE_LABEL
from trainjob.migrate.rule import POD, Claim, Draft, Outcome, Rule, Say
from trainjob.v1.pytorchjob import PyTorchJob

_RUNTIME = (
    "shareProcessNamespace", "enableServiceLinks", "resourceClaims", "readinessGates", "os",
    "activeDeadlineSeconds", "resources",
)  # fmt: skip


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    say = Say("TJ309", job)
    for role in draft.roles:
        pod = role.pod
        grace = pod.get("terminationGracePeriodSeconds")
        if grace is not None and grace != 30:
            role.spec["terminationGracePeriodSeconds"] = grace
            if draft.target.patch_grace_period and QUEUE_LABEL in draft.labels:
                yield say.note(
                    role.at("terminationGracePeriodSeconds"),
                    "a queued job needs a generated runtime for its grace period: Kueue up to 0.19 takes it out of a "
                    "TrainJob's patch, and JobSet then refuses the pods for ever",
                )
        for key in _RUNTIME:
            value = pod.get(key)
            if value in (None, {}, []) or (key == "shareProcessNamespace" and not value):
                continue
            if key == "enableServiceLinks" and value:
                continue
            role.spec[key] = value
            yield say.note(role.at(key), f"{key} needs a generated runtime")
        if pod.get("ephemeralContainers"):
            raise say.refuse(
                role.at("ephemeralContainers"), "a pod template cannot have ephemeralContainers", "remove them"
            )


RULE = Rule(
    "TJ309",
    "pod-settings",
    (
        Claim(f"{POD}.terminationGracePeriodSeconds", Outcome.CARRIED, "patch terminationGracePeriodSeconds"),
        *(Claim(f"{POD}.{f}", Outcome.TRANSLATED, f"TrainingRuntime {f}") for f in _RUNTIME),
        Claim(f"{POD}.ephemeralContainers", Outcome.REFUSED),
    ),
    _apply,
)
