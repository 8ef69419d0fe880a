"""A sink may be slow, broken or stuck: the run does not notice."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.train.watch.steps import record
from trainjob.train.watch.meter import Record
from trainjob.train.watch.sinks import Background


@dataclass
class Notes:
    """A sink that keeps what it gets."""

    name: str = "notes"
    writes: list[list[int]] = field(default_factory=list)
    checkpoints: list[int] = field(default_factory=list)
    closed: list[bool] = field(default_factory=list)
    thread: str = ""
    gate: threading.Event | None = None  # writes wait for it

    def write(self, records: Sequence[Record]) -> None:
        if self.gate is not None:
            self.gate.wait(60)
        self.thread = threading.current_thread().name
        self.writes.append([each.step for each in records])

    def saved(self, step: int) -> None:
        self.checkpoints.append(step)

    def close(self, ok: bool) -> None:
        self.closed.append(ok)

    @property
    def steps(self) -> list[int]:
        return [step for some in self.writes for step in some]


def test_everything_arrives_in_order_on_another_thread() -> None:
    notes, warned = Notes(), list[str]()
    background = Background("notes", lambda: notes, pause=0.01, warn=warned.append)
    for step in range(1, 101):
        background.log(record(step))
    background.saved(100)
    background.close(True)
    background.join(60)
    assert notes.steps == list(range(1, 101))
    assert notes.checkpoints == [100]
    assert notes.closed == [True]
    assert notes.thread == "notes"
    assert warned == []


def test_steps_of_milliseconds_share_a_write() -> None:
    notes = Notes()
    background = Background("notes", lambda: notes, pause=0.2)
    for step in range(1, 51):
        background.log(record(step))
        time.sleep(0.005)
    background.close(True)
    background.join(60)
    assert notes.steps == list(range(1, 51))
    assert len(notes.writes) < 40


def test_a_sink_that_fails_is_off_after_one_warning() -> None:
    warned: list[str] = []
    calls: list[int] = []

    @dataclass
    class Full(Notes):
        def write(self, records: Sequence[Record]) -> None:
            calls.append(records[0].step)
            raise OSError(28, "No space left on device")

    background = Background("the metrics file", Full, pause=0.01, warn=warned.append)
    for step in range(1, 20):
        background.log(record(step))
        time.sleep(0.005)
    background.close(True)
    background.join(60)
    assert len(calls) == 1
    assert warned == ["the metrics file is off from here on: OSError: [Errno 28] No space left on device"]


def test_a_sink_that_cannot_be_made_is_off_too() -> None:
    warned: list[str] = []

    def make() -> Notes:
        raise ConnectionError("no such\n  host")

    background = Background("MLflow", make, warn=warned.append)
    background.log(record(1))
    background.join(60)
    background.log(record(2))
    background.close(False)
    background.join(60)
    assert warned == ["MLflow is off from here on: ConnectionError: no such host"]


def test_a_sink_that_hangs_holds_up_nothing() -> None:
    notes, warned = Notes(gate=threading.Event()), list[str]()
    background = Background("MLflow", lambda: notes, pause=0.0, backlog=20, warn=warned.append)
    begin = time.monotonic()
    for step in range(1, 101):
        background.log(record(step))
        time.sleep(0.001)
    background.close(True)
    background.join(0.2)
    assert time.monotonic() - begin < 30
    assert warned == ["MLflow is too slow: steps are missing there", "MLflow did not take the last steps in time"]
    assert notes.gate is not None
    notes.gate.set()
    background.join(60)
    assert notes.steps[-20:] == list(range(81, 101)), "the newest are kept"


def test_without_a_step_nothing_is_made() -> None:
    background = Background("notes", Notes, warn=print)
    background.saved(1)
    background.close(True)
    background.join(1)
    assert not [thread for thread in threading.enumerate() if thread.name == "notes"]
