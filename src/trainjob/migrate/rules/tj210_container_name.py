"""The training container `pytorch` is called `node` in v2.

What it does: renames it; takes the only container when none is called `pytorch`.
Why it matters: log tools, `kubectl exec -c` and Katib name the container. v1 refuses a job without
a container `pytorch`, so such a manifest never ran as it stands.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainjob.findings import Finding
from trainjob.migrate.rule import CONTAINER, Claim, Draft, Outcome, Rule, Say
from trainjob.v1.pytorchjob import PyTorchJob


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    say = Say("TJ210", job)
    for role in draft.roles:
        if role.main.get("name") != job.kind.container and not job.kind.any_container:
            yield say.warning(
                (*role.main_path, "name"),
                f"no container is called {job.kind.container!r}, which v1 refuses; the only one is taken: "
                f"{role.main.get('name')!r}",
            )


RULE = Rule("TJ210", "container-name", (Claim(f"{CONTAINER}.name", Outcome.TRANSLATED, "node"),), _apply)
