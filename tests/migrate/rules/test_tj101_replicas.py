"""TJ101: Master and Worker become one number of nodes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.migrate.rules.support import GPU, SPECS, alone, chain, v1
from trainjob.migrate.rules import tj101_replicas, tj102_roles

RULE = tj101_replicas.RULE
AFTER = (tj102_roles.RULE,)


def test_noop_without_devices() -> None:
    """One pod without accelerators: only the sum is said."""
    ran = alone(RULE, v1())
    assert (ran.draft.nodes, ran.draft.world_size) == (1, 1)
    assert ran.summary == [("note", SPECS)]
    ran.says("note", r"asked for 1 pod without accelerators \(Master 1\)")


@pytest.mark.parametrize(
    ("data", "nodes", "text"),
    [
        (v1(GPU), 1, "1 pod x 1 GPU = 1 GPU (Master 1)"),
        (v1(GPU, workers=2), 3, "3 pods x 1 GPU = 3 GPUs (Master 1 + Worker 2)"),
        (v1(GPU, workers=4, master=False), 4, "4 pods x 1 GPU = 4 GPUs (Worker 4)"),
        (v1({"resources": {"limits": {"nvidia.com/gpu": "8"}}}, workers=1), 2, "2 pods x 8 GPUs = 16 GPUs"),
        (v1({"resources": {"requests": {"amd.com/gpu": 2}}}), 1, "1 pod x 2 GPUs = 2 GPUs"),
        (v1({"resources": {"limits": {"aws.amazon.com/neuron": 16}}}), 1, "1 pod x 16 aws.amazon.com/neuron = 16 aws."),
        (v1(GPU, workers=2, worker={"container": None}), 3, "3 pods with 1 GPU in all (Master 1 + Worker 2)"),
        (v1({"resources": {"limits": {"nvidia.com/gpu": "many"}}}), 1, "asked for 1 pod (Master 1)"),
        (
            v1({"resources": {"limits": {"nvidia.com/gpu": 1, "nvidia.com/mig-1g.5gb": 2}}}),
            1,
            "1 pod x 1 GPU = 1 GPU, 1 pod x 2 nvidia.com/mig-1g.5gb = 2 nvidia.com/mig-1g.5gb",
        ),
    ],
)
def test_pods_and_devices_are_counted(data: Any, nodes: int, text: str) -> None:
    """Master 1 + Worker N is N + 1 pods, and the total says how many devices that is."""
    ran = alone(RULE, data, after=AFTER)
    assert ran.draft.nodes == nodes
    assert text in ran.findings[0].message


@pytest.mark.parametrize(
    ("spec", "world"),
    [
        ({}, 3),
        ({"nprocPerNode": "auto"}, 3),
        ({"nprocPerNode": "4"}, 12),
        ({"elasticPolicy": {"nProcPerNode": 4}}, 3),
    ],
)
def test_world_size_is_v1s(spec: Any, world: int) -> None:
    """Pods times an integer nprocPerNode; the deprecated field never counted."""
    assert alone(RULE, v1(workers=2, spec=spec), after=AFTER).draft.world_size == world


def test_a_role_with_no_replicas_is_absent() -> None:
    """Master 0 and Worker 3 are three pods, and the text says so."""
    data = v1(workers=3, role={"replicas": 0}, worker={"role": {"replicas": 3}})
    ran = alone(RULE, data, after=AFTER)
    assert ran.draft.nodes == 3
    ran.says("note", r"3 pods without accelerators \(Worker 3\)")


def test_the_number_is_written() -> None:
    """numNodes stands even for one pod: without `trainer` Trainer sets no PET_* at all."""
    assert chain(v1(GPU)).trainer["numNodes"] == 1
    assert chain(v1(GPU, workers=2)).trainer["numNodes"] == 3
