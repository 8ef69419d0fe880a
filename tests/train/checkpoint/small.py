"""A network with dropout that trains in microseconds, and what the tests ask of a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from trainjob.train.checkpoint.save import Checkpointer
from trainjob.train.checkpoint.state import State
from trainjob.train.config import Checkpoint


class Net(nn.Module):
    """5 -> 6 -> 3 with dropout; a row less than two ranks can halve, and fewer rows than three ranks."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(5, 6)
        self.drop = nn.Dropout(0.3)
        self.last = nn.Linear(6, 2)

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.last(self.drop(torch.relu(self.first(value))))
        return result


class Run:
    """Model, AdamW and schedule; `step()` trains one step on data that its number determines."""

    def __init__(self, wrap: Callable[[nn.Module], Any] = lambda model: model, rank: int = 0, seed: int = 0) -> None:
        torch.manual_seed(seed)
        self.model = Net()
        self.called = wrap(self.model)
        torch.manual_seed(seed + 100 + rank)
        self.optimizer = torch.optim.AdamW(
            [{"params": [self.model.first.weight, self.model.last.weight]},
             {"params": [self.model.first.bias, self.model.last.bias], "weight_decay": 0.0}], lr=0.01,
        )  # fmt: skip
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: 1 / (1 + step))
        self.rank = rank
        self.done = 0
        self.state = State(
            self.called, self.optimizer, self.schedule, extra=lambda: {"row": 7 * self.done}, seed=seed, rank=rank
        )

    def step(self, saver: Checkpointer | None = None) -> float:
        data = torch.Generator().manual_seed(1000 * self.done + self.rank)
        loss = self.called(torch.randn(4, 5, generator=data)).square().mean()
        loss.backward()
        if saver is not None:
            saver.before_update()
        self.optimizer.step()
        self.schedule.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.done += 1
        return float(loss.item())

    def saver(self, url: str | Path, **more: Any) -> Checkpointer:
        settings = {name: more.pop(name) for name in ("keep", "asynchronous", "resume", "every") if name in more}
        said: list[str] = more.pop("said", [])
        return Checkpointer(Checkpoint(**settings), url=str(url), state=self.state, say=said.append, **more)


def whole(run: Run) -> dict[str, torch.Tensor]:
    """Weights and moments, gathered and copied."""
    found: dict[str, torch.Tensor] = {}
    for name, value in run.state.snapshot().tensors.items():
        if not name.startswith("rng."):
            found[name] = (value.full_tensor() if hasattr(value, "device_mesh") else value).clone()
    return found


def equal(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    """To the last bit."""
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)
