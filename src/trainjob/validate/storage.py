"""Checks of the storage of TrainJobs: checkpoints that a restart loses, claims that pods cannot share.

They need more than the TrainJob: its runtime, and the access modes of the claims that it mounts, from
PersistentVolumeClaims beside it. What is not given is not checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from trainjob.findings import Finding
from trainjob.kube.schema import Path
from trainjob.storage import ANNOTATION, CHECKPOINTS, NONE, ROX, RWO, RWOP, RWX, URL_VARIABLE
from trainjob.validate.case import Case
from trainjob.validate.view import NODE, TRAINER, count, dig, entries, listed, mapping, text

_SHARED: Final = frozenset({RWX, ROX})


@dataclass(frozen=True, slots=True)
class KnownClaim:
    """A PersistentVolumeClaim, and where its access modes were read."""

    name: str
    namespace: str
    modes: frozenset[str]
    place: str = ""

    @classmethod
    def read(cls, obj: Mapping[str, Any], place: str = "") -> KnownClaim | None:
        """From a manifest, or None when it is of another kind or has no modes."""
        if obj.get("kind") != "PersistentVolumeClaim" or obj.get("apiVersion") not in (None, "v1"):
            return None
        modes = frozenset(map(text, listed(dig(obj, "spec", "accessModes"))))
        name, namespace = (text(dig(obj, "metadata", key)) for key in ("name", "namespace"))
        return cls(name, namespace, modes, place) if name and modes else None


@dataclass(frozen=True, slots=True)
class _Use:
    """A claim that pods of a job mount: how many pods, where in the TrainJob it stands, the mount paths."""

    claim: str
    pods: int
    path: Path
    mounts: frozenset[str]
    read_only: bool


def check_storage(case: Case, claims: Iterable[KnownClaim] = (), *, complete: bool = False) -> Iterator[Finding]:
    """TJ580 to TJ584 of one TrainJob. `complete`: tell also of claims whose access mode nobody gave."""
    yield from _check_kept(case)
    namespace = text(dig(case.obj, "metadata", "namespace"))
    known = {c.name: c for c in claims if not c.namespace or not namespace or c.namespace == namespace}
    for use in _uses(case):
        claim = known.get(use.claim)
        if CHECKPOINTS in use.mounts and (use.read_only or (claim is not None and claim.modes == {ROX})):
            yield case.find(
                "TJ583", use.path,
                f'claim "{use.claim}" at {CHECKPOINTS} is read-only, so nothing can be saved there',
                "mount a claim that can be written",
            )  # fmt: skip
        if claim is not None:
            yield from _check_shared(case, use, claim)
        elif complete and use.pods > 1:
            yield case.find(
                "TJ584", use.path,
                f'{use.pods} pods mount the claim "{use.claim}", and its access mode is not known here',
                f'say that it is ReadWriteMany ("{use.claim}:rwx"); `kubectl get pvc {use.claim}` shows it',
            )  # fmt: skip


def _check_shared(case: Case, use: _Use, claim: KnownClaim) -> Iterator[Finding]:
    if use.pods < 2 or claim.modes & _SHARED:
        return
    where = f" ({claim.place})" if claim.place else ""
    mode = " and ".join(sorted(claim.modes))
    code, why = "TJ581", "a volume of one node at a time"
    fix = "a claim with accessModes [ReadWriteMany] on a storage class that offers it (NFS, CephFS), S3, or one node"
    if claim.modes == {RWOP}:
        code, why = "TJ582", "a volume of a single pod"
    elif RWO not in claim.modes:
        return
    yield case.find(
        code, use.path,
        f'{use.pods} pods mount the claim "{use.claim}"{where}, which is {mode}: {why}. The others never start',
        f"use {fix}",
    )  # fmt: skip


def _check_kept(case: Case) -> Iterator[Finding]:
    """TJ580: /checkpoints is still the runtime's own emptyDir, which goes with the pod."""
    merged = next((m for m in case.merged if m.job.step == TRAINER), None)
    if merged is None or text(dig(case.obj, "metadata", "annotations", ANNOTATION)) == NONE:
        return
    mine = next((c for _, c in entries(merged.pod, "containers") if c.get("name") == NODE), {})
    theirs = next((c for _, c in entries(merged.job.pod, "containers") if c.get("name") == NODE), {})
    volume = _mounted(mine, CHECKPOINTS)
    if volume is None or volume != _mounted(theirs, CHECKPOINTS):
        return
    if not any(v.get("name") == volume and "emptyDir" in v for _, v in entries(merged.pod, "volumes")):
        return
    if any(e.get("name") == URL_VARIABLE and "://" in text(e.get("value")) for _, e in entries(mine, "env")):
        return
    yield case.find(
        "TJ580", ("spec", "runtimeRef", "name"),
        f"nothing lasting is mounted at {CHECKPOINTS}: a restart begins at the first step, and the result goes with "
        "the pod",
        f"mount a claim at {CHECKPOINTS}, or save to S3 (docs/howto/storage.md). A trial that may lose everything says "
        f'so: `--no-checkpoints`, or the annotation {ANNOTATION}: "{NONE}"',
    )  # fmt: skip


def _mounted(container: Mapping[str, Any], path: str) -> str | None:
    """The volume at a path of a container."""
    for _, mount in entries(container, "volumeMounts"):
        if text(mount.get("mountPath")).rstrip("/") == path:
            return text(mount.get("name"))
    return None


def _uses(case: Case) -> Iterator[_Use]:
    """Claims with the number of pods that mount them. Without the runtime: those of the patches alone."""
    pods = [(merged.pod, merged.pods) for merged in case.merged]
    if not pods:
        pods = [(patch.pod, count(case.trainer.get("numNodes")) or 1) for patch in case.patches]
    found: dict[str, tuple[int, frozenset[str], bool]] = {}
    for pod, number in pods:
        for claim, mounts, read_only in _claims(pod):
            most, others, only_read = found.get(claim, (0, frozenset[str](), True))
            found[claim] = (max(number, most), mounts | others, read_only and only_read)
    for claim, (most, mounts, read_only) in found.items():
        yield _Use(claim, most, _path(case, claim), mounts, read_only)


def _claims(pod: Mapping[str, Any]) -> Iterator[tuple[str, frozenset[str], bool]]:
    """(claim, mount paths, whether every mount is read-only) for the claims of a pod."""
    mounts = [
        mount
        for key in ("containers", "initContainers")
        for _, container in entries(pod, key)
        for _, mount in entries(container, "volumeMounts")
    ]
    for _, volume in entries(pod, "volumes"):
        source = mapping(volume.get("persistentVolumeClaim"))
        claim = text(source.get("claimName"))
        if claim:
            mine = [m for m in mounts if m.get("name") == volume.get("name")]
            read_only = source.get("readOnly") is True or (bool(mine) and all(m.get("readOnly") is True for m in mine))
            yield claim, frozenset(text(m.get("mountPath")).rstrip("/") for m in mine), read_only


def _path(case: Case, claim: str) -> Path:
    """Where the TrainJob names the claim, or its runtimeRef when the runtime does."""
    for patch in case.patches:
        for index, volume in entries(patch.pod, "volumes"):
            if dig(volume, "persistentVolumeClaim", "claimName") == claim:
                return (*patch.pod_path, "volumes", index, "persistentVolumeClaim", "claimName")
    return ("spec", "runtimeRef", "name")
