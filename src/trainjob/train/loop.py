"""One optimizer step after the other, and what has to happen between two of them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from trainjob.train.data.batch import Step
from trainjob.train.faults import Code, TrainError
from trainjob.train.model.build import Built


@dataclass(frozen=True, slots=True)
class Done:
    """One optimizer step, as all ranks agree on it.

    `loss`: mean cross entropy of the step's targets, nats; `grad_norm`: before clipping; `tokens`, `targets`: over
    all ranks; `seconds`: from the end of the step before to the end of this one, waiting for data and checkpoints
    included; `told`: a rank was told to end.
    """

    step: int
    loss: float
    grad_norm: float
    lr: float
    tokens: int
    targets: int
    epoch: int
    seconds: float
    told: bool = False


@dataclass
class Loop:
    """Computes steps. Saving and reporting are left to whoever asks for the next one.

    `before_update`: called before weights change; `told`: whether this process was told to end; `step`: steps that
    are done.
    """

    built: Built
    schedule: Any
    max_grad_norm: float
    device: Any
    before_update: Callable[[], None]
    told: Callable[[], bool]
    step: int = 0

    def steps(self, data: Iterable[Step]) -> Iterator[Done]:
        """Computes the steps of `data` one by one. Raises TrainError(NOT_FINITE) before weights are spoilt."""
        optimizer = self.built.optimizer
        mark = time.monotonic()
        for each in data:
            loss, norm, told = self._gradients(each)
            lr = optimizer.param_groups[0]["lr"]
            self.before_update()
            optimizer.step()
            self.schedule.step()
            optimizer.zero_grad(set_to_none=True)
            self.step += 1
            now = time.monotonic()
            yield Done(self.step, loss, norm, lr, each.tokens, each.targets, each.epoch, now - mark, told)
            mark = now

    def _gradients(self, step: Step) -> tuple[float, float, bool]:
        """Gradients of a step; its loss, their norm, and whether any rank was told to end."""
        # Documents of nothing but words that are not learnt leave a step without targets: its loss is 0.
        targets = max(step.targets, 1)
        sums = torch.zeros(2, device=self.device)
        for number, batch in enumerate(step.batches, 1):
            sums[0] += self.built.backward(batch, targets, last=number == len(step.batches))
        norm = self.built.clip(self.max_grad_norm)
        sums[1] = float(self.told())
        if self.built.world > 1:
            dist.all_reduce(sums)
        total, told = sums.tolist()
        loss, size = total / targets, float(norm)
        if not (math.isfinite(loss) and math.isfinite(size)):
            what = (
                f"the loss is {loss:.4f}, the gradients' norm {size}" if math.isfinite(loss) else f"the loss is {loss}"
            )
            raise TrainError(
                Code.NOT_FINITE,
                f"{what} in step {self.step + 1}",
                "look at the data of that step, lower optim.lr, or lengthen optim.warmup_steps; "
                "checkpoints of earlier steps are sound",
            )
        return loss, size, told > 0
