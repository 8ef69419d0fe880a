"""What an API server or controller wrote into a live object is left out.

What it does: drops status and the server's metadata (uid, resourceVersion, managedFields, ...), and
warns when the dump shows a job that is running or has finished.
Why it matters: applying the migrated copy of a finished job trains again; of a running one, twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trainjob.findings import Finding
from trainjob.migrate.rule import Claim, Draft, Outcome, Rule, Say
from trainjob.v1.pytorchjob import PyTorchJob

_SERVER = (
    "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
    "deletionGracePeriodSeconds", "managedFields", "selfLink",
)  # fmt: skip


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:  # noqa: ARG001
    say = Say("TJ107", job)
    written = [f for f in _SERVER if f in job.metadata]
    status = job.data.get("status")
    if written or status:
        names = ", ".join([*(f"metadata.{f}" for f in written), *(["status"] if status else [])])
        yield say.note(("metadata",), f"a dump of a live object: {names} left out")
    for field in ("ownerReferences", "finalizers"):
        if job.metadata.get(field):
            yield say.warning(
                ("metadata", field),
                f"metadata.{field} is left out: it binds the v1 object, by uid or by its controller",
                "let the owner create the TrainJob, or set the field again",
            )
    conditions = _true_conditions(status or {})
    for done in ("Succeeded", "Failed"):
        if done in conditions:
            yield say.warning(
                ("status",),
                f"the v1 job has {done.lower()}: applying the TrainJob trains again",
                "apply only what shall run again",
            )
            return
    if "Running" in conditions or (status or {}).get("startTime"):
        yield say.warning(
            ("status",),
            "the v1 job is still running: applying the TrainJob trains twice at the same time",
            "let it finish, or suspend it with spec.runPolicy.suspend",
        )


def _true_conditions(status: Mapping[str, Any]) -> set[str]:
    """The types that are True. The schema leaves `status` open, so it may hold anything."""
    conditions = status.get("conditions")
    found = conditions if isinstance(conditions, list) else []
    return {str(c.get("type")) for c in found if isinstance(c, Mapping) and str(c.get("status")) == "True"}


RULE = Rule(
    "TJ107",
    "live-object",
    (
        Claim("apiVersion", Outcome.TRANSLATED, "apiVersion"),
        Claim("kind", Outcome.TRANSLATED, "kind"),
        *(Claim(f"metadata.{f}", Outcome.DROPPED) for f in (*_SERVER, "ownerReferences", "finalizers")),
        Claim("status", Outcome.DROPPED),
    ),
    _apply,
)
