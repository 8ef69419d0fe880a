from __future__ import annotations

import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.train.watch.steps import record, records
from trainjob.train.faults import Code, TrainError
from trainjob.train.watch import mlflow_sink
from trainjob.train.watch.mlflow_sink import MLflow
from trainjob.train.watch.sinks import Background

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning:mlflow")


def client(folder: Path) -> Any:
    from mlflow.tracking import MlflowClient

    return MlflowClient(folder.as_uri())


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.delenv("MLFLOW_RUN_ID", raising=False)


def test_a_run_with_its_settings_and_curves(tmp_path: Path) -> None:
    began: list[str] = []
    params = {"model.path": "granite", "optim.lr": "2e-05", "data.chat_template": ""}
    sink = MLflow(tmp_path.as_uri(), "finetune", run_name="tune", params=params, began=began.append)
    sink.write(records(1, 2))
    sink.close(True)
    run = client(tmp_path).get_run(began[0])
    assert run.info.status == "FINISHED"
    assert run.info.run_name == "tune"
    assert run.data.params == {"model.path": "granite", "optim.lr": "2e-05"}
    curve = client(tmp_path).get_metric_history(began[0], "loss")
    assert [(point.step, point.value, point.timestamp) for point in curve] == [
        (1, 2.5, 1_700_000_001_250), (2, 2.5, 1_700_000_002_250),
    ]  # fmt: skip
    assert client(tmp_path).get_experiment(run.info.experiment_id).name == "finetune"


def test_a_resumed_run_goes_on_in_the_same_run(tmp_path: Path) -> None:
    first = MLflow(tmp_path.as_uri(), "finetune", params={"seed": "1"})
    first.write(records(1))
    first.close(False)
    assert client(tmp_path).get_run(first.run).info.status == "FAILED"
    again = MLflow(tmp_path.as_uri(), "finetune", run=first.run, params={"seed": "2"})
    assert again.run == first.run
    assert client(tmp_path).get_run(first.run).info.status == "RUNNING"
    again.write(records(2))
    again.close(True)
    run = client(tmp_path).get_run(first.run)
    assert [point.step for point in client(tmp_path).get_metric_history(first.run, "loss")] == [1, 2]
    assert run.data.params == {"seed": "1"}


def test_mlflows_own_variable_names_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = MLflow(tmp_path.as_uri(), "finetune")
    monkeypatch.setenv("MLFLOW_RUN_ID", first.run)
    assert MLflow(tmp_path.as_uri(), "finetune").run == first.run


def test_many_points_are_sent_in_parts(tmp_path: Path) -> None:
    sink = MLflow(tmp_path.as_uri(), "x")
    sink.write(records(*range(1, 121)))  # 9 numbers each: more than the API takes at once
    assert len(client(tmp_path).get_metric_history(sink.run, "lr")) == 120


def test_a_server_that_does_not_answer_holds_up_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    # By default it tries for minutes.
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "2")
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        warned: list[str] = []
        uri = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        background = Background("MLflow", lambda: MLflow(uri, "x"), warn=warned.append)
        begin = time.monotonic()
        background.log(record(1))
        background.close(True)
        background.join(0.5)
        assert time.monotonic() - begin < 30
        assert warned == ["MLflow did not take the last steps in time"]
        assert next(thread for thread in threading.enumerate() if thread.name == "MLflow").daemon
        background.join(90)
    assert warned[1].startswith("MLflow is off from here on: MlflowException: ")


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow_sink.check()
    for name in [name for name in sys.modules if name.split(".")[0] == "mlflow"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "path_importer_cache", {})
    with pytest.raises(TrainError, match=r"trainjob\[mlflow\]") as caught:
        mlflow_sink.check()
    assert caught.value.code is Code.CONFIG
