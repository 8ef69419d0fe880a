"""What the data hand to the model. No padding: rows of different lengths lie one behind the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

# A position that is not learnt: what torch's cross entropy ignores.
IGNORE: Final = -100


@dataclass(frozen=True, slots=True)
class Batch:
    """A micro-batch of one rank: N tokens of D documents. May be empty (N = 0): then the rank only takes part.

    `input_ids`, `labels`, `positions`: int64 of shape (N,). `labels[i]` is what follows `input_ids[i]` in the
    same document, or IGNORE: already shifted. `positions` count from 0 in each document. `starts`: int32 of
    shape (D + 1,), where documents begin, and N at the end. `longest`: tokens of the longest document.
    `targets`: labels that are not IGNORE.
    """

    input_ids: Any
    labels: Any
    positions: Any
    starts: Any
    longest: int
    targets: int


@dataclass(frozen=True, slots=True)
class Step:
    """What one optimizer step computes on this rank, and how much that is over all ranks.

    Every rank has the same number of micro-batches. The loss of a step is the sum of the cross entropies of
    all ranks divided by `targets`, so it does not depend on how rows are spread.
    """

    batches: tuple[Batch, ...]
    targets: int  # labels that count, over all ranks
    tokens: int  # tokens, over all ranks: all of them are of documents, none is padding
    epoch: int  # of the first row, from 0
