"""Work in a thread, before it is asked for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from trainjob.train.data.ahead import Ahead


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not true():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_order_and_depth() -> None:
    made: list[int] = []

    def numbers(_: Callable[[], bool]) -> Iterator[int]:
        for n in range(20):
            made.append(n)
            yield n

    ahead = Ahead(numbers, 3, "numbers")
    until(lambda: len(made) == 4)  # three wait, the fourth is in the maker's hand
    time.sleep(0.02)
    assert len(made) == 4
    assert list(ahead) == list(range(20))
    assert list(ahead) == []
    ahead.close()


def test_an_error_comes_after_what_came_before_it() -> None:
    def fails(_: Callable[[], bool]) -> Iterator[int]:
        yield 1
        raise ValueError("broken")

    ahead = Ahead(fails, 5, "fails")
    assert next(ahead) == 1
    for _ in range(2):
        with pytest.raises(ValueError, match="broken"):
            next(ahead)
    ahead.close()


def test_closing_ends_the_thread_wherever_it_is() -> None:
    before = threading.active_count()

    def busy(closed: Callable[[], bool]) -> Iterator[int]:
        yield 1
        while not closed():
            time.sleep(0.001)

    def full(_: Callable[[], bool]) -> Iterator[int]:
        while True:
            yield 1

    for make in (busy, full):
        ahead = Ahead(make, 2, "closed")
        assert next(ahead) == 1
        ahead.close()
        assert list(ahead) == []
    assert threading.active_count() == before


def test_a_consumer_that_waits_is_let_go() -> None:
    gate = threading.Event()

    def stuck(_: Callable[[], bool]) -> Iterator[int]:
        gate.wait(10)
        yield 1

    ahead = Ahead(stuck, 1, "stuck")
    got: list[list[int]] = []
    waiting = threading.Thread(target=lambda: got.append(list(ahead)))
    waiting.start()
    ahead.stop()
    waiting.join(10)
    assert got == [[]]
    gate.set()
    ahead.close()
