"""metav1.ObjectMeta as a structural schema: CRDs say only `metadata: object`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_STRING: Final = {"type": "string"}
_STRINGS: Final = {"type": "object", "additionalProperties": _STRING}
_OPEN: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

# k8s.io/apimachinery v0.34 pkg/apis/meta/v1/types.go
OBJECT_META: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "name": _STRING,
        "generateName": _STRING,
        "namespace": _STRING,
        "labels": _STRINGS,
        "annotations": _STRINGS,
        "uid": _STRING,
        "resourceVersion": _STRING,
        "generation": {"type": "integer"},
        "creationTimestamp": _STRING,
        "deletionTimestamp": _STRING,
        "deletionGracePeriodSeconds": {"type": "integer"},
        "ownerReferences": {"type": "array", "items": _OPEN},
        "finalizers": {"type": "array", "items": _STRING},
        "managedFields": {"type": "array", "items": _OPEN},
        "selfLink": _STRING,
    },
}


def with_object_meta(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a whole object with `metadata` spelled out and `status` left open."""
    properties = {**schema.get("properties", {}), "metadata": OBJECT_META}
    if "status" in properties:
        properties["status"] = _OPEN
    return {**schema, "type": "object", "properties": properties}
