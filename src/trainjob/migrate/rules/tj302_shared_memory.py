"""Shared memory: a host's /dev/shm is kept, and a pod without any is pointed out.

What it does: changes nothing. Why it matters: a container has 64 MiB of /dev/shm; NCCL and
DataLoader workers want more. A hostPath shares the node's memory with every other pod on it.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainjob.findings import Finding
from trainjob.kube import quantity
from trainjob.migrate.rule import Draft, Rule, Say
from trainjob.v1.pytorchjob import PyTorchJob


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    say = Say("TJ302", job)
    for role in draft.roles:
        by_name = {v.get("name"): (i, v) for i, v in enumerate(role.pod.get("volumes") or ())}
        shm = [m for m in role.main.get("volumeMounts") or () if str(m.get("mountPath")).rstrip("/") == "/dev/shm"]
        for mount in shm:
            i, volume = by_name.get(mount.get("name"), (0, {}))
            if "hostPath" in volume:
                yield say.note(
                    role.at("volumes", i),
                    "/dev/shm of the node is kept as it is",
                    "an emptyDir with medium Memory and a sizeLimit keeps other pods' memory apart",
                )
        devices = quantity.accelerators(role.main.get("resources") or {})
        if not shm and sum(devices.values()) > 1:
            yield say.note(
                role.main_path,
                "several devices in a pod and no volume at /dev/shm: 64 MiB, as in v1",
                "mount an emptyDir with medium Memory at /dev/shm if NCCL or a DataLoader runs out of it",
            )


RULE = Rule("TJ302", "shared-memory", (), _apply)
