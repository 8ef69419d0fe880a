"""torch's elastic agent with our restart policy. Imports torch; written for and tried with 2.13."""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import torch
from torch.distributed.elastic.agent.server.api import RunResult, WorkerGroup, WorkerState
from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
from torch.distributed.elastic.rendezvous import dynamic_rendezvous

from trainjob.launch.policy import Failure, Policy, Progress, cause
from trainjob.launch.preload import Preload
from trainjob.launch.signals import send

# Seconds between SIGTERM and SIGKILL for workers that are restarted. Their peers are gone: there is
# nothing that they could still save together. The end of the pod has its own, longer, time.
RESTART_GRACE: Final = "TRAINJOB_RESTART_GRACE"
_SETTLE: Final = 0.5
_LOOK: Final = 0.1

# It logs the traceback of one failed worker, prefixed, and not always the one to blame. We print it.
logging.getLogger("torch.distributed.elastic.multiprocessing.api").setLevel(logging.CRITICAL)


def _wait_shortly(seconds: float | tuple[float, float]) -> None:
    """torch's agents look once a second whether the others are there (dynamic_rendezvous.py): half a second lost
    on average, twice a rendezvous. A look is one small request to the store.
    """
    time.sleep(min(_LOOK, seconds if isinstance(seconds, float | int) else random.uniform(*seconds)))


dynamic_rendezvous._delay = _wait_shortly


class Agent(LocalElasticAgent):
    """Restarts like torch's, unless no restart can help.

    `last` and `reason` tell how it ended; `made` gets the agent when torch has made it.
    """

    last: Failure | None = None
    reason = ""
    made: Callable[[Agent], None]
    preload: Preload | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        Agent.made(self)
        self._policy = Policy()
        self._progress = Progress.from_env(os.environ)
        self._budget: int = self._remaining_restarts

    def pids(self) -> list[int]:
        """The workers that were started last."""
        return list(self._pcontext.pids().values()) if self._pcontext else []

    def _start_workers(self, worker_group: WorkerGroup) -> Any:
        self._progress.begin()
        if self.preload is not None:
            self.preload.wait()
            if torch.cuda.is_initialized():
                raise RuntimeError(
                    "an import before the fork has initialised CUDA, which the workers then cannot use: "
                    "set TRAINJOB_PRELOAD=none, or --start-method spawn"
                )
        return super()._start_workers(worker_group)

    def _monitor_workers(self, worker_group: WorkerGroup) -> RunResult:
        stalled = self._progress.stalled(time.monotonic())
        if stalled:
            say(f"no progress for {stalled:.0f} s: the workers are stopped")
            for pid in self.pids():
                send(pid, signal.SIGKILL)
        failures = self._fallen(worker_group)
        result = super()._monitor_workers(worker_group)
        if result.state != WorkerState.FAILED:
            return result
        if not failures:
            failures = [Failure(rank, f.exitcode, _trace(f.error_file_data)) for rank, f in result.failures.items()]
        if self._progress.made():
            self._remaining_restarts = self._budget
            self._policy = Policy()
        Agent.last = cause(failures)
        Agent.reason = self._policy.final(failures)
        if Agent.reason:
            self._remaining_restarts = 0
        left = self._remaining_restarts
        if left:
            say("\n".join(filter(None, [Agent.last.script_trace, f"{Agent.last.words}; restarts left: {left}"])))
        return result

    def _fallen(self, worker_group: WorkerGroup) -> list[Failure]:
        """The forked workers that failed, all of them; the others are stopped.

        torch names one failed worker of a node, which is as often a victim as the cause, and waits 30
        seconds for the others (torch/multiprocessing/spawn.py, ProcessContext.join).
        """
        forked = getattr(self._pcontext, "_pc", None)
        if forked is None or not any(p.exitcode for p in forked.processes):
            return []
        end = time.monotonic() + _SETTLE
        while time.monotonic() < end and any(p.exitcode is None for p in forked.processes):
            time.sleep(0.02)
        fallen = [(rank, p.exitcode) for rank, p in enumerate(forked.processes) if p.exitcode]
        self._pcontext._close(signal.SIGTERM, _grace())
        ranks = [worker.global_rank for worker in worker_group.workers]
        return [Failure(ranks[local], code, *_told(self._pcontext.error_files.get(local))) for local, code in fallen]

    def _stop_workers(self, worker_group: WorkerGroup) -> None:  # noqa: ARG002
        self._shutdown(timeout=_grace())


def _grace() -> int:
    return int(os.environ.get(RESTART_GRACE, "5"))


def _told(file: str | None) -> tuple[str, float]:
    """Traceback and time that a worker left in its error file; "" and 0 when it left none."""
    try:
        data = json.loads(Path(file).read_text()) if file else {}
    except (OSError, ValueError):
        return "", 0.0
    message = data.get("message", "")
    when = message.get("extraInfo", {}).get("timestamp", 0) if isinstance(message, dict) else 0
    return _trace(data), float(when)


def _trace(data: Any) -> str:
    message = data.get("message", "") if data else ""
    return str(message.get("extraInfo", {}).get("py_callstack", "")) if isinstance(message, dict) else ""


def say(text: str) -> None:
    """Talk of the launcher, to stderr."""
    *before, last = text.split("\n")
    print("\n".join([*before, f"trainjob launch: {last}"]), file=sys.stderr, flush=True)
