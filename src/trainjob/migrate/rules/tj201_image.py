"""The training image is carried to `trainer.image`.

What it does: copies it; a container without one is refused before any rule runs (TJ911).
Why it matters: without `trainer.image` the runtime's own image runs, silently another program.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainjob.findings import Finding
from trainjob.migrate.rule import CONTAINER, Claim, Draft, Outcome, Rule, Say
from trainjob.v1.pytorchjob import PyTorchJob


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    say = Say("TJ201", job)
    for role in draft.roles:
        image = role.main["image"]  # check_v1 refuses a container without one
        if len(image) > 500:
            raise say.refuse((*role.main_path, "image"), "an image name may have 500 characters in a TrainJob")
        role.image = image
    yield from ()


RULE = Rule("TJ201", "image", (Claim(f"{CONTAINER}.image", Outcome.CARRIED, "spec.trainer.image"),), _apply)
