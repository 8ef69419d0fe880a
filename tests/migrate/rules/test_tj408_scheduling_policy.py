"""TJ408: schedulingPolicy is dropped."""

from __future__ import annotations

from typing import Any

import pytest

from tests.migrate.rules.support import alone, chain, noop, v1
from trainjob.kube import schema
from trainjob.migrate.rules import tj408_scheduling_policy

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


def test_every_field_of_the_crd_has_an_advice() -> None:
    """So that a new one is not reported without."""
    node = schema.lookup(schema.raw("PyTorchJob"), ("spec", "runPolicy", "schedulingPolicy"))
    assert node is not None
    values = {"integer": 1, "string": "x", "object": {"cpu": "1"}}
    policy = {key: values[child["type"]] for key, child in node["properties"].items()}
    findings = alone(RULE, v1(spec={"runPolicy": {"schedulingPolicy": policy}})).findings
    assert len(findings) == len(policy) >= 5
    assert all(f.fix for f in findings)
