"""All that reports of a run, put together from its settings. On other ranks than 0 it does nothing."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from trainjob.train.config import Report
from trainjob.train.watch import memory, metrics, mlflow_sink, tensorboard_sink
from trainjob.train.watch.meter import Done, Meter, Record
from trainjob.train.watch.progress import Progress
from trainjob.train.watch.sinks import Background
from trainjob.train.watch.trainer_status import TrainerStatus

_MLFLOW_RUN: Final = "mlflow_run"
# Seconds at the end for all sinks together. The grace period after SIGTERM is not theirs.
_LAST: Final = 10.0
_LAST_WHEN_DONE: Final = 60.0


class Listener(Protocol):
    """Gets every step, and may never hold up or end the training."""

    def log(self, record: Record) -> None: ...
    def saved(self, step: int) -> None: ...
    def close(self, ok: bool) -> None: ...
    def join(self, timeout: float) -> None: ...


def check(config: Report) -> None:
    """Raises TrainError(CONFIG) when a library that the settings need is missing. Cheap; for the start."""
    if config.tensorboard:
        tensorboard_sink.check()
    if config.mlflow:
        mlflow_sink.check()


@dataclass
class Reporter:
    """`total`: steps of the run, 0 if unknown; `start`: the step from which it goes on, 0 for a new run;
    `checkpoints`: their folder or URL, beside which the metrics are; `device`: a torch device;
    `flops_per_token`, `peak_flops`: for MFU, of one device; `params`: settings, for MLflow;
    `state`: what `state_dict()` gave when the checkpoint was saved; `began`: time.monotonic() of the start.
    """

    config: Report
    rank: int
    world: int
    device: Any
    total: int
    start: int
    checkpoints: str
    flops_per_token: float = 0.0
    peak_flops: float = 0.0
    params: Mapping[str, str] = field(default_factory=dict)
    state: Mapping[str, Any] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)
    _listeners: list[Listener] = field(default_factory=list, init=False)
    _last: Record | None = field(default=None, init=False)
    _run: str = field(default="", init=False)

    def __post_init__(self) -> None:
        gpu = not str(self.device).startswith("cpu")
        self._progress = Progress("GPU" if gpu else "process", self.config.every)
        peak = 1e12 * self.config.peak_tflops or self.peak_flops
        self._meter = Meter(
            self.total, self.world, self.flops_per_token, peak, memory=lambda: memory.of(self.device).peak
        )
        self._run = str(self.state.get(_MLFLOW_RUN, ""))
        if self.rank == 0:
            self._listen()

    def begin(self, facts: Mapping[str, str]) -> None:
        """Prints what is about to run."""
        if self.rank == 0:
            self._progress.start(facts)
            if self.start:
                self._progress.resumed(self.start, self.checkpoints, metrics.last_step(self._metrics))

    def step(self, done: Done) -> None:
        if self.rank == 0:
            self._last = self._meter.measure(done)
            self._progress.step(self._last)
            for each in self._listeners:
                each.log(self._last)

    def saved(self, step: int, seconds: float | None = None) -> None:
        """The checkpoint of `step` is whole; from any thread."""
        if self.rank == 0:
            self._progress.saved(step, self.checkpoints, seconds)
            for each in self._listeners:
                each.saved(step)

    def say(self, text: str) -> None:
        if self.rank == 0:
            self._progress.say(text)

    def end(self, ok: bool = True) -> None:
        """The last of everything. `ok`: the run came to its end; else it takes at most ten seconds."""
        if self.rank == 0:
            for each in self._listeners:
                each.close(ok)
            deadline = time.monotonic() + (_LAST_WHEN_DONE if ok else _LAST)
            for each in self._listeners:
                each.join(max(deadline - time.monotonic(), 0.1))
            self._listeners = []
            if ok:
                self._progress.end(self._last, time.monotonic() - self.began)

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs in order to go on in the same places; for JSON, and only rank 0's counts."""
        return {_MLFLOW_RUN: self._run}

    @property
    def _metrics(self) -> str:
        return self.config.metrics or f"{self.checkpoints.rstrip('/')}/{metrics.FILE}"

    def _listen(self) -> None:
        config, start = self.config, self.start
        if config.metrics != "none":
            self._add("the metrics file", lambda: metrics.Metrics(self._metrics, start, self._progress.say))
        if config.tensorboard:
            self._add("TensorBoard", lambda: tensorboard_sink.TensorBoard(config.tensorboard, start))
        if config.mlflow:
            self._add("MLflow", self._mlflow)
        status = TrainerStatus.from_env(os.environ) if config.status else None
        if status is not None:
            self._listeners.append(status)

    def _add(self, name: str, make: Callable[[], Any]) -> None:
        self._listeners.append(Background(name, make))

    def _mlflow(self) -> mlflow_sink.MLflow:
        def began(run: str) -> None:
            self._run = run

        config = self.config
        return mlflow_sink.MLflow(config.mlflow, config.mlflow_experiment, self._run, job_name(), self.params, began)


def job_name() -> str:
    """The TrainJob's, from the name of its pod: NAME-node-0-0."""
    return re.sub(r"-node-\d+-\d+$", "", socket.gethostname())
