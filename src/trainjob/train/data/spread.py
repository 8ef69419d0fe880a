"""The rows of a step, over ranks and micro-batches."""

from __future__ import annotations

import heapq
from collections.abc import Sequence


def spread(sizes: Sequence[int], world: int, micro_batch: int) -> list[list[list[int]]]:
    """Rows of `sizes` tokens: result[rank][i] are the indices of the rows in micro-batch i of that rank.

    Every rank has the same number of micro-batches, the fewest that hold all rows: sharded weights are
    gathered by all ranks together, once for each. None has more than `micro_batch` rows; some may have none.
    Ranks wait for each other in each micro-batch, so those that are computed at the same time are alike in
    tokens, and what a rank has in all is near the mean: the longest row goes first, each to the lightest
    micro-batch; then the heaviest micro-batches are computed first, each by the rank that has least.
    """
    per_rank = -(-len(sizes) // world)
    count = max(1, -(-per_rank // micro_batch))
    bundles: list[list[int]] = [[] for _ in range(world * count)]
    lightest = [(0, at) for at in range(len(bundles))]
    for index in sorted(range(len(sizes)), key=lambda i: (-sizes[i], i)):
        load, at = heapq.heappop(lightest)
        bundles[at].append(index)
        if len(bundles[at]) < micro_batch:  # a full one is out of the race
            heapq.heappush(lightest, (load + sizes[index], at))
    loads = [sum(sizes[i] for i in bundle) for bundle in bundles]
    order = sorted(range(len(bundles)), key=lambda at: (-loads[at], at))
    ranks: list[list[list[int]]] = [[] for _ in range(world)]
    totals = [0] * world
    for first in range(0, len(order), world):
        # Of those alike, the heaviest goes to the rank that has least.
        for at, rank in zip(
            order[first : first + world], sorted(range(world), key=lambda r: (totals[r], r)), strict=True
        ):
            ranks[rank].append(sorted(bundles[at]))
            totals[rank] += loads[at]
    return ranks
