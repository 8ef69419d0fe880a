"""TJ408: schedulingPolicy is dropped."""

from __future__ import annotations

from typing import Any

import pytest

from tests.migrate.rules.support import alone, chain, noop, v1
from trainjob.kube import schema
from trainjob.migrate.rules import tj106_labels, tj408_scheduling_policy

RULE = tj408_scheduling_policy.RULE
AT = "spec.runPolicy.schedulingPolicy"


def test_noop_without_a_policy() -> None:
    """An empty one is none."""
    noop(RULE)
    noop(RULE, v1(spec={"runPolicy": {"schedulingPolicy": {}}}))


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("minAvailable", 2, "schedulingPolicy.minAvailable 2 is dropped.*\na gang of v2 is all pods"),
        ("minResources", {"cpu": "1"}, r"schedulingPolicy.minResources \{...\} is dropped"),
        ("queue", "q", "\n.*scheduling.volcano.sh/queue-name"),
        ("priorityClass", "p", "\nset priorityClassName in the pod template"),
        ("scheduleTimeoutSeconds", 60, "\nset podGroupPolicy.coscheduling.scheduleTimeoutSeconds"),
    ],
)
def test_each_value_is_reported(key: str, value: Any, text: str) -> None:
    """With what to do instead."""
    data = v1(spec={"runPolicy": {"schedulingPolicy": {key: value}}})
    alone(RULE, data).says("warning", text, at=f"{AT}.{key}")
    assert chain(data).runtime is None


def test_the_priority_of_a_queued_job_was_kueues_too() -> None:
    """Kueue 0.17 takes a v1 job's priority from its schedulingPolicy first; the advice is Kueue's own label."""
    data = v1(
        spec={"runPolicy": {"schedulingPolicy": {"priorityClass": "p"}}},
        metadata={"name": "demo", "labels": {"kueue.x-k8s.io/queue-name": "q"}},
    )
    ran = alone(RULE, data, after=(tj106_labels.RULE,))
    ran.says("warning", "Kueue took the priority of the v1 job from it\n.*priority-class", at=f"{AT}.priorityClass")


def test_every_field_of_the_crd_has_an_advice() -> None:
    """So that a new one is not reported without."""
    node = schema.lookup(schema.raw("PyTorchJob"), ("spec", "runPolicy", "schedulingPolicy"))
    assert node is not None
    values = {"integer": 1, "string": "x", "object": {"cpu": "1"}}
    policy = {key: values[child["type"]] for key, child in node["properties"].items()}
    findings = alone(RULE, v1(spec={"runPolicy": {"schedulingPolicy": policy}})).findings
    assert len(findings) == len(policy) >= 5
    assert all(f.fix for f in findings)
