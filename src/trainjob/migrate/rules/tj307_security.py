"""Security contexts of pod and container are carried.

What it does: copies both. Why it matters: capabilities such as IPC_LOCK are what RDMA needs, and a
dropped runAsUser runs the program as somebody else. Trainer 2.0 and 2.1 cannot patch them: there a
generated runtime carries them.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainjob.findings import Finding
from trainjob.migrate.rule import CONTAINER, POD, Claim, Draft, Outcome, Rule, Say
from trainjob.v1.pytorchjob import PyTorchJob


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    say = Say("TJ307", job)
    for role in draft.roles:
        if role.pod.get("securityContext"):
            role.spec["securityContext"] = role.pod["securityContext"]
        context = role.main.get("securityContext")
        if context:
            role.container["securityContext"] = context
            if context.get("privileged"):
                yield say.note(
                    (*role.main_path, "securityContext", "privileged"),
                    "a privileged container, as in v1; a namespace with Pod Security baseline or restricted refuses it",
                )


RULE = Rule(
    "TJ307",
    "security-context",
    (
        Claim(f"{POD}.securityContext", Outcome.CARRIED, "patch securityContext"),
        Claim(f"{CONTAINER}.securityContext", Outcome.CARRIED, "patch containers[node].securityContext"),
    ),
    _apply,
)
