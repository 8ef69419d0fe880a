"""A run that is in the middle of its second save until somebody kills it: `python killed.py URL`."""

from __future__ import annotations

import sys
import threading
from typing import Any

from tests.train.checkpoint.small import Run
from trainjob.train.checkpoint.place import Place


class _Stuck:
    """A stream that takes a first piece and then no more."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, data: Any) -> int:
        self._stream.write(bytes(data)[:100])
        self._stream.flush()
        print("writing", flush=True)
        threading.Event().wait()
        return 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def main(url: str) -> None:
    run = Run()
    saver = run.saver(url)
    saver.resume()
    run.step(saver)
    saver.save(1, wait=True)
    print("saved", flush=True)
    run.step(saver)
    opened = Place.open
    Place.open = lambda place, name, mode: _Stuck(opened(place, name, mode))  # type: ignore[method-assign]
    saver.save(2, wait=True)


if __name__ == "__main__":
    main(sys.argv[1])
