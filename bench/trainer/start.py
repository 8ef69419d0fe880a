"""From the start of a process to the end of its first optimizer step, ours beside a script of transformers.Trainer.

Both read the same JSONL file, tokenise it as they go, load the same weights and compute 8 documents. The model
is tiny, so that the start counts and not the step. Files are in the page cache and compiled: the first,
uncounted run of each sees to that. Where others load the machine the CPU time of the whole process says more: one
step, and with ours also its last checkpoint.
"""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.trainer.contenders.ours import flags
from bench.trainer.figures import HERE, MAX_SECONDS, Check, Contender, environment, in_turns, median, quotient, spread
from bench.trainer.figures import run as run_contender

OURS, DEFAULT = "trainjob.train", "transformers.Trainer"
THREADS = 2
MAX_SHARE = 0.7


def ours(work: Path) -> dict[str, Any]:
    """The command as users start it; when the first step ended is in its metrics."""
    out = work / "out-start"
    shutil.rmtree(out, ignore_errors=True)
    given = [*flags(work, "skewed", 1, 1, "fp32"), "--checkpoint.url", str(out)]
    began = time.time()
    command = [sys.executable, "-m", "trainjob.train", *given]
    done = subprocess.run(command, env=environment(THREADS), capture_output=True, text=True, timeout=MAX_SECONDS)
    if done.returncode:
        raise RuntimeError(f"exit code {done.returncode}\n{(done.stdout + done.stderr)[-2000:]}")
    first = json.loads((out / "metrics.jsonl").read_text().splitlines()[0])
    shutil.rmtree(out)
    return {"start": first["time"] - began}


def default(work: Path) -> dict[str, Any]:
    began = time.time()
    program = [str(HERE / "contenders" / "hf.py"), str(work), "--lazy", "--steps", "1", "--documents", "8"]
    return {"start": run_contender([sys.executable, *program], THREADS)["first_step_at"] - began}


def measure(work: Path, rounds: int, key: str = "start") -> tuple[dict[str, list[dict[str, Any]]], list[Check]]:
    programs = {OURS: ours, DEFAULT: default}
    contenders = [Contender(name, "") for name in programs]

    def once(each: Contender) -> dict[str, Any]:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        result = programs[each.name](work)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return {**result, "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}

    in_turns(1, contenders, once)
    results = in_turns(rounds, contenders, once)
    table(results, ("start", "cpu"))
    if len(results) < len(programs):
        return results, []
    share = quotient(results[OURS], results[DEFAULT], key)
    what = "process start to first step" if key == "start" else "CPU time of a run of one step"
    return results, [Check(f"{what}, part of {DEFAULT}'s", share, MAX_SHARE, least=False)]


def table(results: dict[str, list[dict[str, Any]]], columns: Sequence[str] = ("start",)) -> None:
    print("\n| contender | seconds | from, to |\n|---|---|---|")
    for name, values in results.items():
        for key in columns:
            print(f"| {name}, {key} | {median(values, key):.2f} | {spread(values, key)} |")
