"""Init containers are carried in a generated runtime.

What it does: copies them; leaves out `init-pytorch`, which the v1 operator added to Workers.
Why it matters: a TrainJob can patch init containers of its runtime but not add any. v2 needs no
waiting for the Master's name: JobSet publishes the names of pods that are not ready yet.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainjob.findings import Finding
from trainjob.migrate.rule import POD, Claim, Draft, Outcome, Rule, Say
from trainjob.v1.pytorchjob import INIT_CONTAINER, PyTorchJob


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    say = Say("TJ211", job)
    for role in draft.roles:
        for i, container in enumerate(role.pod.get("initContainers") or ()):
            at = role.at("initContainers", i)
            if container.get("name") == INIT_CONTAINER:
                yield say.note(at, f"{INIT_CONTAINER} is left out: the v1 operator added it")
                continue
            role.init_containers.append(dict(container))
            yield say.note(
                at, f"init container {container.get('name')!r} needs a generated runtime; it runs on every pod"
            )


RULE = Rule(
    "TJ211",
    "init-containers",
    (Claim(f"{POD}.initContainers", Outcome.TRANSLATED, "TrainingRuntime initContainers"),),
    _apply,
)
