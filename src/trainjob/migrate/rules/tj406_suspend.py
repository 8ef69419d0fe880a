"""suspend is carried.

What it does: `spec.suspend: true` stays; false is the default and is left out.
Why it matters: a suspended job must not start because it was migrated; Kueue toggles the field.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainjob.findings import Finding
from trainjob.migrate.rule import Claim, Draft, Outcome, Rule
from trainjob.v1.pytorchjob import PyTorchJob
from trainjob.v1.traced import derived


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    suspend = job.run_policy.get("suspend")
    draft.suspend = derived(bool(suspend), suspend)
    yield from ()


RULE = Rule("TJ406", "suspend", (Claim("spec.runPolicy.suspend", Outcome.CARRIED, "spec.suspend"),), _apply)
