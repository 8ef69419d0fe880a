"""TJ309: what is left of the pod."""

from __future__ import annotations

from typing import Any

import pytest

from tests.migrate.rules.support import POD, alone, chain, noop, refusal, v1
from trainjob.migrate.rules import tj106_labels, tj309_pod_settings
from trainjob.targets import target

RULE = tj309_pod_settings.RULE


def test_noop_for_defaults() -> None:
    """What an API server fills in."""
    noop(RULE)
    noop(
        RULE, v1(pod={"terminationGracePeriodSeconds": 30, "enableServiceLinks": True, "shareProcessNamespace": False})
    )


@pytest.mark.parametrize("seconds", [0, 600])
def test_the_grace_period_is_patched_where_it_can_be(seconds: int) -> None:
    """From Trainer 2.3 on; before that a runtime carries it."""
    data = v1(pod={"terminationGracePeriodSeconds": seconds})
    assert alone(RULE, data).findings == []
    assert chain(data).patch["spec"] == {"terminationGracePeriodSeconds": seconds}
    assert chain(data, target("2.2")).pod()["terminationGracePeriodSeconds"] == seconds


def test_a_queued_job_keeps_its_grace_period_in_a_runtime() -> None:
    """Kueue 0.17 takes it out of a patch on admission; JobSet 0.12 then refuses the pods for ever."""
    data = v1(
        pod={"terminationGracePeriodSeconds": 60},
        metadata={"name": "demo", "labels": {"kueue.x-k8s.io/queue-name": "q"}},
    )
    ran = alone(RULE, data, after=(tj106_labels.RULE,))
    ran.says("note", "needs a generated runtime for its grace period", at=f"{POD}.terminationGracePeriodSeconds")
    assert alone(RULE, data, after=(tj106_labels.RULE,), target=target("2.2")).findings == []
    made = chain(data)
    assert made.pod()["terminationGracePeriodSeconds"] == 60
    assert "runtimePatches" not in made.job["spec"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("shareProcessNamespace", True),
        ("enableServiceLinks", False),
        ("resourceClaims", [{"name": "c", "resourceClaimName": "x"}]),
        ("readinessGates", [{"conditionType": "x/y"}]),
        ("os", {"name": "linux"}),
        ("activeDeadlineSeconds", 60),
    ],
)
def test_others_need_a_runtime(key: str, value: Any) -> None:
    """With a note at their place."""
    alone(RULE, v1(pod={key: value})).says("note", f"{key} needs a generated runtime", at=f"{POD}.{key}")
    assert chain(v1(pod={key: value})).pod()[key] == value


def test_ephemeral_containers_are_refused() -> None:
    """No pod template can have them; an empty list is nothing."""
    data = v1(pod={"ephemeralContainers": [{"name": "d", "image": "d"}]})
    assert "a pod template cannot have ephemeralContainers" in refusal(RULE, data).message
    noop(RULE, v1(pod={"ephemeralContainers": []}))
