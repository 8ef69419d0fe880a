"""envFrom is carried in a generated runtime.

What it does: copies envFrom of the training container. Why it matters: a TrainJob has no envFrom;
the keys of the ConfigMap or Secret cannot be known from the manifest alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainjob.findings import Finding
from trainjob.migrate.rule import CONTAINER, Claim, Draft, Outcome, Rule, Say
from trainjob.v1.pytorchjob import PyTorchJob


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    say = Say("TJ205", job)
    for role in draft.roles:
        if role.main.get("envFrom"):
            role.container["envFrom"] = role.main["envFrom"]
            yield say.note(
                (*role.main_path, "envFrom"),
                "envFrom needs a generated runtime; list the keys as env to do without one",
            )


RULE = Rule(
    "TJ205",
    "env-from",
    (Claim(f"{CONTAINER}.envFrom", Outcome.TRANSLATED, "TrainingRuntime container.envFrom"),),
    _apply,
)
