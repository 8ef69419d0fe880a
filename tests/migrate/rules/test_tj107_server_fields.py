"""TJ107: what an API server or a controller wrote is left out."""

from __future__ import annotations

from typing import Any

import pytest

from tests.migrate.rules.support import alone, chain, noop, v1
from trainjob.migrate.rules import tj107_server_fields

RULE = tj107_server_fields.RULE


def test_noop_for_a_manifest_from_a_file() -> None:
    """Nothing of a server is in it."""
    noop(RULE)


def test_server_metadata_is_dropped() -> None:
    """One note that lists it; the output has none of it."""
    metadata = {"name": "demo", "uid": "u", "resourceVersion": "1", "generation": 2, "managedFields": [{"a": 1}]}
    ran = alone(RULE, v1(metadata=metadata, status={"conditions": []}))
    ran.says(
        "note",
        "live object: metadata.uid, metadata.resourceVersion, metadata.generation, metadata.managedFields, status",
    )
    assert chain(v1(metadata=metadata)).job["metadata"] == {"name": "demo"}


def condition(kind: str, status: Any = "True") -> dict[str, Any]:
    return {"type": kind, "status": status}


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (
            {"conditions": [condition("Running", "False"), condition("Succeeded")]},
            "the v1 job has succeeded: .*trains again",
        ),
        ({"conditions": [condition("Failed", True)]}, "the v1 job has failed: .*trains again"),
        ({"conditions": [condition("Running")]}, "still running: .*trains twice"),
        ({"startTime": "2024-01-01T00:00:00Z"}, "still running"),
    ],
)
def test_finished_and_running_jobs_are_warned_about(status: Any, text: str) -> None:
    """Applying the copy starts a training."""
    alone(RULE, v1(status=status)).says("warning", text, at="status")


@pytest.mark.parametrize(
    "status", [{"conditions": 5}, {"conditions": ["x", None, {}]}, {"conditions": {"a": 1}}, {"x": 1}]
)
def test_a_status_of_any_shape_is_read(status: Any) -> None:
    """The v1 schema leaves it open: only the note remains."""
    assert [f.severity.value for f in alone(RULE, v1(status=status)).findings] == ["note"]


@pytest.mark.parametrize("field", ["ownerReferences", "finalizers"])
def test_bindings_of_the_v1_object_are_dropped(field: str) -> None:
    """Also when the job has finished."""
    value = ["x"] if field == "finalizers" else [{"uid": "u"}]
    data = v1(metadata={"name": "demo", field: value}, status={"conditions": [condition("Succeeded")]})
    ran = alone(RULE, data)
    ran.says("warning", f"metadata.{field} is left out", at=f"metadata.{field}")
    ran.says("warning", "has succeeded")
    assert field not in chain(data).job["metadata"]
