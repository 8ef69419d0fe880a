"""When a failed worker is worth a restart. No torch here: plain decisions, plain tests."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

# sysexits.h. A program that ends with one of these says that trying again is of no use.
FINAL_CODES: Final = range(64, 79)
SAME_BUG: Final = 70  # EX_SOFTWARE
_LONGEST: Final = 300

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


def exit_code(failure: Failure, reason: str) -> int:
    """The pod's exit code: the program's own, or 70 when the same bug came twice."""
    if reason and failure.code not in FINAL_CODES:
        return SAME_BUG
    return failure.exit_code or 1
