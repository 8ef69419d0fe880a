"""A pod that is told to end ends soon, whatever it is doing.

Two things keep a launcher alive until the grace period is over. As process 1 of a container it ignores a
SIGTERM that it has no handler for, which is so while torch is imported. And Python runs its handlers
between two steps of Python only: not while the main thread waits inside torch for a store that is gone.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

CODE: Final = 128 + signal.SIGTERM
# The main thread's time to notice by itself, seconds.
_PATIENCE: Final = 2.0


def end_when_told(workers: Callable[[], Iterable[int]], grace: float) -> None:
    """From now on SIGTERM ends this process with 143.

    `workers`: the process ids that run now; they get the signal too, and `grace` seconds to end.
    """

    def leave(*_: Any) -> None:
        sys.exit(CODE)

    signal.signal(signal.SIGTERM, leave)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(reader, workers, grace), daemon=True, name="end_when_told").start()


def forget() -> None:
    """In a forked worker: what the program would see in a fresh interpreter."""
    signal.set_wakeup_fd(-1)
    for name in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(name, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _watch(reader: int, workers: Callable[[], Iterable[int]], grace: float) -> None:
    while signal.SIGTERM not in os.read(reader, 64):
        pass
    end = time.monotonic() + grace
    told: set[int] = set()
    while True:
        alive = [pid for pid in workers() if _alive(pid)]
        for pid in set(alive) - told:
            send(pid, signal.SIGTERM)
            told.add(pid)
        if not alive or time.monotonic() > end:
            break
        time.sleep(0.1)
    # By now the main thread should have left.
    time.sleep(_PATIENCE)
    for pid in workers():
        send(pid, signal.SIGKILL)
    os._exit(CODE)


def _alive(pid: int) -> bool:
    """False for a process that has ended, also when nobody has asked yet how."""
    try:
        with open(f"/proc/{pid}/stat") as stat:  # noqa: PTH123
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def send(pid: int, number: signal.Signals) -> None:
    """To a process that may have ended meanwhile."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
