"""Told to end: SIGTERM, which Kubernetes sends before it takes a pod away.

A handler of Python runs between two steps of Python only, not while the main thread waits for other ranks;
so a thread listens. The signal means "save and end" from `defer()` on; before, when there is nothing to save,
and when it comes a second time, it ends the process at once.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import Any, Final

from trainjob.train.faults import Code
from trainjob.train.watch.talk import warn

# torchrun and `trainjob launch` pass the signal on twice, from two places, within a second: that is one request.
_ECHO: Final = 5.0


class Stop:
    """Hears SIGTERM for the process; one object a process, made in its main thread."""

    def __init__(self) -> None:
        self._deferred = False
        self._when: float | None = None

    @property
    def requested(self) -> bool:
        """True from the first SIGTERM on. The ranks have to agree when they act on it."""
        return self._when is not None

    def install(self) -> None:
        """From now on SIGTERM ends the process with 143, at once. Also process 1 of a container, which the
        kernel would not end by a signal that it does not handle."""
        signal.signal(signal.SIGTERM, _nothing)
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        # A forked child would write into the same pipe when it is ended.
        os.register_at_fork(after_in_child=_forget)
        threading.Thread(target=self._listen, args=(reader,), name="stop", daemon=True).start()

    def defer(self) -> None:
        """From now on SIGTERM only sets `requested`: there are steps that are worth saving."""
        self._deferred = True

    def _listen(self, reader: int) -> None:
        while True:
            if signal.SIGTERM not in os.read(reader, 64):
                continue
            now = time.monotonic()
            if not self._deferred:
                _leave("told to end by SIGTERM before the first step")
            if self._when is None:
                self._when = now
                _say("told to end by SIGTERM: saving after this step")
            elif now - self._when > _ECHO:
                _leave("told to end by SIGTERM a second time: not waiting for the checkpoint")


def _nothing(*_: Any) -> None:
    """A handler must exist for the wake-up file to be written."""


def _forget() -> None:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _say(text: str) -> None:
    if os.environ.get("LOCAL_RANK", "0") == "0":
        warn(text)


def _leave(text: str) -> None:
    _say(text)
    sys.stdout.flush()
    os._exit(Code.TOLD)
