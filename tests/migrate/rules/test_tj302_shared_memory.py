"""TJ302: shared memory is looked at and never changed."""

from __future__ import annotations

import pytest

from tests.migrate.rules.support import GPU, MAIN, POD, alone, noop, v1
from trainjob.migrate.rules import tj302_shared_memory

RULE = tj302_shared_memory.RULE
EIGHT = {"resources": {"limits": {"nvidia.com/gpu": 8}}}


def test_noop_for_one_device() -> None:
    """64 MiB do; so does a volume at /dev/shm."""
    noop(RULE, v1(GPU))
    memory = {"volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}]}
    noop(RULE, v1({**EIGHT, "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm/"}]}, memory))


def test_several_devices_without_shared_memory() -> None:
    """A note."""
    alone(RULE, v1(EIGHT)).says("note", "no volume at /dev/shm: 64 MiB, as in v1", at=MAIN)


@pytest.mark.parametrize("path", ["/dev/shm", "/dev/shm/"])
def test_the_nodes_own_shared_memory_is_kept(path: str) -> None:
    """With a hint at a volume of the pod's own."""
    data = v1(
        {"volumeMounts": [{"name": "h", "mountPath": path}]}, {"volumes": [{"name": "h", "hostPath": {"path": path}}]}
    )
    alone(RULE, data).says("note", "/dev/shm of the node is kept.*\nan emptyDir", at=f"{POD}.volumes[0]")
