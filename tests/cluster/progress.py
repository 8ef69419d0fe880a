"""Shows long steps on stderr with their time, and keeps the times as JSON.

[ 12s] node image ...
[ 71s] node image: 58.9 s
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

# A step that lasts this long says so again, so that a log that stands still is not taken for a hang.
_REMIND_SECONDS = 20.0
_KEPT_RUNS = 40


@dataclass
class Progress:
    """The steps of one run of the command."""

    stream: TextIO = field(default_factory=lambda: sys.stderr)
    steps: list[dict[str, Any]] = field(default_factory=list)
    _started: float = field(default_factory=time.monotonic)
    _open: list[str] = field(default_factory=list)

    def say(self, text: str) -> None:
        """Prints one line with the time since the start."""
        print(f"[{self.seconds:4.0f}s] {'  ' * len(self._open)}{text}", file=self.stream, flush=True)

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Announces a step, reminds of it while it lasts, and records how long it took."""
        self.say(f"{name} ...")
        begin = time.monotonic()
        done = threading.Event()
        reminder = threading.Thread(target=self._remind, args=(name, begin, done), daemon=True)
        self._open.append(name)
        reminder.start()
        outcome = "failed"
        try:
            yield
            outcome = "ok"
        finally:
            done.set()
            reminder.join()
            self._open.pop()
            seconds = time.monotonic() - begin
            self.steps.append(
                {"step": " / ".join([*self._open, name]), "seconds": round(seconds, 1), "outcome": outcome}
            )
            self.say(f"{name}: {seconds:.1f} s{'' if outcome == 'ok' else ', ' + outcome}")

    def _remind(self, name: str, begin: float, done: threading.Event) -> None:
        while not done.wait(_REMIND_SECONDS):
            if self._open[-1:] == [name]:
                self.say(f"{name}: still at it, {time.monotonic() - begin:.0f} s")

    @property
    def seconds(self) -> float:
        """Time since the start."""
        return time.monotonic() - self._started

    def record(self, file: Path, command: str, outcome: str, facts: dict[str, Any]) -> None:
        """Adds this run to `file`, a JSON list of the last runs, newest last."""
        try:
            runs = json.loads(file.read_text())
        except (OSError, ValueError):
            runs = []
        runs.append(
            {
                "date": datetime.now(UTC).isoformat(timespec="seconds"),
                "command": command,
                "outcome": outcome,
                "seconds": round(self.seconds, 1),
                "load": [round(load, 2) for load in os.getloadavg()],
                "cores": os.cpu_count(),
                **facts,
                "steps": self.steps,
            }
        )
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(runs[-_KEPT_RUNS:], indent=1) + "\n")
