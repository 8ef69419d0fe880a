"""TJ304: scheduler, priority and runtime class."""

from __future__ import annotations

from typing import Any

import pytest

from tests.migrate.rules.support import POD, alone, chain, noop, v1
from trainjob.migrate.rules import tj106_labels, tj304_scheduler

RULE = tj304_scheduler.RULE


def test_noop_for_the_default_scheduler() -> None:
    """A live dump names it."""
    noop(RULE)
    noop(RULE, v1(pod={"schedulerName": "default-scheduler", "priorityClassName": ""}))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("schedulerName", "volcano"),
        ("priorityClassName", "high"),
        ("priority", 0),
        ("preemptionPolicy", "Never"),
        ("runtimeClassName", "nvidia"),
        ("overhead", {"cpu": "1"}),
    ],
)
def test_each_is_carried_in_a_runtime(key: str, value: Any) -> None:
    """With a note at its place."""
    ran = alone(RULE, v1(pod={key: value}))
    ran.says("note", f"{key} .* needs a generated runtime", at=f"{POD}.{key}")
    assert chain(v1(pod={key: value})).pod()[key] == value


def test_gang_scheduling_cannot_be_seen() -> None:
    """It was a flag of the operator: asked, not guessed."""
    ran = alone(RULE, v1(pod={"schedulerName": "volcano"}))
    ran.says("warning", "does volcano schedule these pods as a gang", at=f"{POD}.schedulerName")
    result = chain(v1(pod={"schedulerName": "volcano"}))
    assert result.runtime is not None
    assert "podGroupPolicy" not in result.runtime["spec"]


def test_priority_in_a_queue() -> None:
    """Kueue has its own label."""
    data = v1(
        pod={"priorityClassName": "high"}, metadata={"name": "demo", "labels": {"kueue.x-k8s.io/queue-name": "q"}}
    )
    alone(RULE, data, after=(tj106_labels.RULE,)).says("note", "kueue.x-k8s.io/priority-class on the TrainJob decides")
