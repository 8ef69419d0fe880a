"""TJ206: the variables that v1 gave every process and v2 does not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.migrate.rules.support import MAIN, POD, alone, chain, v1
from trainjob.migrate.rules import (
    tj101_replicas,
    tj102_roles,
    tj103_processes,
    tj105_name,
    tj203_command,
    tj204_env,
    tj206_rendezvous,
)

RULE = tj206_rendezvous.RULE
AFTER = (
    tj102_roles.RULE, tj105_name.RULE, tj101_replicas.RULE, tj103_processes.RULE, tj203_command.RULE, tj204_env.RULE,
)  # fmt: skip
RANK = {"valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}}
SHIM = {
    "MASTER_ADDR": {"value": "demo-node-0-0.demo"},
    "MASTER_PORT": {"value": "29500"},
    "WORLD_SIZE": {"value": "3"},
    "RANK": RANK,
    "PYTHONUNBUFFERED": {"value": "1"},
}


def env(data: Any, role: int = 0) -> dict[str, Any]:
    entries = alone(RULE, data, after=AFTER).draft.roles[role].env
    names = [e["name"] for e in entries]
    assert len(set(names)) == len(names)
    return {e["name"]: {k: v for k, v in e.items() if k != "name"} for e in entries}


def test_noop_for_bare_torchrun_but_for_buffering() -> None:
    """torchrun sets everything itself: only PYTHONUNBUFFERED, without a word."""
    ran = alone(RULE, v1({"command": ["torchrun", "t.py"]}, workers=2), after=AFTER)
    assert ran.findings == []
    assert ran.role.env == [{"name": "PYTHONUNBUFFERED", "value": "1"}]


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (["python", "t.py"], "the program reads its rank from them"),
        (None, "the image's entrypoint may read them"),
        (["accelerate", "launch", "t.py"], "without RANK accelerate trains on each node alone"),
        (["sh", "-c", "torchrun t.py"], "the command uses them, or may"),
        (["sh", "-c", "./start"], "a shell script may read them"),
        (["torchrun", "--node_rank=$(RANK)", "t.py"], "the command uses them"),
        (["composer", "t.py"], "the program reads its rank"),
    ],
)
def test_other_programs_get_v1s_variables(command: Any, why: str) -> None:
    """All five, with v1's numbers, and a note that says why."""
    data = v1({"command": command}, workers=2)
    assert env(data) == SHIM
    ran = alone(RULE, data, after=AFTER)
    ran.says("note", rf"trainer.env sets MASTER_ADDR, .* WORLD_SIZE 3, .* as v1 did: {why}", at=MAIN)


def test_world_size_counts_processes_of_an_integer() -> None:
    """v1's formula."""
    assert env(v1({"command": ["sh", "-c", "./x"]}, workers=2, spec={"nprocPerNode": "4"}))["WORLD_SIZE"] == {
        "value": "12"
    }


def test_without_a_name_the_runtime_says_them() -> None:
    """Nothing is written, but WORLD_SIZE when it is not the number of pods."""
    data = v1(workers=2, metadata={"generateName": "demo-"})
    assert env(data) == {}
    alone(RULE, data, after=AFTER).says("note", "the runtime torch-v1-compat sets MASTER_ADDR")
    data["spec"]["nprocPerNode"] = "2"
    assert env(data) == {"WORLD_SIZE": {"value": "6"}}
    assert chain(v1(metadata={"generateName": "demo-"})).job["spec"]["runtimeRef"]["name"] == "torch-v1-compat"


def test_the_users_own_values_stay_where_v1_set_none() -> None:
    """Workers alone with a RANK of their own."""
    data = v1({"env": [{"name": "RANK", "value": "0"}]}, master=False, workers=2)
    assert env(data)["RANK"] == {"value": "0"}
    assert env(data)["WORLD_SIZE"] == {"value": "2"}


def test_workers_alone_train_together_now() -> None:
    """v1 set no variables there; told for plain python."""
    alone(RULE, v1(master=False, workers=2), after=AFTER).says("note", "without a Master v1 set no RANK")


def test_two_jobs_carry_everything_themselves() -> None:
    """Without the torch policy nobody else sets PET_*; bare torchrun gets them too."""
    data = v1(
        {"command": ["torchrun", "t.py"]},
        workers=2,
        worker={"container": {"command": ["torchrun", "t.py"], "image": "o:1"}},
    )
    for role in (0, 1):
        found = env(data, role)
        assert found["PET_NNODES"] == {"value": "3"}
        assert found["PET_NPROC_PER_NODE"] == {"value": "auto"}
        assert found["PET_MASTER_ADDR"] == found["MASTER_ADDR"] == {"value": "demo-node-0-0.demo"}
        assert found["PET_MASTER_PORT"] == {"value": "29500"}
        assert found["RANK"] == found["PET_NODE_RANK"]
        assert "job-global-index" in found["RANK"]["valueFrom"]["fieldRef"]["fieldPath"]
    ran = alone(RULE, data, after=AFTER)
    assert len(ran.findings) == 2
    assert all(f.message.startswith("both jobs of the runtime set MASTER_ADDR") for f in ran.findings)


@pytest.mark.parametrize(
    ("script", "severity", "text"),
    [
        ("print(os.environ['RANK'])", "note", "go.py in ConfigMap code reads the v1 variables; they are set"),
        ("dist.init_process_group()", "note", "reads the v1 variables"),
        ("os.environ['PET_NODE_RANK']", "note", "reads PET_"),
        ("connect('demo-master-0')", "warning", "holds a v1 host name of this job; the ConfigMap is not changed"),
    ],
)
def test_scripts_of_the_stream_are_read(script: str, severity: str, text: str) -> None:
    """A ConfigMap that the pod mounts and that stands in the same input."""
    data = v1(pod={"volumes": [{"name": "v", "emptyDir": {}}, {"name": "c", "configMap": {"name": "code"}}]})
    ran = alone(RULE, data, after=AFTER, scripts={"code": {"go.py": script}, "other": {"x": "RANK"}})
    ran.says(severity, text, at=f"{POD}.volumes[1]")


def test_scripts_without_any_of_it_are_no_news() -> None:
    """Nothing to say."""
    data = v1({"command": ["torchrun", "t.py"]}, pod={"volumes": [{"name": "c", "configMap": {"name": "code"}}]})
    assert alone(RULE, data, after=AFTER, scripts={"code": {"a": "print(1)"}}).findings == []
