from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.train.watch.steps import records
from trainjob.train.faults import Code, TrainError
from trainjob.train.watch import tensorboard_sink
from trainjob.train.watch.tensorboard_sink import TensorBoard


def curve(folder: Path, name: str) -> list[tuple[int, float, float]]:
    """As TensorBoard itself reads it: (step, value, time)."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    return [(event.step, event.value, event.wall_time) for event in events.Scalars(name)]


def test_tensorboard_reads_the_curves(tmp_path: Path) -> None:
    sink = TensorBoard(str(tmp_path), 0)
    sink.write(records(1, 2))
    sink.close(True)
    assert curve(tmp_path, "loss") == [(1, 2.5, 1_700_000_001.25), (2, 2.5, 1_700_000_002.25)]
    assert curve(tmp_path, "tokens_per_second")[0][1] == 2000


def test_a_resumed_run_hides_what_it_computes_again(tmp_path: Path) -> None:
    first = TensorBoard(str(tmp_path), 0)
    first.write(records(1, 2, 3, 4, 5))
    first.close(False)
    again = TensorBoard(str(tmp_path), 3)
    again.write(records(4))
    again.close(True)
    assert [step for step, _, _ in curve(tmp_path, "loss")] == [1, 2, 3, 4]


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    tensorboard_sink.check()
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "path_importer_cache", {})
    monkeypatch.delitem(sys.modules, "tensorboard", raising=False)
    with pytest.raises(TrainError, match=r"trainjob\[tensorboard\]") as caught:
        tensorboard_sink.check()
    assert caught.value.code is Code.CONFIG
