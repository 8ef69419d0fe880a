"""When a restart is of use, who is to blame, and what counts as progress."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainjob.launch.policy import FINAL_CODES, PROGRESS, STALL, Failure, Policy, Progress, cause, exit_code

BUG = """Traceback (most recent call last):
  File "/opt/torch/errors/__init__.py", line 1, in wrapper
  File "<frozen runpy>", line 287, in run_path
  File "<frozen runpy>", line 88, in _run_code
  File "/workspace/train.py", line 12, in <module>
    {}["nope"]
KeyError: 'nope'
"""
PEER = (
    'Traceback (most recent call last):\n  File "t.py", line 3\nRuntimeError: Connection closed by peer [10.0.0.1]:5\n'
)


def test_a_killed_worker_is_blamed_before_its_peers() -> None:
    peer = Failure(0, 1, PEER, when=5)
    killed = Failure(1, -9)
    assert cause([peer, killed]) is killed
    assert killed.words == "rank 1 was ended by SIGKILL: out of memory, or killed from outside"
    assert killed.exit_code == 137


def test_a_bug_is_blamed_before_the_peers_that_lost_it() -> None:
    assert cause([Failure(0, 1, PEER, when=5), Failure(1, 1, BUG, when=6)]).rank == 1


def test_a_final_exit_code_is_blamed_first() -> None:
    assert cause([Failure(0, -9), Failure(3, 78)]).rank == 3


def test_of_like_failures_the_first_is_blamed() -> None:
    assert cause([Failure(0, 1, PEER, when=7), Failure(2, 1, PEER, when=5)]).rank == 2


def test_the_traceback_begins_at_the_script() -> None:
    lines = Failure(0, 1, BUG).script_trace.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1] == '  File "/workspace/train.py", line 12, in <module>'
    assert lines[-1] == "KeyError: 'nope'"


def test_an_error_is_its_last_line_even_when_it_has_several() -> None:
    trace = "Traceback (most recent call last):\n  File x\nValueError: first\n  second\n"
    assert Failure(0, 1, trace).error == "ValueError: first"


def test_a_reason_with_its_fix_is_not_cut() -> None:
    line = (
        "OUT_OF_MEMORY: the GPU has no memory left: " + "2.00 GiB asked for, " * 8 + "; " + "lower this, " * 20 + "END"
    )
    assert 300 < len(line) < 500
    assert Failure(0, 82, line).words.endswith("END")
    assert len(Failure(0, 1, "RuntimeError: " + "x" * 5000).words) < 1000, "the rest of the message has its place too"


@pytest.mark.parametrize("code", FINAL_CODES)
def test_sysexits_ask_for_no_restart(code: int) -> None:
    reason = Policy().final([Failure(0, code)])
    assert str(code) in reason
    assert exit_code(Failure(0, code), reason) == code


def test_the_same_bug_twice_is_final() -> None:
    policy = Policy()
    bug = Failure(1, 1, BUG)
    assert policy.final([bug]) == ""
    reason = policy.final([bug])
    assert reason == "rank 1 failed twice with the same error"
    assert exit_code(bug, reason) == 70


@pytest.mark.parametrize(
    "second",
    [Failure(1, 1, BUG.replace("nope", "other")), Failure(2, 1, BUG), Failure(1, -9), Failure(1, 1, PEER)],
    ids=["another error", "another rank", "a kill", "a lost peer"],
)
def test_anything_else_is_tried_again(second: Failure) -> None:
    policy = Policy()
    assert policy.final([Failure(1, 1, BUG)]) == ""
    assert policy.final([second]) == ""


def test_a_lost_peer_is_never_a_bug() -> None:
    policy = Policy()
    for _ in range(5):
        assert policy.final([Failure(0, 1, PEER)]) == ""


def test_the_exit_code_of_a_pod_without_restarts_left() -> None:
    assert exit_code(Failure(0, -9), "") == 137
    assert exit_code(Failure(0, 3), "") == 3
    assert exit_code(Failure(0, 0), "") == 1


def progress(tmp_path: Path, **environ: str) -> Progress:
    return Progress.from_env({PROGRESS: str(tmp_path / "progress"), **environ})


def test_progress_is_a_larger_step_than_at_the_last_failure(tmp_path: Path) -> None:
    seen = progress(tmp_path)
    assert not seen.made()
    seen.file.write_text("5")
    assert seen.made()
    assert not seen.made()
    seen.file.write_text("5\n")
    assert not seen.made()
    seen.file.write_text("10\n")
    assert seen.made()
    seen.file.write_text("half a num")
    assert not seen.made()


def test_no_watchdog_without_a_time(tmp_path: Path) -> None:
    seen = progress(tmp_path)
    seen.begin()
    seen.file.write_text("1")
    assert seen.stalled(1) == 0
    assert seen.stalled(10_000) == 0


def test_the_watchdog_waits_for_the_first_word_then_counts(tmp_path: Path) -> None:
    seen = progress(tmp_path, **{STALL: "30"})
    seen.begin()
    assert seen.stalled(1) == 0
    assert seen.stalled(900) == 0, "loading a model takes as long as it takes"
    seen.file.write_text("1")
    assert seen.stalled(1000) == 0
    assert seen.stalled(1029) == 0
    assert seen.stalled(1031) == 31
    seen.begin()
    assert seen.stalled(1100) == 0, "a new attempt starts afresh, with the old file still there"
    seen.file.write_text("2")
    assert seen.stalled(1200) == 0
    assert seen.stalled(1240) == 40
