from __future__ import annotations

import pytest

from tests.train.watch.steps import Done
from trainjob.train.watch.meter import Meter, Record


def run(meter: Meter, *seconds: float) -> Record:
    for step, each in enumerate(seconds, 1):
        last = meter.measure(Done(step, tokens=1000, seconds=each))
    return last


def test_rates_are_those_of_all_ranks_and_of_one() -> None:
    record = run(Meter(10, world=4), 0.5)
    assert record.tokens_per_second == 2000
    assert record.tokens_per_second_per_rank == 500


def test_the_first_step_counts_until_there_is_a_second() -> None:
    meter = Meter(10, world=1)
    assert meter.measure(Done(1, seconds=100.0)).tokens_per_second == 10
    assert meter.measure(Done(2, seconds=0.5)).tokens_per_second == 2000


def test_a_slow_step_is_smoothed_and_forgotten() -> None:
    meter = Meter(0, world=1)
    run(meter, 1, 1, 1, 1, 5)
    assert meter.measure(Done(6, seconds=1.0)).tokens_per_second == pytest.approx(5000 / 9)
    for step in range(7, 57):
        last = meter.measure(Done(step, seconds=1.0))
    assert last.tokens_per_second == 1000


def test_long_steps_are_forgotten_by_time() -> None:
    meter = Meter(0, world=1)
    run(meter, 1, 90, 90)
    assert meter.measure(Done(4, seconds=45.0)).tokens_per_second == pytest.approx(1000 / 45)


def test_the_rest_is_estimated_from_the_same_steps() -> None:
    record = run(Meter(10, world=1), 9, 2, 2, 2)
    assert record.remaining == 12
    assert run(Meter(4, world=1), 9, 2, 2, 2).remaining == 0
    assert run(Meter(0, world=1), 9, 2, 2, 2).remaining is None


def test_mfu_is_model_flops_of_one_device_against_its_peak() -> None:
    # 8B parameters, 6 FLOPs each: 5000 tok/s/GPU on 989 TFLOP/s.
    meter = Meter(10, world=2, flops_per_token=6 * 8e9, peak_flops=989e12)
    mfu = meter.measure(Done(1, tokens=10_000, seconds=1.0)).mfu
    assert mfu == pytest.approx(5000 * 48e9 / 989e12)
    assert Meter(10, world=2, flops_per_token=6 * 8e9).measure(Done(1)).mfu is None
    assert Meter(10, world=2, peak_flops=989e12).measure(Done(1)).mfu is None


def test_a_resumed_run_counts_its_own_steps_alone() -> None:
    meter = Meter(100, world=1)
    meter.measure(Done(51, seconds=30.0))
    assert meter.measure(Done(52, seconds=1.0)).remaining == 48


def test_metrics_have_mfu_only_when_it_is_known() -> None:
    assert "mfu" not in Meter(1, world=1).measure(Done(1)).metrics
    assert Meter(1, world=1, flops_per_token=1, peak_flops=1000).measure(Done(1)).metrics["mfu"] == 2.0
