"""workingDir is carried in a generated runtime.

What it does: copies workingDir. Why it matters: a TrainJob has no such field; a `cd` in front of the
command would need a shell and lose the image's own entrypoint.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainjob.findings import Finding
from trainjob.migrate.rule import CONTAINER, Claim, Draft, Outcome, Rule, Say
from trainjob.v1.pytorchjob import PyTorchJob


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    say = Say("TJ207", job)
    for role in draft.roles:
        if role.main.get("workingDir"):
            role.container["workingDir"] = role.main["workingDir"]
            yield say.note((*role.main_path, "workingDir"), "workingDir needs a generated runtime")


RULE = Rule(
    "TJ207",
    "working-dir",
    (Claim(f"{CONTAINER}.workingDir", Outcome.TRANSLATED, "TrainingRuntime container.workingDir"),),
    _apply,
)
