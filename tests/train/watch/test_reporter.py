from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.train.watch.steps import Done
from trainjob.train.config import Report
from trainjob.train.faults import TrainError
from trainjob.train.watch import trainer_status
from trainjob.train.watch.reporter import Reporter, check, job_name


def reporter(folder: Path, config: Report | None = None, **changes: Any) -> Reporter:
    settings: dict[str, Any] = {
        "rank": 0, "world": 2, "device": "cpu", "total": 4, "start": 0, "checkpoints": str(folder), **changes,
    }  # fmt: skip
    return Reporter(config or Report(), **settings)


@pytest.fixture(autouse=True)
def _slow_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainjob.train.watch.reporter._LAST", 60.0)


def train(report: Reporter, *steps: int) -> None:
    report.begin({"model": "tiny"})
    for step in steps:
        report.step(Done(step))


def test_a_run_and_its_resume(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = reporter(tmp_path, Report(tensorboard=str(tmp_path / "tb")))
    train(first, 1, 2, 3)
    first.saved(2, 0.5)
    first.end(ok=False)
    again = reporter(tmp_path, start=2)
    train(again, 3, 4)
    again.say("exporting")
    again.end()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "model  tiny"
    assert lines[1].startswith("step 1/4  loss 2.5000  lr 2e-05  grad 0.82  2.00k tok/s  1.00k tok/s/process  mem ")
    assert lines[4] == f"saved step 2 to {tmp_path} in 0.5 s"
    assert f"resumed from step 2 of {tmp_path}; 1 steps are computed again" in lines
    assert f"{tmp_path / 'metrics.jsonl'}: 1 lines beyond step 2 (up to step 3) removed" in lines
    assert lines[-1].startswith("done: step 4  loss 2.5000  ")
    curve = [json.loads(line)["step"] for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert curve == [1, 2, 3, 4]
    assert list((tmp_path / "tb").iterdir()), "TensorBoard's events"


def test_only_rank_0_does_anything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quiet = reporter(tmp_path, rank=1)
    train(quiet, 1, 2)
    quiet.saved(2)
    quiet.end()
    assert capsys.readouterr().out == ""
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_stops_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a file"
    file.touch()
    blocked = reporter(tmp_path, Report(metrics=str(file / "metrics.jsonl"), tensorboard=str(file / "tb")))
    train(blocked, 1, 2)
    blocked.end()
    seen = capsys.readouterr()
    assert "done: step 2" in seen.out
    assert sorted(line.split(" is off")[0] for line in seen.err.splitlines()) == [
        "trainjob.train: TensorBoard", "trainjob.train: the metrics file",
    ]  # fmt: skip


def test_the_mlflow_run_is_part_of_the_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_RUN_ID", raising=False)
    config = Report(metrics="none", mlflow=str(tmp_path / "runs"))
    first = reporter(tmp_path, config)
    assert first.state_dict() == {"mlflow_run": ""}
    train(first, 1)
    first.end(ok=False)
    state = json.loads(json.dumps(first.state_dict()))
    assert len(state["mlflow_run"]) == 32
    again = reporter(tmp_path, config, start=1, state=state)
    train(again, 2)
    again.end()
    assert again.state_dict() == state


def test_mfu_with_a_peak_from_the_settings_or_the_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = reporter(tmp_path, Report(metrics="none", peak_tflops=1e-6), flops_per_token=100, peak_flops=5e5)
    train(report, 1)
    assert "MFU 10.0 %" in capsys.readouterr().out
    train(reporter(tmp_path, Report(metrics="none"), flops_per_token=100, peak_flops=5e5), 1)
    assert "MFU 20.0 %" in capsys.readouterr().out


def test_the_status_is_off_when_the_settings_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (trainer_status.URL, trainer_status.CA_CERT, trainer_status.TOKEN):
        monkeypatch.setenv(name, str(tmp_path / "x"))
    assert len(reporter(tmp_path, Report(metrics="none"))._listeners) == 1
    assert reporter(tmp_path, Report(metrics="none", status=False))._listeners == []


def test_the_end_waits_seconds_for_all_sinks_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainjob.train.watch.reporter._LAST", 0.3)

    class Stuck:
        def log(self, record: object) -> None: ...
        def saved(self, step: int) -> None: ...
        def close(self, ok: bool) -> None: ...
        def join(self, timeout: float) -> None:
            time.sleep(timeout)

    report = reporter(tmp_path, Report(metrics="none"))
    report._listeners = [Stuck(), Stuck(), Stuck()]
    begin = time.monotonic()
    report.end(ok=False)
    assert 0.3 <= time.monotonic() - begin < 20


def test_libraries_that_are_missing_are_found_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    check(Report())
    check(Report(tensorboard="/tmp/tb", mlflow="http://mlflow.example.com"))
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "path_importer_cache", {})
    for name in [name for name in sys.modules if name.split(".")[0] in ("mlflow", "tensorboard")]:
        monkeypatch.delitem(sys.modules, name)
    check(Report())
    for config in (Report(tensorboard="/tmp/tb"), Report(mlflow="/tmp/mlflow")):
        with pytest.raises(TrainError, match="is not installed"):
            check(config)


def test_the_jobs_name_is_that_of_its_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "my-tune-node-0-0")
    assert job_name() == "my-tune"
    monkeypatch.setattr("socket.gethostname", lambda: "laptop")
    assert job_name() == "laptop"
