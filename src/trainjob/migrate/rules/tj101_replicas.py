"""Master and Worker replicas become one number of nodes.

What it does: numNodes = Master (0 or 1) + Worker.replicas, and says the total in pods and GPUs.
Why it matters: in v1 the Master is a training pod too, so `Worker: 2` beside a Master asks for
three pods. Whoever sets a quota by the Worker count is one pod short.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainjob.findings import Finding
from trainjob.kube import quantity
from trainjob.migrate.rule import REPLICA, Claim, Draft, Outcome, Rule, Say
from trainjob.v1.pytorchjob import PyTorchJob
from trainjob.v1.traced import derived


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    say = Say("TJ101", job)
    pods = [role.pods for role in draft.roles]
    draft.nodes = derived(sum(pods), pods)
    # The deprecated field in elasticPolicy was never part of WORLD_SIZE.
    nproc = job.nproc_number if job.spec.get("nprocPerNode") else None
    draft.world_size = derived(draft.nodes * (1 if nproc is None else nproc), draft.nodes, nproc)
    parts = " + ".join(f"{role} {replica.replicas}" for role, replica in job.roles.items())
    yield say.note(job.kind.path, f"this job asked for {_devices(draft)} ({parts}), and so does the TrainJob")


def _devices(draft: Draft) -> str:
    """`3 pods x 2 GPUs = 6 GPUs`; without devices only the pods."""
    pods = f"{draft.nodes} pod{'s' if draft.nodes != 1 else ''}"
    try:
        per_role = [quantity.accelerators(role.main.get("resources") or {}) for role in draft.roles]
    except ValueError:  # the next rule refuses the job for it
        return pods
    devices = sorted({key for each in per_role for key in each})
    if not devices:
        return f"{pods} without accelerators"
    texts = []
    for device in devices:
        unit = "GPU" if "gpu" in device.lower() else device
        amounts = [each.get(device, 0) for each in per_role]
        total = sum(n * role.pods for n, role in zip(amounts, draft.roles, strict=True))
        plural = "" if total == 1 or unit != "GPU" else "s"
        if len({*amounts}) == 1:
            one = quantity.show(quantity.parse(str(amounts[0])))
            each_plural = "" if one == "1" or unit != "GPU" else "s"
            texts.append(
                f"{pods} x {one} {unit}{each_plural} = {quantity.show(quantity.parse(str(total)))} {unit}{plural}"
            )
        else:
            texts.append(f"{pods} with {quantity.show(quantity.parse(str(total)))} {unit}{plural} in all")
    return ", ".join(texts)


RULE = Rule(
    "TJ101",
    "replica-count",
    (Claim(f"{REPLICA}.replicas", Outcome.TRANSLATED, "spec.trainer.numNodes"),),
    _apply,
)
