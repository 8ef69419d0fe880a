"""Peak memory of a rank under FSDP in fp32, beside what the formula says.

Measured is the largest resident set of each rank (VmHWM) until the last step's end, minus the same of a run
with a tiny model and the same command: interpreter, libraries, process groups and buffers that do not depend
on the model. The formula is taken of both models, too. No checkpoint is written while it is measured.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.trainer.figures import HERE, Check, Contender, in_turns, launched, median, run
from bench.trainer.workload import SEQ_LENGTH, SIZES, Size

RANKS, MODEL, BASELINE = 2, "large", "tiny"
MAX_OFF = 0.10
FLOAT = 4
# Logits that the trainer computes at one time on a CPU, at least those of so many tokens (model/loss.py), and copies
# of them: themselves and what the head makes of their gradient.
CHUNK, LEAST, CHUNK_COPIES = 1 << 21, 256, 2


@dataclass(frozen=True, slots=True)
class Terms:
    """Bytes of a rank."""

    states: int
    gathered: int
    activations: int
    logits: int

    @property
    def total(self) -> int:
        return self.states + self.gathered + self.activations + self.logits


def formula(size: Size, ranks: int, tokens: int) -> Terms:
    """Bytes of a rank that computes `tokens` at once, all in fp32.

    states: weights 4, gradients 4, AdamW's moments 8 bytes a parameter, over the ranks (FSDP2 with fp32 master
    weights, torchtitan's way). gathered: twice the largest unit that FSDP gathers, one in use and one ahead, and
    the buffer of its reduce-scatter; the root holds both embeddings. activations: of a Llama layer and token,
    4 bytes x (5h + h(1 + 2g) + 4f) and 8h of the norms, with g = key-value heads / heads, f the inner width.
    logits: the trainer computes them in chunks (model/loss.py).
    """
    head = size.hidden // size.heads
    root = 2 * size.vocabulary * size.hidden + size.hidden
    layer = (size.parameters - root) // size.layers
    shared = size.kv_heads * head / size.hidden
    per_token = FLOAT * (5 * size.hidden + size.hidden * (1 + 2 * shared) + 4 * size.inner) + 8 * size.hidden
    return Terms(
        states=16 * size.parameters // ranks,
        gathered=3 * FLOAT * max(root, layer),
        activations=int(tokens * size.layers * per_token),
        logits=CHUNK_COPIES * FLOAT * min(max(CHUNK, LEAST * size.vocabulary), tokens * size.vocabulary),
    )


def measure(folders: dict[str, Path], rounds: int) -> tuple[dict[str, list[dict[str, Any]]], list[Check]]:
    """`folders`: the workloads of MODEL and BASELINE."""
    contenders = [Contender(name, "ours.py") for name in (MODEL, BASELINE)]

    def once(each: Contender) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as peaks:
            given = ["--rows", "equal", "--steps", "3", "--peaks", peaks, "--parallel.mode", "fsdp"]
            given += ["--train.global-batch", str(RANKS), "--train.micro-batch", "1"]
            program = [str(HERE / "contenders" / each.script), str(folders[each.name]), *given]
            run(launched(sys.executable, program, RANKS), 1)
            found = [int((Path(peaks) / str(rank)).read_text()) for rank in range(RANKS)]
        return {"peak": max(found), "peaks": found}

    results = in_turns(rounds, contenders, once)
    if len(results) < len(contenders):
        return results, []
    said = {name: formula(SIZES[name], RANKS, SEQ_LENGTH) for name in results}
    grown = median(results[MODEL], "peak") - median(results[BASELINE], "peak")
    expected = said[MODEL].total - said[BASELINE].total
    parameters = SIZES[MODEL].parameters
    print(f"\n{parameters:,} parameters, {RANKS} ranks, FSDP in fp32, {SEQ_LENGTH} tokens at once; MB")
    print("\n| | measured | formula | states | gathered | activations | logits |\n|---|---|---|---|---|---|---|")
    for name, terms in said.items():
        parts = (terms.total, terms.states, terms.gathered, terms.activations, terms.logits)
        cells = " | ".join(f"{part / 1e6:.0f}" for part in parts)
        print(f"| {name} | {median(results[name], 'peak') / 1e6:.0f} | {cells} |")
    print(f"| difference | {grown / 1e6:.0f} | {expected / 1e6:.0f} | | | | |")
    off = abs(grown / expected - 1)
    return results, [
        Check(f"peak memory of a rank, off the formula ({grown / expected:.2f} of it)", off, MAX_OFF, False)
    ]
