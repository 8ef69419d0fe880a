"""What the v1 webhook or controller would say to the job, before any rule reads it.

Facts: kubeflow/trainer v1.9.4 pkg/webhooks/pytorch/pytorchjob_webhook.go and
pkg/apis/kubeflow.org/v1/pytorch_defaults.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainjob.findings import Finding
from trainjob.migrate.codes import REFUSED_BY_V1
from trainjob.migrate.rule import RoleDraft, Say
from trainjob.v1.kinds import PYTORCH
from trainjob.v1.pytorchjob import PyTorchJob, Replica


def roles_of(job: PyTorchJob, drafts: list[RoleDraft], *, nameless: bool) -> Iterator[Finding]:
    """Append a draft per role that takes part; raises RefusedError for what v1 refuses."""
    say, kind = Say(REFUSED_BY_V1, job), job.kind
    if not job.roles and not job.other_roles:
        fix = "add a Master, a Worker or both" if kind is PYTORCH else f"add the role {kind.needed}"
        raise say.refuse(kind.path, f"{kind.specs} is missing or empty", fix)
    known = " and ".join(kind.roles)
    for path in job.other_roles:
        key = str(path[-1])
        twice = key.capitalize() in job.roles
        raise say.refuse(
            path,
            f"the role {key!r} stands twice" if twice else f"v1 knows the roles {known}, not {key!r}",
            "keep one" if twice else f"a parameter server or chief is no {kind.name} role",
        )
    for path, role in job.renamed_roles:
        yield say.note(path, f"the key {path[-1]!r} is read as {role}; the webhook of v1.8 and later refuses it")
    if kind.needed and kind.needed not in job.roles:
        raise say.refuse(kind.path, f"the role {kind.needed} is missing: v1 refuses a {kind.name} without it", "add it")
    if job.name is None and not job.metadata.get("generateName") and not nameless:
        raise say.refuse(("metadata", "name"), "the job has no name", "set metadata.name or generateName")
    for replica in job.roles.values():
        draft = _role(say, replica)
        yield from _counts(say, replica)
        if replica.replicas != 0:
            drafts.append(draft)
    if not drafts:
        raise say.refuse(kind.path, "every role has 0 replicas", "set the number of pods")


def _role(say: Say, replica: Replica) -> RoleDraft:
    if not replica.containers:
        raise say.refuse((*replica.pod_path, "containers"), f"{replica.role} has no containers", "add the container")
    index = replica.main()
    if index is None:
        wanted = replica.kind.container
        names = ", ".join(str(c.get("name")) for c in replica.containers)
        raise say.refuse(
            (*replica.pod_path, "containers"),
            f"must have at least one container with name {wanted}; there are {len(replica.containers)}: {names}",
            f"call the training container {wanted}",
        )
    if not replica.containers[index].get("image"):
        raise say.refuse(
            (*replica.pod_path, "containers", index),
            "the training container has no image: v1 refuses that, a partial template cannot be migrated, and in v2 "
            "the runtime's own image would run",
            "set the image",
        )
    return RoleDraft(replica, replica.replicas, index)


def _counts(say: Say, replica: Replica) -> Iterator[Finding]:
    at = (*replica.path, "replicas")
    count = replica.replicas
    if "replicas" not in replica.data:
        yield say.note(replica.path, f"{replica.role}.replicas is not set: {count}, as the v1 controller does")
    if count < 0:
        raise say.refuse(at, f"{count} replicas", "set a positive number")
    if replica.role in ("Master", "Launcher") and count > 1:
        raise say.refuse(
            at,
            f"{replica.role}.replicas is {count} and must be 1",
            f"is that the number of pods, or of Workers beside one {replica.role}? Set {replica.role} 1 and Worker "
            "accordingly",
        )
    if count == 0 and replica.kind.replicas(replica.role):
        yield say.warning(
            at, f"{replica.role}.replicas is 0: the role is treated as absent; v1 refuses it", "remove the role"
        )
