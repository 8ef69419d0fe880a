"""What a contender tells of its run: one JSON object, the last line on its standard output."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

# Steps that are not counted: allocators, thread pools and oneDNN's primitives warm up in them.
WARM = 2


def since_start() -> float:
    """Seconds since this process was created, interpreter start included (Linux, to 10 ms)."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    created = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - created


def peak_rss() -> int:
    """Bytes of this process's largest resident set so far."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


class Meter:
    """Notes the end of each optimizer step.

    `useful`: tokens of documents in the step, over all ranks, padding not counted; `computed`: with padding.
    """

    def __init__(self) -> None:
        self.ends: list[float] = []
        self.cpu: list[float] = []
        self.useful: list[int] = []
        self.computed: list[int] = []
        self.losses: list[float] = []
        self.first = self.first_at = 0.0

    def step(self, useful: int, computed: int, loss: float = float("nan")) -> None:
        if not self.ends:
            self.first, self.first_at = since_start(), time.time()
        self.ends.append(time.monotonic())
        self.cpu.append(time.process_time())
        self.useful.append(useful)
        self.computed.append(computed)
        self.losses.append(loss)

    def report(self, **more: object) -> None:
        """Prints the result; only rank 0 should."""
        counted = slice(WARM, None)
        seconds = self.ends[-1] - self.ends[WARM - 1] if len(self.ends) > WARM else float("nan")
        cpu = self.cpu[-1] - self.cpu[WARM - 1] if len(self.cpu) > WARM else float("nan")
        useful = sum(self.useful[counted])
        result = {
            "steps": len(self.ends),
            "counted_steps": len(self.useful[counted]),
            "useful_tokens": useful,
            "computed_tokens": sum(self.computed[counted]),
            "seconds": seconds,
            "cpu_seconds": cpu,
            "useful_tokens_per_second": useful / seconds,
            "useful_tokens_per_cpu_second": useful / cpu,
            "first_step_seconds": self.first,
            "first_step_at": self.first_at,
            "peak_rss": peak_rss(),
            "first_loss": self.losses[0],
            "last_loss": self.losses[-1],
            **more,
        }
        print(json.dumps(result), flush=True)
