"""Rows over ranks and micro-batches."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from trainjob.train.data.spread import spread

steps = st.tuples(st.lists(st.integers(1, 1000), min_size=1, max_size=40), st.integers(1, 9), st.integers(1, 5))


@given(steps)
def test_each_row_once_and_the_same_number_of_micro_batches(step: tuple[list[int], int, int]) -> None:
    sizes, world, micro_batch = step
    ranks = spread(sizes, world, micro_batch)
    assert len(ranks) == world
    assert sorted(i for rank in ranks for batch in rank for i in batch) == list(range(len(sizes)))
    fewest = -(-len(sizes) // (world * micro_batch))
    assert {len(rank) for rank in ranks} == {fewest}
    assert all(len(batch) <= micro_batch for rank in ranks for batch in rank)


@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 5))
def test_equal_rows_are_shared_out_evenly(rows: int, world: int, micro_batch: int) -> None:
    counts = [sum(map(len, rank)) for rank in spread([7] * rows, world, micro_batch)]
    assert max(counts) - min(counts) <= 1


def test_an_uneven_batch() -> None:
    assert [sum(map(len, rank)) for rank in spread([5] * 8, 3, 2)] == [3, 3, 2]
    assert spread([5], 3, 1) == [[[0]], [[]], [[]]]


def test_ranks_wait_little_for_each_other() -> None:
    """With rows that are not packed, far less than if they were dealt out in their order."""
    rng = random.Random(3)
    for micro_batch in (1, 2, 4):
        waited = dealt = ideal = 0
        for _ in range(50):
            sizes = [max(1, min(2048, int(rng.lognormvariate(6, 1)))) for _ in range(32)]
            ranks = spread(sizes, 4, micro_batch)
            waited += sum(max(sum(sizes[i] for i in batch) for batch in at) for at in zip(*ranks, strict=True))
            for first in range(0, 32, 4 * micro_batch):
                groups = [range(first + r, first + 4 * micro_batch, 4) for r in range(4)]
                dealt += max(sum(sizes[i] for i in group) for group in groups)
            ideal += sum(sizes) / 4
        assert waited < dealt * 0.75
        assert waited < ideal * 1.25
