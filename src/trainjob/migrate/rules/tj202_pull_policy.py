"""imagePullPolicy is dropped where it says the default, else a runtime carries it.

What it does: compares with Kubernetes' default (Always for `latest` or no tag, else IfNotPresent).
Why it matters: a TrainJob has no such field; more than half of the public manifests set it, most of
them to the default.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainjob.findings import Finding
from trainjob.migrate.roles import default_pull_policy
from trainjob.migrate.rule import CONTAINER, Claim, Draft, Outcome, Rule, Say
from trainjob.v1.pytorchjob import PyTorchJob


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    say = Say("TJ202", job)
    for role in draft.roles:
        policy = role.main.get("imagePullPolicy")
        if not policy:
            continue
        at = (*role.main_path, "imagePullPolicy")
        if policy == default_pull_policy(role.main.get("image", "")):
            yield say.note(at, f"imagePullPolicy {policy} is the default for this image and is left out")
        else:
            role.container["imagePullPolicy"] = policy
            yield say.note(
                at,
                f"imagePullPolicy {policy} is not the default for this image, so a generated runtime carries it",
                "remove it to get a TrainJob without a runtime of its own",
            )


RULE = Rule(
    "TJ202",
    "pull-policy",
    (Claim(f"{CONTAINER}.imagePullPolicy", Outcome.TRANSLATED, "TrainingRuntime container.imagePullPolicy"),),
    _apply,
)
