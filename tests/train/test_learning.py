"""It learns: the loss falls on data that can be learnt, along the same curve on any number of processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.train import tiny
from tests.train.trainer import Ran, train

FULL: dict[str, Any] = {"train__steps": 24}
# An adapter can only bend what is there: its base has learnt counting by other steps first.
LORA: dict[str, Any] = {"train__steps": 16, "lora__rank": 8, "optim__lr": "1e-2"}
# fp32 sums in another order; measured at most 2e-5 after 24 steps.
CURVE = 2e-4


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.write(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def full(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """One process, all weights; its export is the base of the adapters."""
    ran = train(base, tmp_path_factory.mktemp("full"), export__kind="full", **FULL)
    assert ran.code == 0, ran.log
    return ran


@pytest.fixture(scope="module")
def step_two(full: Ran, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the adapters learn: the trained model, and documents that count in steps of two."""
    folder = tmp_path_factory.mktemp("step-two")
    (folder / "model").symlink_to(full.folder / "export")
    tiny.documents(folder / "docs.jsonl", stride=2)
    return folder


@pytest.fixture(scope="module")
def lora(step_two: Path, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    ran = train(step_two, tmp_path_factory.mktemp("lora"), model__init="pretrained", **LORA)
    assert ran.code == 0, ran.log
    return ran


def test_all_weights_learn(full: Ran) -> None:
    """From guessing among 67 words (4.2 nats) to less than half of that."""
    assert 4.0 < full.losses[0] < 4.5
    assert full.losses[-1] < 0.45 * full.losses[0]


def test_an_adapter_learns(lora: Ran) -> None:
    assert lora.losses[-1] < 0.6 * lora.losses[0]


@pytest.mark.parametrize("ranks", [2, 4])
def test_all_weights_learn_alike_on_several_processes(base: Path, full: Ran, ranks: int, tmp_path: Path) -> None:
    """FSDP over 2 and 4 processes: the same loss in every step."""
    ran = train(base, tmp_path, ranks, **FULL)
    assert ran.code == 0, ran.log
    assert ran.losses == pytest.approx(full.losses, abs=CURVE)


@pytest.mark.parametrize(("ranks", "mode"), [(2, "fsdp"), (4, "fsdp"), (2, "ddp")])
def test_an_adapter_learns_alike_on_several_processes(
    step_two: Path, lora: Ran, ranks: int, mode: str, tmp_path: Path
) -> None:
    ran = train(step_two, tmp_path, ranks, model__init="pretrained", parallel__mode=mode, **LORA)
    assert ran.code == 0, ran.log
    assert ran.losses == pytest.approx(lora.losses, abs=CURVE)
