"""Volumes and mounts are carried, with the claims, modes and sub-paths as written.

What it does: copies volumes, volumeMounts and volumeDevices; checks that each mount has its volume.
Why it matters: patches list mounts by volume name, so a volume that is mounted twice needs a runtime.
A claim that only one node can attach (ReadWriteOnce) behaves in v2 as in v1.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainjob.findings import Finding
from trainjob.kube import names
from trainjob.migrate.rule import CONTAINER, POD, Claim, Draft, Outcome, RoleDraft, Rule, Say
from trainjob.v1.pytorchjob import PyTorchJob


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    say = Say("TJ301", job)
    for role in draft.roles:
        volumes = list(role.pod.get("volumes") or ())
        declared = [v.get("name") for v in volumes]
        for i, name in enumerate(declared):
            if not name or not names.is_label_1123(name):
                raise say.refuse(
                    role.at("volumes", i, "name"),
                    f"{name!r} is no valid volume name: lower-case letters, digits and `-`",
                    "rename the volume and its mounts; Kubernetes refuses the pod",
                )
        mounts = list(role.main.get("volumeMounts") or ())
        for i, mount in enumerate(mounts):
            if mount.get("name") not in declared:
                raise say.refuse(
                    (*role.main_path, "volumeMounts", i, "name"),
                    f"the mount names the volume {mount.get('name')!r}, which the pod does not have",
                    f"declare it under volumes; the pod has {', '.join(map(str, declared)) or 'none'}",
                )
        yield from _unmounted(say, role, declared)
        if volumes:
            role.spec["volumes"] = volumes
        if mounts:
            role.container["volumeMounts"] = mounts
        if role.main.get("volumeDevices"):
            role.container["volumeDevices"] = role.main["volumeDevices"]
            yield say.note((*role.main_path, "volumeDevices"), "volumeDevices need a generated runtime")
        if len({m.get("name") for m in mounts}) < len(mounts):
            yield say.note(
                (*role.main_path, "volumeMounts"),
                "a volume is mounted more than once, which a patch cannot say: a generated runtime carries it",
            )


def _unmounted(say: Say, role: RoleDraft, declared: list[str]) -> Iterator[Finding]:
    used = {
        m.get("name")
        for c in [*role.replica.containers, *(role.pod.get("initContainers") or ())]
        for m in [*(c.get("volumeMounts") or ()), *(c.get("volumeDevices") or ())]
    }
    for i, name in enumerate(declared):
        if name not in used:
            yield say.note(role.at("volumes", i), f"the volume {name!r} is mounted nowhere; it is kept")


RULE = Rule(
    "TJ301",
    "volumes",
    (
        Claim(f"{POD}.volumes", Outcome.CARRIED, "patch volumes"),
        Claim(f"{CONTAINER}.volumeMounts", Outcome.CARRIED, "patch containers[node].volumeMounts"),
        Claim(f"{CONTAINER}.volumeDevices", Outcome.TRANSLATED, "TrainingRuntime container.volumeDevices"),
    ),
    _apply,
)
