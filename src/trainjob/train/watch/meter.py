"""From the numbers of single steps to rates, MFU and the time that is left."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

# The rate is that of the last steps: of so many, but of no more than so many seconds.
_STEPS: Final = 50
_SECONDS: Final = 120.0


class Done(Protocol):
    """One optimizer step as all ranks agree on it; `trainjob.train.loop.Done` is one.

    `loss`: mean cross entropy, nats; `grad_norm`: before clipping; `tokens`, `targets`: over all ranks;
    `seconds`: from the end of the step before to the end of this one.
    """

    @property
    def step(self) -> int: ...
    @property
    def loss(self) -> float: ...
    @property
    def grad_norm(self) -> float: ...
    @property
    def lr(self) -> float: ...
    @property
    def tokens(self) -> int: ...
    @property
    def epoch(self) -> int: ...
    @property
    def seconds(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Record:
    """What is reported of a step. Rates are smoothed; `rank` means a process with its GPU.

    `time`: Unix time, s; `seconds`: of this step; `mfu`: model FLOPs utilisation from 0 to 1, None without a
    known peak; `memory`: peak of rank 0, bytes; `remaining`: seconds to the end, None when the end is unknown;
    `total`: steps of the run, 0 when unknown.
    """

    step: int
    total: int
    epoch: int
    time: float
    loss: float
    lr: float
    grad_norm: float
    tokens: int
    seconds: float
    tokens_per_second: float
    tokens_per_second_per_rank: float
    mfu: float | None
    memory: int
    remaining: float | None

    @property
    def metrics(self) -> dict[str, float]:
        """The numbers that make a curve, by the names that every sink uses."""
        found = {
            "loss": self.loss,
            "lr": self.lr,
            "grad_norm": self.grad_norm,
            "epoch": float(self.epoch),
            "tokens": float(self.tokens),
            "seconds": self.seconds,
            "tokens_per_second": self.tokens_per_second,
            "tokens_per_second_per_rank": self.tokens_per_second_per_rank,
            "memory": float(self.memory),
        }
        return found if self.mfu is None else {**found, "mfu": self.mfu}


@dataclass
class Meter:
    """Makes a Record of each step.

    `total`: steps of the run, 0 if unknown; `flops_per_token`: of the model's forward and backward;
    `peak_flops`: of one device, per second, 0 if unknown; `memory`: peak in bytes.
    """

    total: int
    world: int
    flops_per_token: float = 0.0
    peak_flops: float = 0.0
    memory: Callable[[], int] = field(default=lambda: 0)
    clock: Callable[[], float] = time.time
    _window: deque[tuple[int, float]] = field(default_factory=deque, init=False)
    _first: bool = field(default=True, init=False)

    def measure(self, done: Done) -> Record:
        # The first step of a process compiles kernels and fills caches: it counts until there is a second.
        if self._first and self._window:
            self._window.clear()
            self._first = False
        self._window.append((done.tokens, max(done.seconds, 1e-9)))
        while len(self._window) > 1 and (len(self._window) > _STEPS or self._spent() > _SECONDS):
            self._window.popleft()
        spent = self._spent()
        rate = sum(tokens for tokens, _ in self._window) / spent
        own = rate / self.world
        remaining = max(self.total - done.step, 0) * spent / len(self._window) if self.total else None
        mfu = own * self.flops_per_token / self.peak_flops if self.peak_flops and self.flops_per_token else None
        return Record(
            step=done.step, total=self.total, epoch=done.epoch, time=self.clock(), loss=done.loss, lr=done.lr,
            grad_norm=done.grad_norm, tokens=done.tokens, seconds=done.seconds, tokens_per_second=rate,
            tokens_per_second_per_rank=own, mfu=mfu, memory=self.memory(), remaining=remaining,
        )  # fmt: skip

    def _spent(self) -> float:
        return sum(seconds for _, seconds in self._window)
