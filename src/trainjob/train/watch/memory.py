"""Memory of this process: of its GPU, or of the host when it has none."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_STATUS: Final = Path("/proc/self/status")


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes. `peak`: the most since the process started."""

    current: int
    peak: int


def of(device: Any) -> Memory:
    """Of a torch device or its name. On a GPU what tensors hold, without torch's cache; else the resident set."""
    if str(device).startswith("cuda"):
        import torch

        return Memory(torch.cuda.memory_allocated(device), torch.cuda.max_memory_allocated(device))
    return host()


def host() -> Memory:
    """The resident set of this process (VmRSS and VmHWM, proc_pid_status(5))."""
    found = {"VmRSS": 0, "VmHWM": 0}
    for line in _STATUS.read_text().splitlines():
        key, _, value = line.partition(":")
        if key in found:
            found[key] = int(value.split()[0]) * 1024
    return Memory(found["VmRSS"], found["VmHWM"])
