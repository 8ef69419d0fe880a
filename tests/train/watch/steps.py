"""Steps as the loop reports them, for tests."""

from __future__ import annotations

from dataclasses import dataclass

from trainjob.train.watch.meter import Meter, Record


@dataclass(frozen=True, slots=True)
class Done:
    step: int
    loss: float = 2.5
    grad_norm: float = 0.82
    lr: float = 2e-5
    tokens: int = 1000
    epoch: int = 0
    seconds: float = 0.5


def record(step: int, total: int = 100, **changes: float) -> Record:
    meter = Meter(total, world=2, memory=lambda: 3 * 2**30, clock=lambda: 1_700_000_000.25 + step)
    return meter.measure(Done(step, **changes))  # type: ignore[arg-type]


def records(*steps: int) -> list[Record]:
    return [record(step) for step in steps]
