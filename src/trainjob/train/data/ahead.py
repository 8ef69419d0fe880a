"""Work done before it is asked for, in a thread."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Ahead(Generic[T]):
    """Iterates over what `make(closed)` yields, up to `depth` items ahead of the consumer.

    `closed()` is true once nobody wants more: a long computation asks it now and then. What `make` raises is
    raised in the consumer, after the items before it.
    """

    def __init__(self, make: Callable[[Callable[[], bool]], Iterator[T]], depth: int, name: str) -> None:
        self._make = make
        self._depth = max(1, depth)
        self._items: deque[T] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._ended = False
        self._error: BaseException | None = None
        # A daemon: a program that ends without close(), by an error, must not wait for it for ever.
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        error: BaseException | None = None
        try:
            for item in self._make(self.closed):
                with self._changed:
                    self._changed.wait_for(lambda: self._closed or len(self._items) < self._depth)
                    if self._closed:
                        break
                    self._items.append(item)
                    self._changed.notify_all()
        except BaseException as caught:
            error = caught
        with self._changed:
            self._error = error
            self._ended = True
            self._changed.notify_all()

    def closed(self) -> bool:
        """True once nobody wants more."""
        return self._closed

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        with self._changed:
            self._changed.wait_for(lambda: self._items or self._ended or self._closed)
            if self._closed:
                raise StopIteration
            if self._items:
                item = self._items.popleft()
                self._changed.notify_all()
                return item
            if self._error is not None:
                raise self._error
            raise StopIteration

    def stop(self) -> None:
        """Tells the thread to end, without waiting for it."""
        with self._changed:
            self._closed = True
            self._items.clear()
            self._changed.notify_all()

    def close(self) -> None:
        """Tells the thread to end and waits until it has."""
        self.stop()
        self._thread.join()
