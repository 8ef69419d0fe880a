from __future__ import annotations

import signal
import time

from tests.train.watch.programs import STUCK, running, until

BEGIN = """
import os, time
from trainjob.train.watch import stop
listener = stop.Stop()
listener.install()
"""
DEFERRED = f"{BEGIN}\nlistener.defer()\n"


def test_before_the_first_step_it_ends_at_once() -> None:
    with running(f"{BEGIN}\n{STUCK}\nprint('ready')\nwait_for_ever(ctypes.CDLL(None))") as process:
        until(process, "ready")
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 143
    assert err == "trainjob.train: told to end by SIGTERM before the first step\n"


def test_then_it_is_a_request_that_the_loop_sees() -> None:
    script = f"""{DEFERRED}
assert not listener.requested
print("ready")
while not listener.requested:
    time.sleep(0.01)
print("saved")
raise SystemExit(143)
"""
    with running(script) as process:
        until(process, "ready")
        process.send_signal(signal.SIGTERM)
        time.sleep(0.05)
        process.send_signal(signal.SIGTERM)  # launchers pass it on twice
        out, err = process.communicate(timeout=60)
    assert process.returncode == 143
    assert out == "saved\n"
    assert err == "trainjob.train: told to end by SIGTERM: saving after this step\n"


def test_it_is_heard_while_the_main_thread_waits_in_c() -> None:
    script = f"""{DEFERRED}{STUCK}
import threading
def see():
    while not listener.requested:
        time.sleep(0.01)
    print("seen")
    os._exit(7)
threading.Thread(target=see).start()
print("ready")
wait_for_ever(ctypes.CDLL(None))
"""
    with running(script) as process:
        until(process, "ready")
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (7, "seen\n")


def test_a_second_time_it_ends_at_once() -> None:
    script = f"{DEFERRED}{STUCK}\nstop._ECHO = 0.2\nprint('ready')\nwait_for_ever(ctypes.CDLL(None))"
    with running(script) as process:
        until(process, "ready")
        process.send_signal(signal.SIGTERM)
        time.sleep(0.4)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 143
    assert err.endswith("told to end by SIGTERM a second time: not waiting for the checkpoint\n")


def test_the_signal_of_a_forked_child_is_not_ours() -> None:
    script = f"""{DEFERRED}
import signal
ready, begun = os.pipe()
child = os.fork()
if child == 0:
    os.write(begun, b"x")
    time.sleep(90)
    os._exit(0)
os.read(ready, 1)
os.kill(child, signal.SIGTERM)
_, status = os.waitpid(child, 0)
time.sleep(0.1)
print(os.WTERMSIG(status), listener.requested)
"""
    with running(script) as process:
        out, _ = process.communicate(timeout=60)
    assert out == "15 False\n"


def test_one_rank_of_a_pod_talks() -> None:
    script = f"{DEFERRED}\nprint('ready')\nwhile not listener.requested: time.sleep(0.01)"
    with running(script, LOCAL_RANK="1") as process:
        until(process, "ready")
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
