"""Against a server that checks what Trainer's checks (v2.3.0, pkg/statusserver/server.go)."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.http_server import Handler
from tests.train.watch import tls
from tests.train.watch.steps import record
from trainjob.kube import schema
from trainjob.targets import API_VERSION, TARGETS
from trainjob.train.watch import trainer_status
from trainjob.train.watch.trainer_status import TrainerStatus, body

PATH = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/team/trainjobs/tune/status"


@dataclass
class Trainer:
    """What arrived, and how to answer."""

    statuses: list[dict[str, Any]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    token: str = "first"
    answers: list[int] = field(default_factory=list)  # instead of 200
    gate: threading.Event | None = None  # answers wait for it


class Server(Handler):
    trainer: Trainer

    def do_POST(self) -> None:  # noqa: N802
        content = self.rfile.read(int(self.headers["Content-Length"]))
        self.trainer.times.append(time.monotonic())
        if self.trainer.gate is not None:
            self.trainer.gate.wait(60)
        if self.path != PATH:
            return self.refuse(404, "Not found")
        if self.headers["Authorization"] != f"Bearer {self.trainer.token}":
            return self.refuse(403, "Forbidden")
        if self.trainer.answers:
            return self.refuse(self.trainer.answers.pop(0), "Internal error")
        self.trainer.statuses.append(json.loads(content)["trainerStatus"])
        return self.reply(200, content)

    def refuse(self, code: int, message: str) -> None:
        self.reply(code, json.dumps({"status": "Failure", "message": message, "code": code}).encode())


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    tls.certificates(folder)
    return folder


@contextmanager
def reporting(
    trainer: Trainer, certificates: Path, folder: Path, warn: Callable[[str], None], interval: float = 0.05
) -> Iterator[TrainerStatus]:
    with tls.serve(Server, certificates, trainer=trainer) as address:
        (folder / "token").write_text("first\n")
        environ = {
            trainer_status.URL: address + PATH,
            trainer_status.CA_CERT: str(certificates / "ca.crt"),
            trainer_status.TOKEN: str(folder / "token"),
        }
        status = TrainerStatus.from_env(environ)
        assert status is not None
        status.interval, status.warn = interval, warn
        yield status


def eventually(what: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not what():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_progress_arrives(certificates: Path, tmp_path: Path) -> None:
    trainer, warned = Trainer(), list[str]()
    with reporting(trainer, certificates, tmp_path, warned.append) as status:
        status.log(record(37))
        eventually(lambda: bool(trainer.statuses))
        status.log(record(100))
        status.close(True)
        status.join(60)
    assert warned == []
    first, last = trainer.statuses
    assert first["progressPercentage"] == 37
    assert first["estimatedRemainingSeconds"] == 32
    assert {"name": "loss", "value": "2.5"} in first["metrics"]
    assert datetime.fromisoformat(first["lastUpdatedTime"]).timestamp() == 1_700_000_037
    assert (last["progressPercentage"], last["estimatedRemainingSeconds"]) == (100, 0)


def test_the_newest_step_counts_and_not_too_often(certificates: Path, tmp_path: Path) -> None:
    trainer = Trainer()
    with reporting(trainer, certificates, tmp_path, print, interval=0.3) as status:
        for step in range(1, 71):
            status.log(record(step))
            time.sleep(0.01)
        status.close(True)
        status.join(60)
    assert len(trainer.statuses) < 35
    assert trainer.statuses[-1]["progressPercentage"] == 70
    assert trainer.times[1] - trainer.times[0] > 0.15


def test_a_renewed_token_is_used(certificates: Path, tmp_path: Path) -> None:
    trainer, warned = Trainer(), list[str]()
    with reporting(trainer, certificates, tmp_path, warned.append) as status:
        status.log(record(1))
        eventually(lambda: len(trainer.statuses) == 1)
        trainer.token = "second"
        (tmp_path / "token").write_text("second\n")
        status.log(record(2))
        eventually(lambda: len(trainer.statuses) == 2)
        status.close(True)
    assert warned == []


def test_refusals_are_told_once_and_tried_again_later_and_later(certificates: Path, tmp_path: Path) -> None:
    trainer, warned = Trainer(answers=[500, 500, 500]), list[str]()
    with reporting(trainer, certificates, tmp_path, warned.append) as status:
        step = 1
        while len(trainer.statuses) < 2:
            status.log(record(step))
            step += 1
            time.sleep(0.01)
            assert step < 5000
        assert status._failures == 0, "after a success as often as before"
        status.close(True)
    assert warned == ["the TrainJob's status shows no progress: HTTP 500 Internal error; will try again"]
    waits = [after - before for before, after in zip(trainer.times, trainer.times[1:], strict=False)]
    assert waits[0] > 0.1
    assert waits[1] > 0.2
    assert waits[2] > 0.4


@pytest.mark.parametrize("fault", ["token", "authority", "address"])
def test_other_faults_are_told_too(fault: str, certificates: Path, tmp_path: Path) -> None:
    trainer, warned = Trainer(), list[str]()
    with reporting(trainer, certificates, tmp_path, warned.append) as status:
        if fault == "token":
            (tmp_path / "token").unlink()
        elif fault == "authority":
            status.ca_cert = ""
        else:
            status.url = "https://127.0.0.1:1/status"
        status.log(record(1))
        status.close(True)
        status.join(60)
    assert trainer.statuses == []
    assert len(warned) == 1
    assert {"token": "No such file", "authority": "CERTIFICATE_VERIFY_FAILED", "address": "refused"}[fault] in warned[0]


def test_a_slow_server_holds_up_nothing(certificates: Path, tmp_path: Path) -> None:
    trainer = Trainer(gate=threading.Event())
    with reporting(trainer, certificates, tmp_path, print) as status:
        for step in range(1, 20):
            status.log(record(step))
        status.close(True)
        status.join(0.1)
        assert trainer.statuses == []
        assert trainer.gate is not None
        trainer.gate.set()
        status.join(60)
        assert trainer.statuses[-1]["progressPercentage"] in (1, 19), "the first, or already the last"


def test_a_proxy_for_the_internet_is_not_asked(
    certificates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    trainer = Trainer()
    with reporting(trainer, certificates, tmp_path, print) as status:
        status.log(record(1))
        status.close(True)
        status.join(60)
    assert len(trainer.statuses) == 1


def test_without_the_feature_gate_there_is_nothing_to_do() -> None:
    assert TrainerStatus.from_env({}) is None
    assert TrainerStatus.from_env({trainer_status.URL: "https://x", trainer_status.CA_CERT: "y"}) is None


def test_the_schema_takes_what_is_sent() -> None:
    odd = replace(record(3, total=0, loss=float("nan")), remaining=1e12, mfu=0.41234567891)
    status = body(odd)["trainerStatus"]
    assert "progressPercentage" not in status
    assert status["estimatedRemainingSeconds"] == 2**31 - 1
    for target in TARGETS:
        job = {
            "apiVersion": API_VERSION, "kind": "TrainJob", "metadata": {"name": "tune"},
            "spec": {"runtimeRef": {"name": "torch-fsdp-1gpu"}}, "status": {"trainerStatus": status},
        }  # fmt: skip
        refused = [str(violation) for violation in schema.check(job, "TrainJob", target)]
        assert bool(refused) == (target.name in ("2.0", "2.1")), refused
    assert {"name": "mfu", "value": "0.412346"} in status["metrics"]
    assert {"name": "loss", "value": "nan"} in status["metrics"]
    assert "estimatedRemainingSeconds" not in body(replace(odd, remaining=float("inf")))["trainerStatus"]
    for percent, step in ((99, 999), (100, 1000), (100, 1001), (0, 0)):
        assert body(replace(odd, step=step, total=1000))["trainerStatus"]["progressPercentage"] == percent
