"""Hooks, probes, terminal and termination message are carried in a generated runtime.

What it does: copies lifecycle, the three probes, stdin, stdinOnce, tty, terminationMessage*, and the
container's own restart rules. Why it matters: a TrainJob has none of these fields.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainjob.findings import Finding
from trainjob.migrate.roles import operator_default
from trainjob.migrate.rule import CONTAINER, Claim, Draft, Outcome, Rule, Say
from trainjob.v1.pytorchjob import PyTorchJob

_FIELDS = (
    "lifecycle", "startupProbe", "livenessProbe", "readinessProbe", "stdin", "stdinOnce", "tty",
    "terminationMessagePath", "terminationMessagePolicy", "restartPolicy", "restartPolicyRules",
)  # fmt: skip


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    say = Say("TJ213", job)
    for role in draft.roles:
        for key in _FIELDS:
            value = role.main.get(key)
            if value in (None, False, {}, "") or operator_default(role.main, key):
                continue
            role.container[key] = value
            yield say.note((*role.main_path, key), f"{key} needs a generated runtime")


RULE = Rule(
    "TJ213",
    "container-settings",
    tuple(Claim(f"{CONTAINER}.{f}", Outcome.TRANSLATED, f"TrainingRuntime container.{f}") for f in _FIELDS),
    _apply,
)
