"""Exit codes and last words as a pod has them: two ranks under `trainjob launch`."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.train.watch.programs import appears, running

PROGRAM = """
import sys, time
from datetime import timedelta
from pathlib import Path
import torch
import torch.distributed as dist
from trainjob.train.faults import Code, TrainError
from trainjob.train.watch import last_words, stop, watchdog

what, folder = sys.argv[1], Path(sys.argv[2])
listener, dog = stop.Stop(), watchdog.Watchdog(4.0 if what == "hang" else 0)


def train(rank):
    for step in range(20000):
        told = torch.tensor(float(listener.requested))
        dist.all_reduce(told)
        dog.beat(step)
        if told > 0:
            if rank == 0:
                (folder / "saved").write_text(str(step))
            raise TrainError(Code.TOLD, f"told to end; step {step} is saved")
        if step == 3 and rank == 0:
            (folder / "running").touch()
        if step == 5 and what == "all":
            raise TrainError(Code.NOT_FOUND, "the model is not there", "correct model.path")
        if step == 5 and rank == 1:
            if what == "one":
                raise TrainError(Code.BAD_DATA, "/data/a.jsonl:7: not JSON", "correct that line")
            if what == "bug":
                {}["nope"]
            if what == "hang":
                time.sleep(150)
        time.sleep(0.01)


def main():
    listener.install()
    dist.init_process_group("gloo", timeout=timedelta(seconds=120))
    listener.defer()
    dog.start()
    train(dist.get_rank())


try:
    main()
except BaseException as error:
    last_words.leave(error, termination=folder / "termination-log")
"""


def launch(what: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    with launched(what, folder, *options) as process:
        out, err = process.communicate(timeout=180)
        return subprocess.CompletedProcess([], process.returncode, out, err)


def launched(what: str, folder: Path, *options: str):  # type: ignore[no-untyped-def]
    script = folder / "train.py"
    script.write_text(textwrap.dedent(PROGRAM))
    start = "import sys; from trainjob.launch.run import main; sys.exit(main(sys.argv[1:]))"
    return running(
        start, "--nproc-per-node", "2", "--standalone", *options, str(script), what, str(folder),
        PYTHONPATH=":".join(sys.path), OMP_NUM_THREADS="1",
    )  # fmt: skip


def test_the_fault_of_one_rank_is_the_pods_last_line(tmp_path: Path) -> None:
    done = launch("one", tmp_path)
    assert done.returncode == 65
    *_, last = done.stderr.splitlines()
    assert last == (
        "trainjob launch: rank 1 ended with exit code 65: BAD_DATA: /data/a.jsonl:7: not JSON; correct that line; "
        "exit code 65 asks for no restart"
    )
    assert done.stderr.count("Traceback") == 1, "of the rank that failed; the other one was a victim"
    assert (tmp_path / "termination-log").read_text().startswith("trainjob.train: rank 1: BAD_DATA: ")


def test_a_fault_of_all_ranks_is_told_once(tmp_path: Path) -> None:
    done = launch("all", tmp_path)
    assert done.returncode == 66
    assert done.stderr.count("Traceback") == 1
    assert "NOT_FOUND: the model is not there; correct model.path; exit code 66 asks for no restart" in done.stderr


def test_a_bug_is_blamed_and_its_traceback_kept(tmp_path: Path) -> None:
    done = launch("bug", tmp_path, "--max-restarts", "0")
    assert done.returncode == 1
    *_, last = done.stderr.splitlines()
    assert last == "trainjob launch: rank 1 ended with exit code 1: KeyError: 'nope'; no restart left"
    assert done.stderr.count('{}["nope"]') == 1
    assert done.stderr.count("Traceback") == 1


def test_a_hang_names_the_rank_and_the_place(tmp_path: Path) -> None:
    done = launch("hang", tmp_path, "--max-restarts", "0")
    assert done.returncode == 80
    assert "time.sleep(150)" in PROGRAM.splitlines()[line_in(done.stderr) - 1]
    assert re.search(r"HANG: nothing went on for \d+ s between two steps; the last .* is 5", done.stderr)


def line_in(log: str) -> int:
    """Where rank 1 was, by the stack that has no collective."""
    for stack in log.split("Thread "):
        lines = [line for line in stack.splitlines() if "train.py" in line and " in train" in line]
        if lines and "all_reduce" not in stack:
            return int(lines[0].split("line ")[1].split()[0])
    raise AssertionError(log)


@pytest.mark.parametrize("launcher", ["trainjob launch", "torchrun"])
def test_sigterm_saves_and_ends_with_143(launcher: str, tmp_path: Path) -> None:
    if launcher == "torchrun":
        (tmp_path / "train.py").write_text(textwrap.dedent(PROGRAM))
        program = running(
            "import sys; from torch.distributed.run import main; main(sys.argv[1:])",
            "--nproc-per-node", "2", "--standalone", str(tmp_path / "train.py"), "told", str(tmp_path),
            PYTHONPATH=":".join(sys.path), OMP_NUM_THREADS="1",
        )  # fmt: skip
    else:
        program = launched("told", tmp_path)
    with program as process:
        appears(tmp_path / "running")
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=180)
    if launcher == "trainjob launch":
        assert process.returncode == 143
    step = int((tmp_path / "saved").read_text())
    assert f"trainjob.train: rank 0: TOLD: told to end; step {step} is saved (exit code 143)" in err
    assert err.count("told to end by SIGTERM: saving after this step") == 1
    assert "second time" not in err
