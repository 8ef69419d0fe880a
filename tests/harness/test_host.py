from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.cluster.host import (
    CAP_SYS_RESOURCE,
    Host,
    bounding_set,
    has_capability,
    require_disk,
    require_port,
    uses_cgroup_v1,
)
from tests.cluster.problems import ClusterError

STATUS = "Name:\tcat\nCapEff:\t000001fffeffffff\nCapBnd:\t{}\nCapAmb:\t0000000000000000\n"


def test_the_bounding_set_is_the_line_of_that_name() -> None:
    assert bounding_set(STATUS.format("000001ffffffffff")) == 0x1FFFFFFFFFF


@pytest.mark.parametrize(
    ("mask", "has"), [("000001ffffffffff", True), ("000001fffeffffff", False), ("00000000a80425fb", False)]
)
def test_bit_24_is_the_capability_to_exceed_limits(mask: str, has: bool) -> None:
    assert has_capability(STATUS.format(mask), CAP_SYS_RESOURCE) is has


def test_a_system_without_the_line_lacks_nothing() -> None:
    assert has_capability("", CAP_SYS_RESOURCE)


@pytest.mark.parametrize(
    ("mounts", "version1"),
    [
        ("cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n", True),
        ("cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n", False),
        # systemd's own named hierarchy beside version 2 counts nothing.
        (
            "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\ncgroup /sys/fs/cgroup/systemd cgroup rw,name=systemd 0 0\n",
            False,
        ),
        ("", False),
    ],
)
def test_cgroup_version_1_is_a_hierarchy_with_a_controller(mounts: str, version1: bool) -> None:
    assert uses_cgroup_v1(mounts) is version1


def test_the_variant_names_what_a_node_image_depends_on() -> None:
    assert Host("linux", "amd64", True, sys_resource=True, cgroup_v1=False).variant == "amd64"
    assert Host("linux", "arm64", True, sys_resource=False, cgroup_v1=True).variant == "arm64-nosysres-cgroup1"


def test_too_small_a_disk_is_told_with_the_room_there_is(tmp_path: Path) -> None:
    require_disk(tmp_path / "not" / "made" / "yet", needed_gb=0)
    with pytest.raises(ClusterError, match=r"GB free on the disk of .* need 10000000 GB") as caught:
        require_disk(tmp_path / "not" / "made" / "yet", needed_gb=10_000_000)
    assert "TRAINJOB_CLUSTER_HOME" in caught.value.next_step


def test_a_taken_port_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(ClusterError, match=f"port {port} on 127.0.0.1 is taken"):
            require_port(port)
    require_port(port)
