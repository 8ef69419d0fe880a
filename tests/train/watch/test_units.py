from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainjob.train.watch.units import count, duration, size


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"), (7, "7"), (7.25, "7.25"), (950, "950"), (999.4, "999"), (999.6, "1.00k"), (12_345, "12.3k"),
        (99_960, "100k"), (1_240_000, "1.24M"), (7_200_000_000, "7.20B"), (999_960, "1.00M"),
    ],
)  # fmt: skip
def test_counts_have_three_digits(number: float, text: str) -> None:
    assert count(number) == text


@given(st.floats(1, 1e12, allow_nan=False))
def test_a_count_is_right_within_its_digits(number: float) -> None:
    text = count(number)
    unit = {"k": 1e3, "M": 1e6, "B": 1e9}.get(text[-1], 1)
    assert float(text.rstrip("kMB")) * unit == pytest.approx(number, rel=0.006)


def test_sizes() -> None:
    assert size(38.2 * 2**30) == "38.2 GiB"
    assert size(512 * 2**20) == "512 MiB"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"), (45, "45 s"), (99, "99 s"), (120, "2 min"), (720, "12 min"), (3 * 3600 + 290, "3 h 05 min"),
        (51 * 3600, "2 d 03 h"), (math.inf, "?"), (math.nan, "?"),
    ],
)  # fmt: skip
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
