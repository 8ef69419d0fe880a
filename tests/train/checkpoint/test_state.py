import random
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.train.checkpoint.small import Net, Run
from trainjob.train.checkpoint.state import State
from trainjob.train.faults import Code, TrainError


def test_names_are_those_of_the_bare_model() -> None:
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper

    model = Net()
    bare = set(State(model).weights())
    wrapped = Net()
    wrapped.first = checkpoint_wrapper(wrapped.first)
    wrapped.last = torch.compile(wrapped.last, backend="eager")
    assert set(State(torch.compile(wrapped, backend="eager")).weights()) == bare == {
        "first.weight", "first.bias", "last.weight", "last.bias"
    }  # fmt: skip


def test_frozen_weights_are_left_out() -> None:
    model = Net()
    model.first.requires_grad_(False)
    model.register_buffer("frozen_too", torch.zeros(2))
    assert set(State(model).weights()) == {"last.weight", "last.bias"}


def test_tied_weights_are_saved_once() -> None:
    model = nn.ModuleDict({"embed": nn.Embedding(4, 3), "head": nn.Linear(3, 4, bias=False)})
    model["head"].weight = model["embed"].weight
    assert set(State(model).weights()) == {"embed.weight"}


def test_buffers_are_fixed_when_the_save_begins() -> None:
    model = nn.BatchNorm1d(2)
    tensors = State(model).snapshot().tensors
    model(torch.randn(8, 2))
    assert torch.equal(tensors["model.running_mean"], torch.zeros(2))
    assert not torch.equal(model.running_mean, torch.zeros(2))


def test_what_is_in_a_snapshot() -> None:
    run = Run()
    run.step()
    snapshot = run.state.snapshot()
    moments = {name for name in snapshot.tensors if name.startswith("optim.first.weight.")}
    assert moments == {f"optim.first.weight.{key}" for key in ("exp_avg", "exp_avg_sq", "step")}
    assert {name for name in snapshot.tensors if name.startswith("rng.")} == {"rng.0.python", "rng.0.torch"}
    assert snapshot.values["extra"] == {"row": 7}
    assert [group["weight_decay"] for group in snapshot.values["optim"]["groups"]] == [0.01, 0.0]


def test_values_that_are_no_json() -> None:
    state = State(Net(), extra=lambda: {"where": Path("x")})
    with pytest.raises(TrainError) as caught:
        state.snapshot()
    assert caught.value.code is Code.CONFIG


def test_generators_of_a_new_rank_are_the_same_each_time() -> None:
    drawn = []
    for _ in range(2):
        state = State(Net(), seed=3, rank=5)
        state.apply(7, {}, {"optim": {"groups": [], "numbers": {}}, "schedule": None, "extra": {}})
        drawn.append((torch.rand(3).tolist(), random.random()))
    assert drawn[0] == drawn[1]
    other = State(Net(), seed=3, rank=6)
    other.apply(7, {}, {"optim": {"groups": [], "numbers": {}}, "schedule": None, "extra": {}})
    assert (torch.rand(3).tolist(), random.random()) != drawn[0]
