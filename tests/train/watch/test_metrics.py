from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.train.watch.steps import record, records
from trainjob.train.watch.metrics import Metrics, cut, encode, last_step


def steps(file: Path) -> list[int]:
    return [json.loads(line)["step"] for line in file.read_text().splitlines()]


def test_a_step_is_a_json_object() -> None:
    assert json.loads(encode(record(7))) == {
        "step": 7, "loss": 2.5, "lr": 2e-5, "grad_norm": 0.82, "epoch": 0, "tokens": 1000, "seconds": 0.5,
        "tokens_per_second": 2000.0, "tokens_per_second_per_rank": 1000.0, "memory": 3 * 2**30,
        "time": 1_700_000_007.25,
    }  # fmt: skip


def test_what_json_cannot_say_is_null() -> None:
    line = encode(record(7, loss=float("nan"), grad_norm=float("inf")))
    assert json.loads(line, parse_constant=pytest.fail)["loss"] is None
    assert json.loads(line)["grad_norm"] is None


def test_a_run_writes_from_its_first_step(tmp_path: Path) -> None:
    file = tmp_path / "run" / "metrics.jsonl"
    said: list[str] = []
    sink = Metrics(str(file), 0, said.append)
    sink.write(records(1, 2))
    assert steps(file) == [1, 2], "readable while the run goes on"
    sink.write(records(3))
    sink.close(True)
    assert steps(file) == [1, 2, 3]
    assert said == []
    assert last_step(str(file)) == 3


def test_a_resumed_run_takes_back_what_it_computes_again(tmp_path: Path) -> None:
    file = tmp_path / "metrics.jsonl"
    file.write_text("".join(map(encode, records(1, 2, 3, 4, 5))))
    said: list[str] = []
    sink = Metrics(str(file), 3, said.append)
    sink.write(records(4))
    sink.close(True)
    assert steps(file) == [1, 2, 3, 4]
    assert said == [f"{file}: 2 lines beyond step 3 (up to step 5) removed"]
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.jsonl"], "no draft is left"


def test_a_half_written_line_goes_too(tmp_path: Path) -> None:
    file = tmp_path / "metrics.jsonl"
    whole = "".join(map(encode, records(1, 2)))
    file.write_text(whole + '{"step": 3, "lo')
    assert cut(file, 10) == (1, 2)
    assert file.read_text() == whole
    file.write_text(whole + encode(record(3))[:-1])
    assert cut(file, 10) == (1, 3), "a line without its end would run into the next"


def test_a_file_that_is_right_is_not_touched(tmp_path: Path) -> None:
    file = tmp_path / "metrics.jsonl"
    assert cut(file, 5) == (0, 0)
    assert not file.exists()
    file.write_text("".join(map(encode, records(1, 2))))
    before = file.stat()
    assert cut(file, 2) == (0, 2)
    assert file.stat().st_ino == before.st_ino


def test_the_last_step_is_read_from_the_end(tmp_path: Path) -> None:
    file = tmp_path / "metrics.jsonl"
    assert last_step(str(file)) == 0
    assert last_step("s3://bucket/metrics.jsonl") == 0
    file.write_text("".join(map(encode, records(*range(1, 200)))) + '{"step": 200')
    assert last_step(str(file)) == 199


def test_an_object_store_gets_the_whole_file_with_each_checkpoint() -> None:
    import fsspec

    store = fsspec.filesystem("memory")
    url = "memory://bucket/run/metrics.jsonl"
    sink = Metrics(url, 0, print)
    sink.write(records(1, 2))
    assert not store.exists("/bucket/run/metrics.jsonl")
    sink.saved(2)
    sink.write(records(3, 4))
    assert len(store.cat_file("/bucket/run/metrics.jsonl").splitlines()) == 2
    sink.close(True)
    said: list[str] = []
    again = Metrics(url, 2, said.append)
    again.write(records(3))
    again.close(True)
    assert [json.loads(line)["step"] for line in store.cat_file("/bucket/run/metrics.jsonl").splitlines()] == [1, 2, 3]
    assert said == [f"{url}: 2 lines beyond step 2 (up to step 4) removed"]


def test_a_first_checkpoint_without_metrics_is_no_fault() -> None:
    sink = Metrics("memory://bucket/nothing/here/metrics.jsonl", 5, print)
    sink.write(records(6))
    sink.close(True)
