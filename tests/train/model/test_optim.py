"""AdamW's groups, the schedules' curves, clipping."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.train.model import tools
from trainjob.train.config import Optim
from trainjob.train.faults import TrainError
from trainjob.train.model import optim
from trainjob.train.model.build import build


def test_decay_is_for_matrices_that_are_not_embeddings(tmp_path: Path) -> None:
    model = build(tools.config(tools.folder(tmp_path, attention_bias=True)), device=tools.CPU).model
    groups = optim.adamw(model, Optim(weight_decay=0.1, betas=(0.8, 0.9), eps=1e-6)).param_groups
    names = {id(p): name for name, p in model.named_parameters()}
    decayed, others = ({names[id(p)] for p in g["params"]} for g in groups)
    assert (groups[0]["weight_decay"], groups[1]["weight_decay"]) == (0.1, 0.0)
    assert groups[0]["betas"] == (0.8, 0.9)
    assert groups[0]["eps"] == 1e-6
    assert decayed | others == set(names.values())
    assert not decayed & others
    assert "model.embed_tokens.weight" in others
    assert "model.norm.weight" in others
    assert "lm_head.weight" in decayed
    assert all(name.endswith(("bias", "norm.weight", "layernorm.weight", "embed_tokens.weight")) for name in others)


def test_two_betas_are_wanted() -> None:
    with pytest.raises(TrainError, match="two numbers"):
        optim.adamw(torch.nn.Linear(1, 1), Optim(betas=(0.9,)))


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("linear", [0, 0.5, 1, 0.8875, 0.775, 0.6625, 0.55, 0.4375, 0.325, 0.2125, 0.1]),
        ("cosine", [0, 0.5, 1, 0.96575, 0.86820, 0.72221, 0.55, 0.37779, 0.23180, 0.13425, 0.1]),
        ("constant", [0, 0.5, 1, 1, 1, 1, 1, 1, 1, 1, 1]),
    ],
)
def test_schedules(kind: str, wanted: list[float]) -> None:
    factor = optim.factor(Optim(schedule=kind, warmup_steps=2, min_lr_ratio=0.1), 10)
    assert [factor(step) for step in range(11)] == pytest.approx(wanted, abs=1e-5)
    assert factor(1000) == pytest.approx(wanted[-1])


def test_a_schedule_goes_on_from_its_state() -> None:
    def new() -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LambdaLR]:
        optimizer = optim.adamw(torch.nn.Linear(2, 2), Optim(lr=1.0, warmup_steps=3))
        return optimizer, optim.schedule(optimizer, Optim(lr=1.0, warmup_steps=3), 10)

    first, one = new()
    for _ in range(5):
        first.step()
        one.step()
    second, other = new()
    second.load_state_dict(first.state_dict())
    other.load_state_dict(one.state_dict())
    for _ in range(5):
        first.step(), one.step(), second.step(), other.step()
        assert first.param_groups[0]["lr"] == second.param_groups[0]["lr"] > 0


@pytest.mark.parametrize("limit", [0.0, 0.5, 1e9])
def test_clipping_is_that_of_torch(limit: float) -> None:
    torch.manual_seed(0)
    ours, theirs = torch.nn.Linear(5, 3), torch.nn.Linear(5, 3)
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        one.grad = torch.randn_like(one)
        other.grad = one.grad.clone()
    norm = optim.clip(ours, limit)
    torch.testing.assert_close(norm, torch.nn.utils.clip_grad_norm_(theirs.parameters(), limit or 1e30))
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad)


def test_without_gradients_the_norm_is_zero() -> None:
    assert optim.clip(torch.nn.Linear(2, 2), 1.0).item() == 0.0
