from __future__ import annotations

import contextlib
import json
import re
import signal
from pathlib import Path

from tests.train.watch.programs import STUCK, run, running, until
from trainjob.train.watch.watchdog import Watchdog

BEGIN = f"""
import os, time, sys
from trainjob.train.watch.watchdog import Watchdog
{STUCK}
"""


def test_a_process_that_waits_for_others_for_ever_is_ended(tmp_path: Path) -> None:
    error = tmp_path / "attempt_0" / "0" / "error.json"
    error.parent.mkdir(parents=True)
    script = f"""{BEGIN}
watchdog = Watchdog(1.2)
watchdog.start()
for step in range(3):
    watchdog.beat(step)
def reduce_gradients():
    wait_for_ever(ctypes.CDLL(None))
reduce_gradients()
"""
    done = run(script, RANK="3", TORCHELASTIC_ERROR_FILE=str(error))
    assert done.returncode == 80
    assert "in reduce_gradients" in done.stderr, "the stack of the thread that hangs"
    *_, last = done.stderr.splitlines()
    assert re.match(
        r"trainjob\.train: rank 3: HANG: nothing went on for \d+ s between two steps; the last step that was done "
        r"is 2; .* raise report\.watchdog \(exit code 80\)$",
        last,
    )
    told = json.loads(error.read_text())["message"]["extraInfo"]["py_callstack"]
    assert told.startswith("HANG: nothing went on")


def test_a_thread_that_keeps_pythons_lock_is_ended_too() -> None:
    script = f"""{BEGIN}
from trainjob.train.watch import watchdog
watchdog._LATE = 0.2
Watchdog(0.3).start()
def bad_extension():
    wait_for_ever(ctypes.PyDLL(None))
bad_extension()
"""
    done = run(script)
    assert done.returncode == 1
    assert "in bad_extension" in done.stderr


def test_starting_and_named_phases_may_take_longer() -> None:
    now = 0.0
    watchdog = Watchdog(10, clock=lambda: now)

    def after(seconds: float) -> str:
        nonlocal now
        now += seconds
        overdue = watchdog.overdue()
        return overdue.reason if overdue else ""

    assert after(39) == ""
    assert after(2) == "nothing went on for 41 s in the phase `start`; no step was done"
    watchdog.beat(1)
    assert after(9) == ""
    watchdog.beat(2)
    assert after(9) == ""
    with watchdog.phase("save"):
        assert after(39) == ""
        with watchdog.phase("upload", 6):
            assert after(59) == ""
        assert after(39) == "", "anew since the inner block"
        assert after(2) == "nothing went on for 41 s in the phase `save`; the last step that was done is 2"
    assert after(9) == "", "anew since the block"
    assert after(2) == "nothing went on for 11 s between two steps; the last step that was done is 2"
    with contextlib.suppress(KeyError), watchdog.phase("export"):
        raise KeyError
    assert after(9) == ""
    assert after(2)


def test_zero_seconds_is_never() -> None:
    assert Watchdog(0, clock=iter([0.0, 1e9]).__next__).overdue() is None


def test_a_run_without_a_step_says_so() -> None:
    done = run(f"{BEGIN}\nWatchdog(0.1).start()\ntime.sleep(80)")
    assert done.returncode == 80
    assert re.search(r"nothing went on for \d+ s in the phase `start`; no step was done", done.stderr)


def test_one_that_is_stopped_or_off_ends_nothing() -> None:
    script = f"""{BEGIN}
off = Watchdog(0)
off.start()
off.beat(1)
from trainjob.train.watch import watchdog
watchdog._LATE = 0.2
stopped = Watchdog(1.0)
stopped.start()
stopped.stop()
time.sleep(1.4)
off.stop()
print("alive")
"""
    done = run(script)
    assert (done.returncode, done.stdout) == (0, "alive\n")


def test_sigusr1_shows_what_a_process_is_doing() -> None:
    script = f"""{BEGIN}
Watchdog(0).start()
def busy():
    print("ready")
    wait_for_ever(ctypes.CDLL(None))
busy()
"""
    with running(script) as process:
        until(process, "ready")
        process.send_signal(signal.SIGUSR1)
        assert process.stderr is not None
        seen = ""
        while "in busy" not in seen:
            line = process.stderr.readline()
            assert line, f"it ended: {seen}"
            seen += line
        assert process.poll() is None
