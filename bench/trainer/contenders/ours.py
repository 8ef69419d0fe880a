"""python -m trainjob.train on the bench's model and documents: the command itself, told of in the bench's terms.

    python bench/trainer/contenders/ours.py WORK [--rows equal] [any flag of python -m trainjob.train]

Tokens, losses, the ends of steps and the time in which checkpoints held the training up are those of its loop;
nothing else is touched.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from bench.trainer.meter import Meter, peak_rss


def output(work: Path) -> Path:
    """A folder for this run alone, the same on all its ranks."""
    return work / f"out-ours-{os.environ.get('TORCHELASTIC_RUN_ID', os.getpid())}"


def flags(work: Path, rows: str, steps: int, micro_batch: int, precision: str) -> list[str]:
    """The command line. Steps of 8 rows; nothing is saved or exported."""
    given = {
        "model.path": work / "model",
        "data.train": work / f"{rows}.jsonl",
        "data.seq-length": 512,
        "data.packing": "true" if rows == "skewed" else "false",
        # Default 2048: the first steps of a run would pay for the tokens of hundreds.
        "data.window": 256 if rows == "skewed" else 64,
        "train.steps": steps,
        "train.global-batch": 8,
        "train.micro-batch": micro_batch,
        "train.precision": precision,
        "optim.lr": 1e-3,
        "optim.schedule": "constant",
        "checkpoint.url": output(work),
        "checkpoint.every": 0,
        "export.kind": "none",
    }
    return [part for key, value in given.items() for part in (f"--{key}", str(value))]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    parser.add_argument("--rows", choices=("skewed", "equal"), default="skewed")
    parser.add_argument("--micro-batch", type=int, default=1)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--peaks", type=Path, help="folder to which each rank writes its peak RSS after the last step")
    args, more = parser.parse_known_args()

    from trainjob.train import __main__ as command
    from trainjob.train.loop import Loop

    meter = Meter()
    held: list[float] = []
    original = Loop.steps

    def steps(self: Loop, data: Any) -> Iterator[Any]:
        for done in original(self, data):
            meter.step(done.tokens, done.tokens, done.loss)
            # Of the Checkpointer: up to now, so without the last save, which every run waits for.
            held.append(self.before_update.__self__.stalled)  # type: ignore[attr-defined]
            if args.peaks and done.step == args.steps:
                (args.peaks / os.environ.get("RANK", "0")).write_text(str(peak_rss()))
            yield done

    Loop.steps = steps  # type: ignore[method-assign]
    given = flags(args.work, args.rows, args.steps, args.micro_batch, args.precision)
    code = command.main([*given, *more])
    shutil.rmtree(output(args.work), ignore_errors=True)
    if code == 0 and os.environ.get("RANK", "0") == "0":
        meter.report(contender="trainjob.train", rows=args.rows, micro_batch=args.micro_batch, held_seconds=held[-1])
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
