"""The sequence of rows."""

from __future__ import annotations

from array import array
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.train.data.material import data, texts, tokenizer, write_texts
from trainjob.train.data import rows as module
from trainjob.train.data.documents import Documents
from trainjob.train.data.files import Place, expand
from trainjob.train.data.pieces import Piece
from trainjob.train.data.rows import Position, Row, Rows
from trainjob.train.faults import Code, TrainError


def made(*paths: Path, seed: int = 0, log: list[str] | None = None, **more: Any) -> Rows:
    settings = data(*paths, **{"seq_length": 64, "window": 16, **more})
    told = log if log is not None else []
    return Rows(Documents(settings, expand(settings.train), tokenizer(), told.append), seed=seed, log=told.append)


def of_epoch(rows: Rows, epoch: int = 0) -> list[Row]:
    start = Position(epoch)
    return [row for window in rows.windows(start, epoch + 1) for row in window.rows]


def contents(rows: list[Row]) -> Counter[tuple[int, ...]]:
    return Counter(tuple(piece.tokens) for row in rows for piece in row.pieces)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_texts(tmp_path / "a.jsonl", texts(100))


@pytest.mark.parametrize("packing", [True, False])
def test_an_epoch_has_every_piece_once_in_another_order(path: Path, packing: bool) -> None:
    rows = made(path, packing=packing)
    first, second = of_epoch(rows), of_epoch(rows, 1)
    assert contents(first) == contents(second)
    assert first != second
    assert len(first) == len(second) == rows.count()
    assert all(row.size == sum(piece.size for piece in row.pieces) <= 64 for row in first)
    assert all(row.targets == row.size for row in first)
    if not packing:
        assert all(len(row.pieces) == 1 for row in first)


def test_the_seed_gives_the_order(path: Path) -> None:
    assert of_epoch(made(path, seed=1)) == of_epoch(made(path, seed=1))
    assert of_epoch(made(path, seed=1)) != of_epoch(made(path, seed=2))


def test_the_order_is_the_same_for_ever(path: Path) -> None:
    """Checkpoints hold places in it: a change here must come with another version of the loader's state."""
    pieces = [Piece(array("i", [number] * (2 + number**2 % 29)), None, 1 + number**2 % 29) for number in range(14)]
    found = made(path, seed=3)._arrange(pieces, 1, Place(2, 1234, 5))
    order = [[piece.tokens[0] for piece in row.pieces] for row in found]
    assert order == [[6, 12, 5], [9, 13, 10], [4, 11, 7, 8, 1, 3, 0], [2]]


@pytest.mark.parametrize("packing", [True, False])
def test_without_shuffling_documents_come_in_their_order(path: Path, packing: bool) -> None:
    rows = made(path, shuffle=False, packing=packing)
    assert of_epoch(rows) == of_epoch(rows, 1)
    firsts = [row.pieces[0] for row in of_epoch(rows)]
    order = [piece for pieces, _ in rows._documents.read(Place()) for piece in pieces]
    places = [order.index(piece) for piece in firsts]
    assert places == sorted(places)


def test_shuffled_within_windows_alone(path: Path) -> None:
    rows = made(path)
    sizes = [sum(len(piece.tokens) - 1 for row in w.rows for piece in row.pieces) for w in rows.windows(Position(), 1)]
    documents = [sum(p.size for p in pieces) for pieces, _ in rows._documents.read(Place())]
    assert sizes == [sum(documents[at : at + 16]) for at in range(0, 100, 16)]


@pytest.mark.parametrize("kept", [True, False])
def test_to_go_on_from_any_row(path: Path, monkeypatch: pytest.MonkeyPatch, kept: bool) -> None:
    if not kept:
        monkeypatch.setattr(module, "KEPT_BYTES", 0)
    rows = made(path)
    whole = [(window.start, row) for window in rows.windows(Position(), 2) for row in window.rows]
    number = 0
    for window in rows.windows(Position(), 2):
        for skip in range(len(window.rows)):
            start = window.start._replace(row=skip)
            rest = [row for some in made(path).windows(start, 2) for row in some.rows]
            assert rest == [row for _, row in whole[number:]]
            number += 1
        assert [row for some in rows.windows(window.after, 2) for row in some.rows] == [r for _, r in whole[number:]]
    assert number == len(whole)


def test_small_files_are_tokenised_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Place] = []
    plain = Documents.read

    def counting(self: Documents, start: Place) -> Any:
        read.append(start)
        return plain(self, start)

    monkeypatch.setattr(Documents, "read", counting)
    rows = made(path)
    rows.count()
    for epoch in range(3):
        of_epoch(rows, epoch)
    assert read == [Place()]
    monkeypatch.setattr(module, "KEPT_BYTES", 0)
    rows = made(path)
    rows.count()
    of_epoch(rows)
    assert read == [Place()] * 3


def test_long_documents_end_a_window_early(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WINDOW_TOKENS", 200)
    rows = made(path)
    windows = list(rows.windows(Position(), 1))
    assert len(windows) > 7
    longest = max(sum(p.size for p in pieces) for pieces, _ in rows._documents.read(Place()))
    assert all(sum(row.size for row in window.rows) < 200 + longest for window in windows)
    assert sum(len(window.rows) for window in windows) == rows.count()


def test_windows_end_once_closed(path: Path) -> None:
    windows = made(path).windows(Position(), closed=lambda: True)
    assert list(windows) == []


def test_for_ever(path: Path) -> None:
    windows = made(path, window=100).windows(Position())
    assert [window.start.epoch for window in islice(windows, 5)] in ([0, 1, 2, 3, 4], [0, 0, 1, 1, 2])


@pytest.mark.parametrize("window", [1, 4, 16])
def test_windows_that_end_with_the_data(tmp_path: Path, window: int) -> None:
    path = write_texts(tmp_path / "a.jsonl", texts(16))
    rows = made(path, window=window)
    assert sum(len(row.pieces) for row in of_epoch(rows)) == sum(len(some) for some, _ in rows._documents.read(Place()))
    last = list(rows.windows(Position(), 1))[-1]
    assert last.after == Position(1)


def test_nothing_to_learn_at_all(tmp_path: Path) -> None:
    path = write_texts(tmp_path / "a.jsonl", ["", "", ""])
    log: list[str] = []
    for ask in (Rows.count, lambda rows: list(rows.windows(Position()))):
        rows = made(path, window=2, log=log)
        with pytest.raises(TrainError, match=r"a\.jsonl: no document has anything to learn") as caught:
            ask(rows)
        assert caught.value.code is Code.BAD_DATA
    assert log == [f"{path}:1: nothing to learn; such lines are left out"] * 2


def test_counting_says_how_far_it_is(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_REPORT_SECONDS", 0)
    log: list[str] = []
    made(path, log=log).count()
    shares = [int(line.split("%")[0].split()[-1]) for line in log]
    assert shares == sorted(shares)
    assert len(shares) == 6
    assert 0 < shares[0] < shares[-1] < 100


@pytest.mark.parametrize(("mean", "spread"), [(2.5, 1.0), (3.0, 1.5), (4.0, 0.6)])
def test_rows_of_skewed_data_are_full(tmp_path: Path, mean: float, spread: float) -> None:
    path = write_texts(tmp_path / "a.jsonl", texts(2048, mean=mean, spread=spread))
    rows = of_epoch(made(path, seq_length=512, window=2048))
    assert sum(row.size for row in rows) / (len(rows) * 512) >= 0.98
