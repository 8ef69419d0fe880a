"""The copy that a checkpoint is written from while the training changes the original.

DCP first plans which rank writes what (`plan`), and only that is copied: of weights that every rank has, each
rank copies its share. Host memory of a rank: 12 bytes a parameter (fp32 weight and AdamW's two moments) over the
ranks. The copy is kept and filled again by the next save. On a GPU it runs on a stream of its own.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch


class Stage:
    """Host memory for the copies, and the stream that fills it. `device`: of the training."""

    def __init__(self, device: Any) -> None:
        self.device = torch.device(device)
        self.cuda = self.device.type == "cuda"
        self._stream: Any = torch.cuda.Stream(self.device) if self.cuda else None
        self._copies: dict[Any, Any] = {}

    def enter(self) -> None:
        """For the thread that copies: a new thread works with the first GPU."""
        if self.cuda:
            torch.cuda.set_device(self.device)

    def begin(self) -> Any:
        """A mark after all work given to the device so far: the copy must see its results. Training thread only."""
        if not self.cuda:
            return None
        mark = torch.cuda.Event()
        mark.record(torch.cuda.current_stream(self.device))
        return mark

    def copy(self, sources: dict[Any, Any], mark: Any) -> tuple[dict[Any, Any], Any]:
        """Copies of `sources` by the same keys, and the mark after which the originals may change.

        On a GPU the copies hold their values only after that mark.
        """
        if not self.cuda:
            return {key: self._fill(key, source, False) for key, source in sources.items()}, None
        with torch.cuda.stream(self._stream):
            self._stream.wait_event(mark)
            copies = {key: self._fill(key, source, True) for key, source in sources.items()}
            done = torch.cuda.Event()
            done.record(self._stream)
        return copies, done

    def _fill(self, key: Any, source: Any, pinned: bool) -> Any:
        copy = self._copies.get(key)
        if copy is None or copy.shape != source.shape or copy.dtype != source.dtype:
            copy = torch.empty(source.shape, dtype=source.dtype, device="cpu")
            if pinned:
                _pin(copy)
            self._copies[key] = copy
        return copy.copy_(source, non_blocking=pinned)

    def close(self) -> None:
        self._copies.clear()


def _pin(copy: Any) -> None:
    """Lets the GPU write into it directly. Not by torch.empty(pin_memory=True), which takes up to twice the size."""
    from torch.cuda import _pin_memory_utils as pins

    if copy.nbytes == 0:
        return
    try:
        pins.pin_memory(copy.data_ptr(), copy.nbytes)
    except RuntimeError:  # No more memory may be locked: the copy is only slower.
        return
    weakref.finalize(copy.untyped_storage(), pins.unpin_memory, copy.data_ptr()).atexit = False
