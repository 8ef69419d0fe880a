"""When a failed worker is worth a restart. No torch here: plain decisions, plain tests."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

# A file in the pod, named by this variable, into which a program writes the step up to which its work is
# saved. With it, restarts are counted since the last progress, and a hang is noticed.
PROGRESS: Final = "TRAINJOB_PROGRESS"
STALL: Final = "TRAINJOB_STALL_TIMEOUT"

# sysexits.h. A program that ends with one of these says that trying again is of no use.
FINAL_CODES: Final = range(64, 79)
SAME_BUG: Final = 70  # EX_SOFTWARE
# Of an error in the last words: a reason and what to do about it.
_LONGEST: Final = 600

# A fault of a peer, a disk or a network raises others (RuntimeError, DistBackendError, OSError, ...).
_BUGS: Final = frozenset(
    {
        "ArithmeticError", "AssertionError", "AttributeError", "ImportError", "IndexError", "KeyError", "LookupError",
        "ModuleNotFoundError", "NameError", "NotImplementedError", "RecursionError", "SyntaxError", "TypeError",
        "UnboundLocalError", "ValueError", "ZeroDivisionError",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Failure:
    """How a worker ended.

    `code`: exit code, or minus the signal; `trace`: its Python traceback, or ""; `when`: in seconds.
    """

    rank: int
    code: int
    trace: str = ""
    when: float = 0.0

    @property
    def script_trace(self) -> str:
        """The traceback without the frames that led to the script; "" if there is only its last line."""
        lines = self.trace.strip().splitlines()
        if len(lines) < 2:
            return ""
        inner = max((i for i, line in enumerate(lines) if '"<frozen runpy>"' in line), default=0)
        return "\n".join([*lines[:1], *lines[inner + 1 :]] if inner else lines)

    @property
    def error(self) -> str:
        """The last line of the traceback, `TypeError: ...`."""
        lines = [line for line in self.trace.strip().splitlines() if line and not line[0].isspace()]
        return lines[-1][:_LONGEST] if lines else ""

    @property
    def is_bug(self) -> bool:
        """True for an exception that no peer, disk or network raises."""
        return self.error.split(":")[0].split(".")[-1] in _BUGS

    @property
    def words(self) -> str:
        if self.code < 0:
            try:
                name = signal.Signals(-self.code).name
            except ValueError:
                name = f"signal {-self.code}"
            hint = ": out of memory, or killed from outside" if name == "SIGKILL" else ""
            return f"rank {self.rank} was ended by {name}{hint}"
        return f"rank {self.rank} ended with exit code {self.code}" + (f": {self.error}" if self.error else "")

    @property
    def exit_code(self) -> int:
        """As a shell says it: 128 + the signal."""
        return 128 - self.code if self.code < 0 else self.code


def cause(failures: Iterable[Failure]) -> Failure:
    """The failure to blame. A worker that dies takes its peers with it: their errors only follow from it."""

    def order(failure: Failure) -> tuple[int, float, int]:
        if failure.code in FINAL_CODES:
            kind = 0
        elif failure.code < 0:
            kind = 1
        else:
            kind = 2 if failure.is_bug else 3
        return kind, failure.when, failure.rank

    return min(failures, key=order)


@dataclass
class Policy:
    """Remembers the failures of this pod's workers."""

    _last: dict[int, str] = field(default_factory=dict)

    def final(self, failures: Iterable[Failure]) -> str:
        """Why no restart can help after these failures of one attempt, or ""."""
        failures = list(failures)
        for failure in failures:
            if failure.code in FINAL_CODES:
                return f"exit code {failure.code} asks for no restart"
        bugs = {f.rank: f.error for f in failures if f.is_bug}
        same = [rank for rank, error in bugs.items() if self._last.get(rank) == error]
        self._last = bugs
        return f"rank {same[0]} failed twice with the same error" if same else ""


@dataclass
class Progress:
    """What the workers of this pod say of their progress. Times are seconds of a monotonic clock.

    A program that never writes the file keeps the plain count of restarts, and is never called stalled.
    """

    file: Path
    patience: float = 0.0  # seconds; 0: no watchdog
    _at_last_failure: int = -1
    _text: str = ""
    _since: float = 0.0

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Progress:
        return cls(Path(environ[PROGRESS]), float(environ.get(STALL) or 0))

    def begin(self) -> None:
        """A new attempt: until it writes for the first time, it may take as long as it likes."""
        self._text, self._since = self._read(), 0.0

    def stalled(self, now: float) -> float:
        """Seconds without news, when they are more than `patience`; else 0."""
        if not self.patience:
            return 0.0
        text = self._read()
        if text != self._text:
            self._text, self._since = text, now
        quiet = now - self._since if self._since else 0.0
        return quiet if quiet > self.patience else 0.0

    def made(self) -> bool:
        """Whether the saved step is beyond that of the last call."""
        text = self._read().strip()
        step = int(text) if text.isdigit() else -1
        better = step > self._at_last_failure
        self._at_last_failure = max(step, self._at_last_failure)
        return better

    def _read(self) -> str:
        try:
            return self.file.read_text()
        except OSError:
            return ""


def exit_code(failure: Failure, reason: str) -> int:
    """The pod's exit code: the program's own, or 70 when the same bug came twice."""
    if reason and failure.code not in FINAL_CODES:
        return SAME_BUG
    return failure.exit_code or 1
