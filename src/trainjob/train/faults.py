"""Why a run ends early: a reason in one line, what to do, and an exit code that the runtimes know.

Codes 64 to 78 say that no restart can help: `trainjob launch` does not restart, and the runtimes'
failurePolicy fails the job (runtimes/README.md). Others are worth another try.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any


class Code(IntEnum):
    """Exit codes of the trainer. `words` says what each is for."""

    words: str

    def __new__(cls, value: int, words: str) -> Code:
        made = int.__new__(cls, value)
        made._value_, made.words = value, words
        return made

    # No restart can help.
    BAD_DATA = 65, "a line of the data cannot be read, or there are no documents"
    NOT_FOUND = 66, "model, tokenizer or data are not where the settings say"
    NOT_FINITE = 67, "loss or gradients are NaN or infinite"
    DATA_ENDED = 69, "the data ended before the steps that were asked for; all is saved"
    WORLD_SIZE = 72, "there are more ranks than rows in a step"
    NO_SPACE = 73, "a checkpoint cannot be written: disk full, quota, read-only"
    BAD_CHECKPOINT = 74, "a checkpoint that should be whole cannot be read, or is of another model"
    VERSIONS = 76, "ranks run different versions of torch, transformers or peft"
    NO_ACCESS = 77, "a gated model, a wrong token, a folder of another user"
    CONFIG = 78, "the settings are wrong"
    # Another try can help.
    HUB = 79, "the model hub cannot be reached"
    HANG = 80, "no step within the watchdog's time"
    STORAGE = 81, "the object store cannot be reached"
    OUT_OF_MEMORY = 82, "a GPU or the host ran out of memory"
    TOLD = 143, "SIGTERM: saved, ready to go on elsewhere"

    @property
    def final(self) -> bool:
        """True when no restart can help."""
        return 64 <= self <= 78


class TrainError(Exception):
    """A run that cannot go on. `reason` is one line; `fix` says what to do about it."""

    def __init__(self, code: Code, reason: str, fix: str = "") -> None:
        super().__init__(reason)
        self.code = code
        self.reason = " ".join(reason.split())
        self.fix = " ".join(fix.split())

    def __reduce__(self) -> Any:
        # As it travels from one rank to the others.
        return TrainError, (self.code, self.reason, self.fix)

    def __str__(self) -> str:
        return f"{self.reason}; {self.fix}" if self.fix else self.reason
