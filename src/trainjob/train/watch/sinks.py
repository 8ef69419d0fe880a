"""Where numbers go besides the log: files and services that may be slow, full or gone.

None of that may hold up or end a training: each sink has a thread of its own, and one that fails is off
after one warning.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from trainjob.train.watch.meter import Record
from trainjob.train.watch.talk import warn

# Steps that wait for a slow sink. Beyond them the oldest are dropped.
_BACKLOG: Final = 10_000
# Seconds between two writes: steps of milliseconds share one.
_PAUSE: Final = 1.0


class Sink(Protocol):
    """Called from one thread. Any exception turns the sink off."""

    @property
    def name(self) -> str: ...

    def write(self, records: Sequence[Record]) -> None:
        """Steps in their order."""

    def saved(self, step: int) -> None:
        """A checkpoint of `step` is whole."""

    def close(self, ok: bool) -> None:
        """The run ended, well if `ok`."""


@dataclass
class Background:
    """Feeds a sink from a thread. The sink is made there too: its imports and connections cost the run no time.

    The thread starts with the first record, when the run has imported what it needs.
    """

    name: str
    make: Callable[[], Sink]
    pause: float = _PAUSE
    backlog: int = _BACKLOG
    warn: Callable[[str], None] = warn
    _records: list[Record] = field(default_factory=list, init=False)
    _saved: int = field(default=0, init=False)
    _closing: bool | None = field(default=None, init=False)  # whether the run ended well
    _off: bool = field(default=False, init=False)
    _dropped: bool = field(default=False, init=False)
    _wake: threading.Condition = field(default_factory=threading.Condition, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)

    def log(self, record: Record) -> None:
        with self._wake:
            if self._off or self._closing is not None:
                return
            self._records.append(record)
            if len(self._records) > self.backlog:
                del self._records[0]
                if not self._dropped:
                    self._dropped = True
                    self.warn(f"{self.name} is too slow: steps are missing there")
            self._wake.notify()
        if self._thread is None:
            # A daemon: a sink that hangs must not keep the process.
            self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
            self._thread.start()

    def saved(self, step: int) -> None:
        with self._wake:
            self._saved = step
            self._wake.notify()

    def close(self, ok: bool) -> None:
        """The run ended: what is left is written. Does not wait."""
        with self._wake:
            self._closing = ok
            self._wake.notify()

    def join(self, timeout: float) -> None:
        """Waits until the sink is closed, for at most `timeout` seconds."""
        if self._thread is not None:
            self._thread.join(timeout)
            if self._thread.is_alive():
                self.warn(f"{self.name} did not take the last steps in time")

    def _run(self) -> None:
        try:
            sink = self.make()
            while True:
                with self._wake:
                    self._wake.wait_for(lambda: self._records or self._saved or self._closing is not None)
                    records, self._records = self._records, []
                    saved, self._saved = self._saved, 0
                    closing = self._closing
                if records:
                    sink.write(records)
                if saved:
                    sink.saved(saved)
                if closing is not None:
                    sink.close(closing)
                    return
                with self._wake:
                    self._wake.wait_for(lambda: self._closing is not None, self.pause)
        except Exception as error:
            with self._wake:
                self._off = True
                self._records = []
            self.warn(f"{self.name} is off from here on: {type(error).__name__}: {' '.join(str(error).split())}")
