"""A launcher that is told to end ends, whatever its main thread does."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

BUSY = """
import sys, time
from trainjob.launch.signals import end_when_told
end_when_told(lambda: {workers}, grace={grace})
print("ready", flush=True)
{work}
"""
# Waits in C, where Python runs no handler: what a store that is gone does to torch.
STUCK = (
    "import ctypes; libc = ctypes.CDLL(None); m = ctypes.create_string_buffer(64); "
    "libc.pthread_mutex_lock(m); libc.pthread_mutex_lock(m)"
)
CHILD = "import subprocess; c = subprocess.Popen(['sleep', '60'])"
STUBBORN = (
    "import subprocess, sys; c = subprocess.Popen([sys.executable, '-c', "
    "'import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(60)'],"
    " stdout=subprocess.PIPE); c.stdout.readline()"
)


@pytest.mark.parametrize(
    ("before", "workers", "grace", "work", "at_most"),
    [
        ("", "[]", 30, "time.sleep(60)", 1.5),
        ("", "[]", 30, STUCK, 4.0),
        (CHILD, "[c.pid]", 30, STUCK, 4.0),
        (STUBBORN, "[c.pid]", 1, STUCK, 6.0),
    ],
    ids=["in Python", "stuck in C", "with a worker", "with a worker that does not listen"],
)
def test_sigterm_ends_it_with_143(before: str, workers: str, grace: int, work: str, at_most: float) -> None:
    script = before + "\n" + BUSY.format(workers=workers, grace=grace, work=work)
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    time.sleep(0.5)  # now it works
    begin = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 143
    process.stdout.close()
    # Not a speed target: what it must not be is the 30 or 60 s that it would wait otherwise.
    assert time.monotonic() - begin < at_most * 3
