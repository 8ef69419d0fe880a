"""The endless sequence of rows: windows of documents, shuffled and packed, epoch after epoch.

The order depends on the data, the settings and the seed, never on who asks for it. A place in it is a few
numbers; to go on from there, one window is read and packed again.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from trainjob.train.data.documents import Documents
from trainjob.train.data.files import Place
from trainjob.train.data.pack import pack
from trainjob.train.data.pieces import Piece

# A window ends early at this many tokens (16 MiB of them): long documents are not to fill the memory.
WINDOW_TOKENS: Final = 4 * 2**20
# Files of so many bytes in all stay in memory as tokens (which take about the same), so that counting the rows
# and later epochs cost nothing.
KEPT_BYTES: Final = 64 * 2**20
_REPORT_SECONDS: Final = 10.0

T = TypeVar("T")


class Position(NamedTuple):
    """The next row: the epoch, where its window begins, and how many rows of that come before."""

    epoch: int = 0
    place: Place = Place()
    row: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """Pieces that are computed together. `size`: tokens; `targets`: labels that are learnt."""

    pieces: tuple[Piece, ...]
    size: int
    targets: int


@dataclass(frozen=True, slots=True)
class Window:
    """The rows of a window, in order; `after` is the position of the next window's first row."""

    start: Position
    rows: tuple[Row, ...]
    after: Position


def _never() -> bool:
    return False


class Rows:
    """Rows of the documents, for every epoch anew if shuffled."""

    def __init__(self, documents: Documents, *, seed: int, log: Callable[[str], None]) -> None:
        self._documents = documents
        self._settings = documents.settings
        self._seed = seed
        self._log = log
        small = sum(file.size for file in documents.files) <= KEPT_BYTES
        self._kept: dict[Place, tuple[list[Piece], Place | None]] | None = {} if small else None

    def windows(self, start: Position, epochs: int = 0, closed: Callable[[], bool] = _never) -> Iterator[Window]:
        """Windows from the one of `start` on; the first without its first `row` rows.

        They end with epoch `epochs` - 1, with 0 never, or once `closed()`.

        Raises TrainError, BAD_DATA too if an epoch has no rows.
        """
        epoch, skip = start.epoch, start.row
        found = start.place != Place() or start.row > 0
        place = start.place
        while not epochs or epoch < epochs:
            for begin, pieces, end in self._read(place, closed):
                rows = self._arrange(pieces, epoch, begin)
                after = Position(epoch, end) if end else Position(epoch + 1)
                found = found or bool(rows)
                yield Window(Position(epoch, begin, skip), tuple(rows[skip:]), after)
                skip = 0
            if closed():
                return
            if not found:
                raise self._documents.nothing()
            epoch, place, found = epoch + 1, Place(), False

    def count(self) -> int:
        """Rows of an epoch: the same in each, as packing depends on the sizes alone. Reads all the data once."""
        rows = tokens = 0
        size = sum(file.size for file in self._documents.files)
        began = told = time.monotonic()
        for _, pieces, end in self._read(Place(), _never):
            rows += self._number(pieces)
            tokens += sum(piece.size for piece in pieces)
            if end and time.monotonic() - told >= _REPORT_SECONDS:
                told = time.monotonic()
                done = sum(file.size for file in self._documents.files[: end.file]) + end.offset
                self._log(
                    f"counting rows, for the number of steps: {done / size:.0%} of {size / 1e9:.1f} GB, "
                    f"{tokens / (told - began):,.0f} tokens/s; with train.steps nothing is counted"
                )
        if not rows:
            raise self._documents.nothing()
        return rows

    def _read(self, start: Place, closed: Callable[[], bool]) -> Iterator[tuple[Place, list[Piece], Place | None]]:
        """Windows from `start` to the end of the data: beginning, pieces, end (None: of the data)."""
        source: Iterator[tuple[list[Piece], Place]] | None = None
        place: Place | None = start
        while place is not None:
            if self._kept is not None and place in self._kept:
                source = None
                pieces, end = self._kept[place]
            else:
                source = source or self._documents.read(place)
                taken = self._take(source, closed)
                if taken is None:
                    return
                pieces, end = taken
                if self._kept is not None:
                    self._kept[place] = pieces, end
            yield place, pieces, end
            place = end

    def _take(
        self, source: Iterator[tuple[list[Piece], Place]], closed: Callable[[], bool]
    ) -> tuple[list[Piece], Place | None] | None:
        """The pieces of one window, and its end; None once closed."""
        pieces: list[Piece] = []
        tokens = 0
        for documents, (document, end) in enumerate(source, 1):
            pieces += document
            tokens += sum(piece.size for piece in document)
            if closed():
                return None
            if documents == self._settings.window or tokens >= WINDOW_TOKENS:
                return pieces, end
        return pieces, None

    def _number(self, pieces: Sequence[Piece]) -> int:
        if not self._settings.packing:
            return len(pieces)
        return len(pack([piece.size for piece in pieces], self._settings.seq_length))

    def _arrange(self, pieces: list[Piece], epoch: int, place: Place) -> list[Row]:
        """Pieces into rows, both in an order of their own for each epoch and window."""
        if self._settings.shuffle:
            # random() of a seed is the same in every Python; shuffle() is not promised to be.
            draw = random.Random(f"{self._seed}/{epoch}/{place.file}/{place.offset}").random
            pieces = _by([draw() for _ in pieces], pieces)
        if self._settings.packing:
            packed = pack([piece.size for piece in pieces], self._settings.seq_length)
            groups = sorted(sorted(group) for group in packed)
        else:
            groups = [[index] for index in range(len(pieces))]
        if self._settings.shuffle:
            groups = _by([draw() for _ in groups], groups)
        rows = []
        for group in groups:
            chosen = tuple(pieces[index] for index in group)
            rows.append(Row(chosen, sum(piece.size for piece in chosen), sum(piece.targets for piece in chosen)))
        return rows


def _by(keys: list[float], values: list[T]) -> list[T]:
    return [values[index] for index in sorted(range(len(values)), key=keys.__getitem__)]
