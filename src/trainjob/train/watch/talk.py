"""Words to the log. Each text is one write, so that those of many ranks do not mix within a line."""

from __future__ import annotations

import contextlib
import sys
from typing import TextIO


def write(text: str, out: TextIO | None = None) -> None:
    """Writes lines to `out`, or stderr. A stream that is gone stops nothing."""
    stream = out or sys.stderr
    with contextlib.suppress(OSError, ValueError):  # a pipe without a reader, a closed file
        stream.write(f"{text}\n")
        stream.flush()


def warn(text: str) -> None:
    """To stderr, with the program's name."""
    write(f"trainjob.train: {text}")
