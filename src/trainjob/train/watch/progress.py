"""What a run prints: plain lines that grep and people read. Rank 0 alone prints."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TextIO

from trainjob.train.watch import talk
from trainjob.train.watch.meter import Record
from trainjob.train.watch.units import count, duration, size


@dataclass
class Progress:
    """Prints to `out`; a stream that is gone stops nothing.

    `device`: "GPU", or "process" when the ranks compute on CPUs; `every`: steps between lines.
    """

    device: str = "GPU"
    every: int = 1
    out: TextIO = field(default_factory=lambda: sys.stdout)
    _begun: bool = field(default=False, init=False)

    def start(self, facts: Mapping[str, str]) -> None:
        """A block of `name  value` lines, for what does not change any more."""
        wide = max((len(name) for name in facts), default=0)
        self._print("\n".join(f"{name:<{wide}}  {value}" for name, value in facts.items() if value))

    def resumed(self, step: int, url: str, seen: int = 0) -> None:
        """`seen`: the last step that was reported before, 0 if unknown: what lies between was lost."""
        lost = f"; {seen - step} steps are computed again" if seen > step else ""
        self._print(f"resumed from step {step} of {url}{lost}")

    def step(self, record: Record) -> None:
        """Prints every `every`-th step, the last, and the first of this process."""
        if not self._begun or record.step % self.every == 0 or record.step == record.total:
            self._print(line(record, self.device))
        self._begun = True

    def saved(self, step: int, url: str, seconds: float | None = None) -> None:
        """`seconds`: from the start of the save until it was whole."""
        took = "" if seconds is None else f" in {seconds:.1f} s"
        self._print(f"saved step {step} to {url}{took}")

    def say(self, text: str) -> None:
        self._print(text)

    def end(self, record: Record | None, seconds: float) -> None:
        """`record`: the last step, None when there was nothing left to do; `seconds`: of the whole process."""
        if record is None:
            self._print(f"done: nothing was left to do, after {duration(seconds)}")
            return
        self._print(
            f"done: step {record.step}  loss {record.loss:.4f}  {count(record.tokens_per_second)} tok/s  "
            f"mem {size(record.memory)}  after {duration(seconds)}"
        )

    def _print(self, text: str) -> None:
        talk.write(text, self.out)


def line(record: Record, device: str) -> str:
    """`step 120/1000  loss 2.3141  lr 1.9e-05  ...  ETA 12 min`."""
    of = f"/{record.total}" if record.total else ""
    fields = [
        f"step {record.step}{of}",
        f"loss {record.loss:.4f}",
        f"lr {record.lr:.2g}",
        f"grad {record.grad_norm:.3g}",
        f"{count(record.tokens_per_second)} tok/s",
        f"{count(record.tokens_per_second_per_rank)} tok/s/{device}",
    ]
    if record.mfu is not None:
        fields.append(f"MFU {100 * record.mfu:.1f} %")
    fields.append(f"mem {size(record.memory)}")
    if record.remaining is not None:
        fields.append(f"ETA {duration(record.remaining)}")
    return "  ".join(fields)
