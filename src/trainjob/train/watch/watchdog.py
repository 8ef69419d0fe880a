"""A run that hangs ends, says where it hung, and can be restarted.

A thread looks whether the training still steps. It works while the main thread waits inside torch for other
ranks, since torch gives up Python's lock there. Against a main thread that keeps the lock for ever there is
faulthandler's timer, which needs no lock: stacks, then exit code 1.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

from trainjob.train.faults import Code, TrainError
from trainjob.train.watch import last_words, talk

# Loading a model and compiling kernels take longer than a step.
START: Final = 4.0
# A machine under load may hold up the watching thread for so many seconds.
_LATE: Final = 60.0
_START: Final = "start"
_STEP: Final = "step"


class Watchdog:
    """Ends the process with code 80 (HANG) when `seconds` pass without `beat()`; 0: never.

    Before the first beat it waits four times as long. What takes longer than a step is named:
    `with watchdog.phase("save", 4): ...` waits four times as long from the beginning of the block, and anew
    from its end. SIGUSR1 prints the stacks of all threads at any time: `kill -USR1 PID`.
    """

    def __init__(
        self,
        seconds: float,
        *,
        end: Callable[[TrainError], None] = last_words.leave,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.seconds = seconds
        self._end = end
        self._clock = clock
        self._lock = threading.Lock()
        self._now = (_START, START * seconds, clock())
        self._step: int | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        faulthandler.enable(all_threads=True)
        faulthandler.register(signal.SIGUSR1, all_threads=True)
        if not self.seconds:
            return
        self._enter(_START, START)
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self._thread.start()

    def beat(self, step: int) -> None:
        """`step` is done."""
        self._step = step
        self._enter(_STEP, 1.0)

    @contextlib.contextmanager
    def phase(self, name: str, times: float = START) -> Iterator[None]:
        """Within the block the process may take `times` as long. Phases may lie within each other."""
        before, patience, _ = self._now
        self._enter(name, times)
        try:
            yield
        finally:
            with self._lock:
                self._now = (before, patience, self._clock())

    def stop(self) -> None:
        """Watches no more."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            faulthandler.cancel_dump_traceback_later()

    def _enter(self, name: str, times: float) -> None:
        with self._lock:
            self._now = (name, times * self.seconds, self._clock())

    def _watch(self) -> None:
        interval = min(self.seconds / 10, 5.0)
        while True:
            # Postponed with every look; a look that does not come within this time has lost Python's lock.
            faulthandler.dump_traceback_later(self.seconds + _LATE, exit=True)
            if self._stop.wait(interval):
                return
            overdue = self.overdue()
            if overdue is not None:
                talk.warn(f"the watchdog ends rank {os.environ.get('RANK', '0')}; its threads:\n{stacks()}")
                self._end(overdue)
                return

    def overdue(self) -> TrainError | None:
        """Why this process is to end now, or None."""
        with self._lock:
            name, patience, since = self._now
        quiet = self._clock() - since
        if not self.seconds or quiet <= patience:
            return None
        done = f"the last step that was done is {self._step}" if self._step is not None else "no step was done"
        where = "between two steps" if name == _STEP else f"in the phase `{name}`"
        return TrainError(
            Code.HANG,
            f"nothing went on for {quiet:.0f} s {where}; {done}",
            "the log has the stacks of all threads of each rank: the one that is not waiting for others is to "
            "blame; if steps take that long, raise report.watchdog",
        )


def stacks() -> str:
    """The Python stacks of all threads, whatever they are doing."""
    file = os.memfd_create("stacks")  # in memory: the disk may be what hangs
    try:
        faulthandler.dump_traceback(file, all_threads=True)
        os.lseek(file, 0, os.SEEK_SET)
        return os.read(file, 1 << 20).decode(errors="replace").rstrip()
    finally:
        os.close(file)
