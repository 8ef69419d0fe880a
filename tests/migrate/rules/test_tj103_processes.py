"""TJ103: the number of processes per node is written only where v2 would not find it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.migrate.rules.support import GPU, MAIN, alone, chain, noop, refusal, v1
from trainjob.migrate.rules import tj101_replicas, tj102_roles, tj103_processes

RULE = tj103_processes.RULE
AFTER = (tj102_roles.RULE, tj101_replicas.RULE)
AT = "spec.nprocPerNode"
TORCHRUN = {"command": ["torchrun", "t.py"]}


@pytest.mark.parametrize(
    "data",
    [
        v1(),
        v1(GPU),
        v1({**GPU, **TORCHRUN}),
        v1(GPU, spec={"nprocPerNode": "auto"}),
        v1(GPU, spec={"nprocPerNode": "gpu"}),
        v1({"command": ["sh", "-c", "echo hello"]}),
    ],
)
def test_noop_where_trainer_finds_the_number(data: Any) -> None:
    """Nothing set, GPUs with `auto`, plain python without GPUs: nothing to write and nothing to say."""
    noop(RULE, data, after=AFTER)


def test_an_integer_is_carried() -> None:
    """Without a word, when a launcher starts the processes."""
    ran = alone(RULE, v1({**GPU, **TORCHRUN}, spec={"nprocPerNode": "4"}), after=AFTER)
    assert ran.draft.procs_per_node == 4
    assert ran.findings == []
    assert chain(v1({**GPU, **TORCHRUN}, spec={"nprocPerNode": "4"})).trainer["numProcPerNode"] == 4


@pytest.mark.parametrize(("workers", "text"), [(2, "started 3 processes"), (0, "started 1 process,")])
def test_several_processes_with_plain_python_hang(workers: int, text: str) -> None:
    """In v1 as in v2: one process per pod, and a WORLD_SIZE that counts more."""
    ran = alone(RULE, v1(workers=workers, spec={"nprocPerNode": "4"}), after=AFTER)
    ran.says("warning", text, at=AT)
    assert ran.draft.procs_per_node == 4


def test_one_process_with_plain_python_is_fine() -> None:
    """The number is carried."""
    ran = alone(RULE, v1(spec={"nprocPerNode": "1"}), after=AFTER)
    assert (ran.draft.procs_per_node, ran.findings) == (1, [])


def test_the_deprecated_field_is_carried() -> None:
    """With a note; beside the new field it loses."""
    data = v1(TORCHRUN, workers=1, spec={"elasticPolicy": {"nProcPerNode": 2}})
    ran = alone(RULE, data, after=AFTER)
    ran.says("note", "deprecated elasticPolicy.nProcPerNode", at="spec.elasticPolicy.nProcPerNode")
    assert ran.draft.procs_per_node == 2
    data["spec"]["nprocPerNode"] = "3"
    ran = alone(RULE, data, after=AFTER)
    ran.says("warning", "v1 refuses both", at="spec.elasticPolicy.nProcPerNode")
    assert ran.draft.procs_per_node == 3


@pytest.mark.parametrize("value", ["many", "-1", "0", "1.5", "9" * 5000])
def test_other_texts_are_refused(value: str) -> None:
    """torchrun would refuse them in v1 too."""
    finding = refusal(RULE, v1(spec={"nprocPerNode": value}), after=AFTER)
    assert "is none of auto, gpu, cpu or a number" in finding.message
    assert finding.where is not None
    assert finding.where.path == AT


@pytest.mark.parametrize(
    ("resources", "count", "text"),
    [
        ({}, None, "v2 starts 1"),
        ({"requests": {"cpu": "3500m"}}, 4, "v2 starts 4, the CPU request rounded up"),
        ({"limits": {"cpu": 2}}, 2, "v2 starts 2"),
    ],
)
def test_cpu_means_the_request(resources: Any, count: int | None, text: str) -> None:
    """v1 took the CPUs of the host."""
    ran = alone(RULE, v1({"resources": resources}, spec={"nprocPerNode": "cpu"}), after=AFTER)
    ran.says("warning", text, at=AT)
    assert ran.draft.procs_per_node == count


@pytest.mark.parametrize(
    ("resource", "amount", "command", "count"),
    [
        ("aws.amazon.com/neuron", 16, ["torchrun", "t.py"], 16),
        ("aws.amazon.com/neuron", 16, ["python", "t.py"], 1),
        ("habana.ai/gaudi", 8, ["torchrun", "--nproc_per_node=4", "t.py"], 4),
        ("nvidia.com/mig-1g.10gb", 2, ["torchrun", "t.py"], 1),
        ("habana.ai/gaudi", 8, ["accelerate", "launch", "t.py"], 8),
    ],
)
def test_devices_that_trainer_does_not_know(resource: str, amount: int, command: list[str], count: int) -> None:
    """Without "gpu" in the name Trainer would start one process per CPU."""
    ran = alone(RULE, v1({"command": command, "resources": {"limits": {resource: amount}}}), after=AFTER)
    ran.says(
        "note", rf"numProcPerNode {count} is set explicitly: Trainer does not take {resource}", f"{MAIN}.resources"
    )
    assert ran.draft.procs_per_node == count


def test_a_flag_decides_beside_gpus() -> None:
    """torchrun's own number is told, and nothing is set."""
    data = v1({**GPU, "command": ["torchrun", "--nproc-per-node", "2", "t.py"]}, workers=2)
    ran = alone(RULE, data, after=AFTER)
    ran.says("note", r"--nproc_per_node=2 decides the number of processes: 3 x 2 = 6", at=MAIN)
    assert ran.draft.procs_per_node is None


def test_a_flag_decides_without_gpus() -> None:
    """Also where Trainer would count CPUs."""
    ran = alone(RULE, v1({"command": ["torchrun", "--nproc_per_node=2", "t.py"]}), after=AFTER)
    ran.says("note", "--nproc_per_node=2 decides", at=MAIN)


@pytest.mark.parametrize(
    ("resources", "text"),
    [
        ({}, "v2 says 1, since no resources are set"),
        ({"requests": {"cpu": "2500m"}}, "v2 says 3, from the CPU request"),
    ],
)
def test_a_launcher_without_devices_counts_cpus(resources: Any, text: str) -> None:
    """v1 took the host's CPUs, v2 takes the request."""
    ran = alone(RULE, v1({**TORCHRUN, "resources": resources}), after=AFTER)
    ran.says("warning", text, at=MAIN)
    assert ran.draft.procs_per_node is None
