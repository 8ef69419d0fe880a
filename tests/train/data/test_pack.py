"""Packing."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainjob.train.data.pack import pack

sizes_of = st.lists(st.integers(1, 64), max_size=200)


@given(sizes_of)
def test_each_piece_in_one_row_and_no_row_too_long(sizes: list[int]) -> None:
    rows = pack(sizes, 64)
    assert sorted(index for row in rows for index in row) == list(range(len(sizes)))
    assert all(1 <= sum(sizes[index] for index in row) <= 64 for row in rows)


@given(sizes_of)
def test_best_fit_decreasing(sizes: list[int]) -> None:
    """The same rows as the plain, quadratic form."""
    plain: list[list[int]] = []
    for size in sorted(sizes, reverse=True):
        fitting = [row for row in plain if sum(row) + size <= 64]
        if fitting:
            max(fitting, key=sum).append(size)
        else:
            plain.append([size])
    # Of rows alike in size either may be taken.
    assert sorted(sum(sizes[i] for i in row) for row in pack(sizes, 64)) == sorted(map(sum, plain))


@given(sizes_of, st.randoms(use_true_random=False))
def test_the_number_of_rows_does_not_depend_on_the_order(sizes: list[int], rng: random.Random) -> None:
    """So every epoch has the same number of rows, and counting one is enough."""
    other = rng.sample(sizes, len(sizes))
    assert sorted(sum(sizes[i] for i in row) for row in pack(sizes, 64)) == sorted(
        sum(other[i] for i in row) for row in pack(other, 64)
    )


@pytest.mark.parametrize("capacity", [1024, 2048, 8192])
@pytest.mark.parametrize("spread", [0.6, 1.0, 1.5])
def test_fill_of_skewed_sets(capacity: int, spread: float) -> None:
    rng = random.Random(1)
    sizes = [max(1, min(capacity, int(rng.lognormvariate(6, spread)))) for _ in range(2048)]
    rows = pack(sizes, capacity)
    assert sum(sizes) / (len(rows) * capacity) >= 0.98


def test_many_pieces_take_no_time() -> None:
    rng = random.Random(2)
    sizes = [max(1, min(131072, int(rng.lognormvariate(7, 1.5)))) for _ in range(50_000)]
    began = time.process_time()
    pack(sizes, 131072)
    assert time.process_time() - began < 5


def test_a_piece_that_fits_no_row() -> None:
    with pytest.raises(ValueError, match="65 tokens does not fit a row of 64"):
        pack([1, 65], 64)
