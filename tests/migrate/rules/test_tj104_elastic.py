"""TJ104: the rendezvous of elasticPolicy is kept, growing and shrinking is not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.migrate.rules.support import alone, chain, noop, refusal, v1
from trainjob.migrate.rules import tj101_replicas, tj102_roles, tj104_elastic, tj105_name

RULE = tj104_elastic.RULE
AFTER = (tj102_roles.RULE, tj105_name.RULE, tj101_replicas.RULE)
AT = "spec.elasticPolicy"


def elastic(policy: Any, **more: Any) -> Any:
    more.setdefault("master", False)
    return v1(
        {"command": ["torchrun", "t.py"], **more.pop("container", {})},
        workers=2,
        spec={"elasticPolicy": policy},
        **more,
    )


def env(policy: Any, **more: Any) -> dict[str, str]:
    return {e["name"]: e["value"] for e in alone(RULE, elastic(policy, **more), after=AFTER).draft.rendezvous}


def test_noop_without_elastic_policy() -> None:
    """Nothing to keep, nothing to lose."""
    noop(RULE, v1(workers=2), after=AFTER)


@pytest.mark.parametrize(
    ("policy", "bounds"),
    [
        ({}, "2 to 2"),
        ({"minReplicas": 1}, "1 to 1"),
        ({"maxReplicas": 5}, "5 to 5"),
        ({"minReplicas": 1, "maxReplicas": 5}, "1 to 5"),
    ],
)
def test_the_job_is_fixed_at_what_v1_started_with(policy: Any, bounds: str) -> None:
    """A bound that is missing is the other one, as in v1."""
    ran = alone(RULE, elastic(policy), after=AFTER)
    ran.says("warning", rf"fixed at 2 nodes; v1 allowed {bounds} Workers", at=AT)
    assert ran.draft.nodes == 2


def test_success_of_any_worker_is_no_more() -> None:
    """Told for Workers alone; beside a Master the Master decided."""
    alone(RULE, elastic({}), after=AFTER).says("warning", "success: in v1 the job had succeeded when any Worker had")
    assert len(alone(RULE, elastic({}, master=True), after=AFTER).findings) == 1


def test_metrics_are_dropped() -> None:
    """No HorizontalPodAutoscaler can drive a TrainJob."""
    ran = alone(RULE, elastic({"metrics": [{"type": "Pods"}]}), after=AFTER)
    ran.says("warning", "HorizontalPodAutoscaler is dropped", at=f"{AT}.metrics")


def test_restarts_of_torchrun_are_carried() -> None:
    """With a note: they are not the pod's restarts."""
    ran = alone(RULE, elastic({"maxRestarts": 0}), after=AFTER)
    ran.says("note", "PET_MAX_RESTARTS is carried", at=f"{AT}.maxRestarts")
    assert {"name": "PET_MAX_RESTARTS", "value": "0"} in ran.draft.rendezvous


def test_without_a_worker_it_is_refused() -> None:
    """As v1's webhook does."""
    finding = refusal(RULE, v1(spec={"elasticPolicy": {}}), after=AFTER)
    assert "elasticPolicy without a Worker" in finding.message


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ({}, {"PET_RDZV_BACKEND": "c10d", "PET_RDZV_ENDPOINT": "demo-node-0-0.demo:29400"}),
        ({"rdzvHost": "demo-worker-0", "rdzvPort": 1234}, {"PET_RDZV_ENDPOINT": "demo-node-0-0.demo:1234"}),
        (
            {"rdzvHost": "etcd", "rdzvPort": 2379, "rdzvBackend": "etcd-v2"},
            {"PET_RDZV_BACKEND": "etcd-v2", "PET_RDZV_ENDPOINT": "etcd:2379"},
        ),
        ({"rdzvHost": "etcd"}, {"PET_RDZV_ENDPOINT": "etcd:23456"}),
        (
            {"rdzvId": "7", "rdzvConf": [{"key": "a", "value": "1"}, {"key": "b", "value": "2"}]},
            {"PET_RDZV_ID": "7", "PET_RDZV_CONF": "a=1,b=2"},
        ),
        ({"standalone": True}, {"PET_STANDALONE": "1"}),
    ],
)
def test_the_rendezvous_becomes_env(policy: Any, expected: dict[str, str]) -> None:
    """Backend, endpoint, id and conf as v1 set them, with the name that rank 0 has now."""
    found = env(policy)
    assert {k: found[k] for k in expected} == expected


def test_the_named_port_is_the_default() -> None:
    """v1 took it from the container; a port without a number is no port."""
    for port, expected in ({"containerPort": 4444}, "h:4444"), ({}, "h:23456"):
        container = {"ports": [{"name": "x", "containerPort": 1}, {"name": "pytorchjob-port", **port}]}
        assert env({"rdzvHost": "h"}, container=container)["PET_RDZV_ENDPOINT"] == expected


def test_without_a_name_the_address_is_expanded() -> None:
    """The runtime knows it under PET_MASTER_ADDR."""
    assert env({}, metadata={"generateName": "d-"})["PET_RDZV_ENDPOINT"] == "$(PET_MASTER_ADDR):29400"


def test_it_stands_behind_the_programs_env() -> None:
    """And wins over a value of the user's own, as in v1."""
    data = elastic({"rdzvId": "from-policy"}, container={"env": [{"name": "PET_RDZV_ID", "value": "own"}]})
    result = chain(data)
    assert result.env["PET_RDZV_ID"]["value"] == "from-policy"
    result.says("TJ206", "note", "PET_RDZV_ID: dropped, because v1 set the values of elasticPolicy over it")
