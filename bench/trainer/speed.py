"""Useful tokens a second: documents' tokens, padding not counted, over the steps after the first ones.

All train the same weights on the same documents with AdamW, about 4,096 useful tokens in an optimizer step,
on the same threads. Each peer has the micro-batch that was fastest for it on CPUs (README.md); what it needs
to compute is its own affair.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.trainer.figures import HERE, Check, Contender, in_turns, interpreter, launched, median, quotient, run, spread

OURS, DEFAULT = "trainjob.train", "transformers.Trainer"
BY_LENGTH = f"{DEFAULT}, by length"
# In a quick run: each trainer once, as it is, and the fastest setting of transformers.Trainer.
QUICK = (OURS, DEFAULT, BY_LENGTH, "TRL", "litgpt", "torchtune")
MIN_SKEWED, MIN_EQUAL, MIN_BEST = 1.4, 1.03, 1.0

CONTENDERS = {
    "skewed": (
        Contender(OURS, "ours.py", ("--micro-batch", "4")),
        Contender(DEFAULT, "hf.py", ("--batching", "padded", "--micro-batch", "8")),
        Contender(BY_LENGTH, "hf.py", ("--batching", "grouped", "--micro-batch", "16")),
        Contender(f"{DEFAULT}, one by one", "hf.py", ("--batching", "padded", "--micro-batch", "1")),
        Contender(f"{DEFAULT}, padding-free", "hf.py", ("--batching", "flat", "--micro-batch", "4")),
        Contender("TRL", "trl_sft.py", ("--micro-batch", "8"), "trl"),
        Contender("TRL, packed", "trl_sft.py", ("--packing", "--micro-batch", "2"), "trl"),
        Contender("litgpt", "litgpt_full.py", ("--micro-batch", "1"), "litgpt"),
        Contender("torchtune", "tune.py", ("--micro-batch", "4"), "torchtune"),
        Contender("torchtune, packed", "tune.py", ("--packing", "--micro-batch", "1"), "torchtune"),
    ),
    "equal": (
        Contender(OURS, "ours.py", ("--micro-batch", "4")),
        Contender(DEFAULT, "hf.py", ("--micro-batch", "2")),
        Contender("TRL", "trl_sft.py", ("--micro-batch", "4"), "trl"),
        Contender("litgpt", "litgpt_full.py", ("--micro-batch", "2"), "litgpt"),
        Contender("torchtune", "tune.py", ("--micro-batch", "2"), "torchtune"),
    ),
}
# Several processes: what starts there on CPUs.
DISTRIBUTED = ("ours.py", "hf.py", "trl_sft.py")
BF16 = ("ours.py", "hf.py", "trl_sft.py", "litgpt_full.py")


def chosen(rows: str, world: int, precision: str, only: str, quick: bool = False) -> list[Contender]:
    """Those that can do it, and whose names contain one of `only`; of QUICK alone if `quick`."""
    words = [word.strip() for word in only.split(",") if word.strip()]
    return [
        each
        for each in CONTENDERS[rows]
        if (world == 1 or each.script in DISTRIBUTED)
        and (precision == "fp32" or each.script in BF16)
        and (not quick or each.name in QUICK)
        and (not words or any(word in each.name for word in words))
    ]


def measure(
    rows: str,
    work: Path,
    peers: Path,
    *,
    world: int,
    precision: str,
    steps: int,
    rounds: int,
    only: str = "",
    quick: bool = False,
    alone: bool = False,
) -> dict[str, list[dict[str, Any]]]:
    """Results of each contender, one a round. `alone`: one thread, so that CPU time is work alone."""
    threads = 1 if alone else max(2 // world, 1)

    def once(each: Contender) -> dict[str, Any]:
        given = [*each.arguments, "--rows", rows, "--steps", str(steps)]
        if each.script in BF16:
            given += ["--precision", precision]
        if each.name == OURS and world > 1:
            given += ["--parallel.mode", "ddp"]  # as the others; its default is to shard
        program = [str(HERE / "contenders" / each.script), str(work), *given]
        return run(launched(interpreter(peers, each.peer), program, world), threads)

    return in_turns(rounds, chosen(rows, world, precision, only, quick), once)


def table(results: dict[str, list[dict[str, Any]]], key: str) -> None:
    print(
        f"\n| contender | {key.replace('_', ' ')} | from, to | computed per useful | peak RSS, MB | loss at the end |"
    )
    print("|---|---|---|---|---|---|")
    for name, values in results.items():
        ratio = median(values, "computed_tokens") / median(values, "useful_tokens")
        print(
            f"| {name} | {median(values, key):.0f} | {spread(values, key)} | {ratio:.2f} |"
            f" {median(values, 'peak_rss') / 1e6:.0f} | {median(values, 'last_loss'):.3f} |"
        )


def checks(rows: str, results: dict[str, list[dict[str, Any]]], key: str, what: str) -> list[Check]:
    if OURS not in results:
        return []
    ours, made = results[OURS], []
    if DEFAULT in results:
        target = MIN_SKEWED if rows == "skewed" else MIN_EQUAL
        made.append(Check(f"{what}: to {DEFAULT}", quotient(ours, results[DEFAULT], key), target))
    peers = {name: median(values, key) for name, values in results.items() if name not in (OURS, DEFAULT)}
    if peers:
        best = max(peers, key=lambda name: peers[name])
        made.append(Check(f"{what}: to the best other, {best}", quotient(ours, results[best], key), MIN_BEST))
    return made
