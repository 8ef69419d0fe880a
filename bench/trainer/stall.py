"""What checkpoints cost the training: written while it goes on, or while it waits.

Three runs of the same steps: without checkpoints, with synchronous and with asynchronous ones every two steps.
The model has 32 million parameters (workload.py, `medium`), a step has a row of 512 tokens for each process.
`held`: the time in which the training loop stood still for them (the trainer's own clock around its calls, from
the first save to the last step; the save after the last step is not counted, every run waits for that one).
`wall`: how much longer the same steps took than without, in the same round: with it comes what the writing
thread takes from the two cores.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from bench.trainer.figures import HERE, Check, Contender, in_turns, launched, median, quotient, run, spread

NONE, WAITING, BESIDE = "without", "synchronous", "asynchronous"
EVERY, STEPS = 2, 9
SAVES = (STEPS - 1) // EVERY
MAX_SHARE = 0.05
_FLAGS = {
    NONE: ("--checkpoint.every", "0"),
    WAITING: ("--checkpoint.every", str(EVERY), "--checkpoint.asynchronous", "false"),
    BESIDE: ("--checkpoint.every", str(EVERY), "--checkpoint.asynchronous", "true"),
}


def measure(work: Path, rounds: int, world: int) -> tuple[dict[str, list[dict[str, Any]]], list[Check]]:
    contenders = [Contender(name, "ours.py", flags) for name, flags in _FLAGS.items()]

    def once(each: Contender) -> dict[str, Any]:
        given = [*each.arguments, "--train.global-batch", str(world), "--steps", str(STEPS), "--rows", "equal"]
        program = [str(HERE / "contenders" / each.script), str(work), *given]
        return run(launched(sys.executable, program, world), max(2 // world, 1))

    results = in_turns(rounds, contenders, once)
    if len(results) < len(contenders):
        return results, []
    for name in (WAITING, BESIDE):
        for one, plain in zip(results[name], results[NONE], strict=True):
            one["wall_seconds"] = one["seconds"] - plain["seconds"]
    print(f"\n{SAVES} checkpoints in {STEPS} steps, {world} process{'es' if world > 1 else ''}")
    print("\n| checkpoints | steps took, s | held, s | from, to | wall, s | from, to |\n|---|---|---|---|---|---|")
    print(f"| {NONE} | {median(results[NONE], 'seconds'):.1f} | | | | |")
    for name in (WAITING, BESIDE):
        values = results[name]
        cells = [f"{median(values, key):.3f} | {spread(values, key)}" for key in ("held_seconds", "wall_seconds")]
        print(f"| {name} | {median(values, 'seconds'):.1f} | {' | '.join(cells)} |")
    share = quotient(results[BESIDE], results[WAITING], "held_seconds")
    what = f"held up by asynchronous checkpoints, part of synchronous, {world} process{'es' if world > 1 else ''}"
    return results, [Check(what, share, MAX_SHARE, least=False)]
