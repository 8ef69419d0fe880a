"""What this machine can do: capabilities, cgroups, root, architecture, disk, ports."""

from __future__ import annotations

import os
import platform
import shutil
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .problems import ClusterError

# linux/capability.h
CAP_SYS_RESOURCE: Final = 24
NEEDED_GB: Final = 15

_ARCHITECTURES: Final = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


def bounding_set(status: str) -> int:
    """The capability bounding set in the text of /proc/PID/status. Without that line: everything."""
    for line in status.splitlines():
        key, _, value = line.partition(":")
        if key == "CapBnd":
            return int(value.strip(), 16)
    return ~0


def has_capability(status: str, number: int) -> bool:
    """Whether a process with this /proc/PID/status may ever hold the capability."""
    return bool(bounding_set(status) >> number & 1)


def uses_cgroup_v1(mounts: str) -> bool:
    """Whether the text of /proc/mounts shows a version 1 hierarchy with a resource controller."""
    for line in mounts.splitlines():
        fields = line.split()
        if len(fields) >= 4 and fields[2] == "cgroup" and {"memory", "cpu"} & set(fields[3].split(",")):
            return True
    return False


@dataclass(frozen=True, slots=True)
class Host:
    """Facts about the machine that decide how the cluster is made."""

    system: str
    arch: str
    root: bool
    sys_resource: bool
    cgroup_v1: bool

    @classmethod
    def here(cls) -> Host:
        """This machine."""
        machine = platform.machine().lower()
        return cls(
            system=platform.system().lower(),
            arch=_ARCHITECTURES.get(machine, machine),
            root=os.geteuid() == 0,
            sys_resource=has_capability(_read("/proc/self/status"), CAP_SYS_RESOURCE),
            cgroup_v1=uses_cgroup_v1(_read("/proc/mounts")),
        )

    @property
    def variant(self) -> str:
        """Names the facts that a node image depends on."""
        return f"{self.arch}{'' if self.sys_resource else '-nosysres'}{'-cgroup1' if self.cgroup_v1 else ''}"


def require_disk(path: Path, needed_gb: int = NEEDED_GB) -> None:
    """Fails when the file system of `path` (or of its nearest existing parent) has too little room."""
    while not path.exists():
        path = path.parent
    free = shutil.disk_usage(path).free / 1e9
    if free < needed_gb:
        raise ClusterError(
            f"{free:.1f} GB free on the disk of {path}; the cluster and its images need {needed_gb} GB",
            "free some space (`docker system prune` removes unused images), or put the work folder on another"
            " disk with TRAINJOB_CLUSTER_HOME",
        )


def require_port(port: int) -> None:
    """Fails when something listens on the local port."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise ClusterError(
                f"port {port} on 127.0.0.1 is taken ({error.strerror})",
                f"stop what listens there (`ss -ltnp 'sport = :{port}'` names it), or leave --api-port out:"
                " a free port is then chosen",
            ) from error


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
