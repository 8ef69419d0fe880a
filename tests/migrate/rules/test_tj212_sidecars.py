"""TJ212: containers beside the training container."""

from __future__ import annotations

from typing import Any

from tests.migrate.rules.support import POD, alone, chain, noop, v1
from trainjob.migrate.rules import tj101_replicas, tj102_roles, tj105_name, tj212_sidecars
from trainjob.targets import target

RULE = tj212_sidecars.RULE
AFTER = (tj102_roles.RULE, tj105_name.RULE, tj101_replicas.RULE)
LOGS = {"name": "logs", "image": "l:1", "env": [{"name": "A", "value": "1"}, {"name": "RANK", "value": "9"}]}


def beside(*sidecars: dict[str, Any], first: bool = False, **more: Any) -> dict[str, Any]:
    data = v1(**more)
    for role in data["spec"]["pytorchReplicaSpecs"].values():
        containers = role["template"]["spec"]["containers"]
        role["template"]["spec"]["containers"] = [*sidecars, *containers] if first else [*containers, *sidecars]
    return data


def test_noop_for_one_container() -> None:
    """Nothing stands beside it."""
    noop(RULE, after=AFTER)


def test_a_sidecar_is_carried_with_v1s_variables() -> None:
    """As v1 gave them to every container; a value that the operator overwrote is dropped."""
    ran = alone(RULE, beside(LOGS), after=AFTER)
    ran.says(
        "warning",
        "container 'logs' needs a generated runtime; it has the v1 variables and, through",
        f"{POD}.containers[1]",
    )
    ran.says("note", "RANK: dropped, because the v1 operator overwrote it")
    (sidecar,) = ran.role.sidecars
    names = [e["name"] for e in sidecar["env"]]
    assert names == ["A", "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "PYTHONUNBUFFERED"]
    assert "valueFrom" in sidecar["env"][4]


def test_it_is_written_beside_node_and_gets_pet_variables() -> None:
    """Also when it stood first; envInjection names it from Trainer 2.3 on."""
    result = chain(beside(LOGS, first=True))
    assert [c["name"] for c in result.pod()["containers"]] == ["node", "logs"]
    assert result.runtime is not None
    assert result.runtime["spec"]["mlPolicy"]["torch"] == {
        "envInjection": {"targets": [{"jobName": "node", "containerNames": ["logs"]}]}
    }
    older = chain(beside(LOGS), target("2.2"))
    assert older.runtime is not None
    assert older.runtime["spec"]["mlPolicy"]["torch"] == {}
    assert "through envInjection" not in older.says("TJ212", "warning", "container 'logs'").message


def test_two_jobs_need_no_injection() -> None:
    """Their programs carry PET_* as literals."""
    data = beside(LOGS, workers=1, worker={"container": {"image": "o:1"}})
    ran = alone(RULE, data, after=AFTER)
    assert ran.draft.env_targets == []
    assert [len(r.sidecars) for r in ran.draft.roles] == [1, 1]


def test_a_sidecar_without_env_and_name_of_the_job() -> None:
    """What the runtime's own env would say cannot be given to a sidecar: it gets none."""
    data = beside({"name": "x", "image": "x:1"}, metadata={"generateName": "d-"})
    ran = alone(RULE, data, after=AFTER)
    assert ran.role.sidecars == [{"name": "x", "image": "x:1"}]
