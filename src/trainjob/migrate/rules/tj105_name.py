"""The job's name and namespace, and how long a name may be in v2.

What it does: carries name, generateName and namespace, and refuses a name that Trainer or JobSet
would refuse later.
Why it matters: v1 allows about 54 characters, a TrainJob 48 for up to 10 nodes, because JobSet puts
`-node-0-<index>-<5 random>` behind it. JobSet's refusal shows only as an Event.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainjob.emit import LAUNCHER, NODE, WORKER
from trainjob.findings import Finding
from trainjob.kube import names
from trainjob.migrate.rule import Claim, Draft, Outcome, Rule, Say
from trainjob.v1.kinds import MPI, PYTORCH
from trainjob.v1.pytorchjob import PyTorchJob

_AT = ("metadata", "name")


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    say = Say("TJ105", job)
    draft.name, draft.namespace = job.name, job.namespace
    draft.generate_name = None if job.name else job.metadata.get("generateName")
    jobs = [(NODE, sum(role.pods for role in draft.roles))]
    if job.kind is MPI:
        jobs = [(LAUNCHER, 1), (NODE, draft.nodes)]
    elif draft.two_roles:
        jobs = [(NODE, 1), (WORKER, 1)]
    limit = names.budget(jobs)
    if (
        draft.two_roles and job.kind is not MPI
    ):  # `<name>-worker-<index>-0-<random>`: the job index grows instead of the pod index
        limit = min(limit, names.MAX_NAME - len(f"-{WORKER}-{draft.roles[1].pods - 1}-0-abcde"))
    if draft.name is not None:
        if not names.is_label(draft.name):
            raise say.refuse(
                _AT,
                f"the name {draft.name!r} is no RFC 1035 label: lower-case letters, digits and `-`, a letter first",
                "rename the job; v1 refuses this name too",
            )
        if len(draft.name) > limit:
            raise say.refuse(
                _AT,
                f"the name has {len(draft.name)} characters; with {sum(r.pods for r in draft.roles)} nodes a "
                f"TrainJob's name may have {limit}, or JobSet refuses it in an Event that few people see",
                f"rename the job, for example {names.shorten(draft.name, limit)!r}, and every text that holds its name",
            )
    elif draft.generate_name is not None:
        if not names.is_label(draft.generate_name[: names.MAX_NAME - 5] + "abcde"):
            raise say.refuse(
                ("metadata", "generateName"),
                f"generateName {draft.generate_name!r} makes names that are no RFC 1035 labels: lower-case letters, "
                "digits and `-`, a letter first",
                "change generateName; v1 refuses such names too",
            )
        room = limit - 5
        if len(draft.generate_name) > room:
            raise say.refuse(
                ("metadata", "generateName"),
                f"generateName has {len(draft.generate_name)} characters; {room} leave room for the 5 random ones",
                "shorten generateName",
            )
        yield say.note(
            ("metadata", "generateName"),
            f"the name is not known before the job exists{_from(job)}; "
            "`kubectl create` works, `kubectl apply` refuses generateName",
        )
    if job.metadata.get("namespace") == "":
        yield say.note(("metadata", "namespace"), "the empty namespace is left out")


def _from(job: PyTorchJob) -> str:
    """Where the address of rank 0 comes from then; an MPIJob has a hostfile."""
    if job.kind is PYTORCH:
        return ", so MASTER_ADDR and its kin come from the runtime's env"
    return "" if job.kind is MPI else ", so the address of rank 0 is put together from a label of the pod"


RULE = Rule(
    "TJ105",
    "job-name",
    tuple(Claim(f"metadata.{f}", Outcome.CARRIED, f"metadata.{f}") for f in ("name", "generateName", "namespace")),
    _apply,
)
