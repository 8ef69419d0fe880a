"""Empty values that block a queued job.

Kueue up to 0.19 writes a TrainJob back through Go types. Fields with `omitempty` and without a
pointer lose an empty value on the way, and where the CRD says "field is immutable" the API server
refuses the write: the job stays suspended (kubeflow/trainer#3888). The CRDs have those rules since
Trainer 2.2. Which fields are pointers: k8s.io/api v0.34 core/v1/types.go and kubeflow/trainer
v2.3.0 pkg/apis/trainer/v1alpha1/trainjob_types.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from trainjob.findings import Finding
from trainjob.kube.schema import Path
from trainjob.validate.case import Case
from trainjob.validate.view import dig

# Parts of a pod patch with the rule; nodeSelector, affinity and tolerations may change.
_IMMUTABLE: Final = (
    "containers", "imagePullSecrets", "initContainers", "securityContext", "serviceAccountName", "volumes",
)  # fmt: skip
# Text fields that are pointers, or have no omitempty: an empty text survives.
_TEXT_STAYS: Final = frozenset({
    "claimName", "fieldPath", "fsType", "image", "key", "mountPath", "name", "path", "resource",
    "serviceAccountName", "storageClassName", "storageUri", "volumeName",
})  # fmt: skip
# Maps with omitempty: an empty one is lost. Empty structs behind pointers (emptyDir) survive.
_MAPS: Final = frozenset({
    "annotations", "labels", "limits", "matchLabels", "options", "requests", "volumeAttributes",
})  # fmt: skip
# `readOnly` of these volume sources is a pointer.
_READ_ONLY_STAYS: Final = frozenset({"azureDisk", "csi"})


def check_empties(case: Case) -> Iterator[Finding]:
    """TJ521."""
    if case.target.patches != "runtimePatches":
        return
    for field in ("trainer", "initializer"):
        yield from _look(case, dig(case.obj, "spec", field), ("spec", field), "")
    for patch in case.patches:
        for field in _IMMUTABLE:
            if field in patch.pod:
                yield from _look(case, patch.pod[field], (*patch.pod_path, field), "")


def _look(case: Case, value: Any, path: Path, parent: str) -> Iterator[Finding]:
    name = str(path[-1])
    if isinstance(value, Mapping):
        if not value and name in _MAPS:
            yield _lost(case, path, "{}")
        elif name not in _MAPS:
            for key, child in value.items():
                yield from _look(case, child, (*path, key), name)
    elif isinstance(value, list):
        if not value:
            yield _lost(case, path, "[]")
        for index, item in enumerate(value):
            if isinstance(item, Mapping):
                yield from _look(case, item, (*path, index), name)
    elif value == "" and name not in _TEXT_STAYS:
        yield _lost(case, path, '""')
    elif value is False and name == "readOnly" and parent not in _READ_ONLY_STAYS:
        yield _lost(case, path, "false")


def _lost(case: Case, path: Path, what: str) -> Finding:
    return case.find(
        "TJ521", path, f"{what} is lost when Kueue writes the job back, which is then refused as immutable",
        "leave the field out",
    )  # fmt: skip
