"""Runs small programs that are to end in a certain way."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

# A C call that never returns and that no signal interrupts: without Python's lock as torch waits, or with it.
STUCK = """
import ctypes
def wait_for_ever(library):
    mutex = ctypes.create_string_buffer(64)
    library.pthread_mutex_lock(mutex)
    library.pthread_mutex_lock(mutex)
"""


@contextlib.contextmanager
def running(script: str, *arguments: str, **environ: str) -> Iterator[subprocess.Popen[str]]:
    """The program, with its output as pipes; killed at the end of the block if it still runs."""
    with subprocess.Popen(
        [sys.executable, "-u", "-c", textwrap.dedent(script), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environ},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def run(script: str, *arguments: str, timeout: float = 90, **environ: str) -> subprocess.CompletedProcess[str]:
    with running(script, *arguments, **environ) as process:
        out, err = process.communicate(timeout=timeout)
        return subprocess.CompletedProcess(script, process.returncode, out, err)


def until(process: subprocess.Popen[str], line: str) -> None:
    """Reads its output up to a line."""
    assert process.stdout is not None
    for each in process.stdout:
        if each.strip() == line:
            return
    raise AssertionError(f"it ended without saying {line!r}: {process.stderr.read() if process.stderr else ''}")


def appears(file: Path, timeout: float = 120) -> None:
    end = time.monotonic() + timeout
    while not file.exists():
        assert time.monotonic() < end, f"{file.name} did not appear"
        time.sleep(0.02)
