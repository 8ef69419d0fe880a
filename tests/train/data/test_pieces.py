"""Cutting documents."""

from __future__ import annotations

from array import array
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from trainjob.train.data.pieces import Encoded, cut, spans_of, tokens_in


def labelled(document: Encoded, seq_length: int) -> list[tuple[int, int]]:
    """(place of the token that is learnt, input before it), over all pieces; tokens are their own places."""
    found = []
    for piece in cut(document, seq_length):
        spans = ((0, piece.size),) if piece.learnt is None else piece.learnt
        places = [at for start, end in spans for at in range(start, end)]
        assert len(places) == piece.targets > 0
        assert 1 <= piece.size <= seq_length
        found += [(piece.tokens[at + 1], piece.tokens[at]) for at in places]
    return found


@given(st.integers(0, 100), st.integers(2, 17))
def test_every_token_but_the_first_is_learnt_once(length: int, seq_length: int) -> None:
    document = Encoded(array("i", range(length)))
    assert labelled(document, seq_length) == [(n, n - 1) for n in range(1, length)]
    pieces = cut(document, seq_length)
    assert [token for piece in pieces for token in piece.tokens[:-1]] == list(range(max(0, length - 1)))
    assert all(piece.size == seq_length for piece in pieces[:-1])


@given(st.lists(st.booleans(), max_size=60), st.integers(2, 17))
def test_of_chats_the_marked_ones(mask: list[bool], seq_length: int) -> None:
    document = Encoded(array("i", range(len(mask))), spans_of(mask))
    assert labelled(document, seq_length) == [(n, n - 1) for n, on in enumerate(mask) if on and n > 0]
    for piece in cut(document, seq_length):
        last = piece.learnt[-1][1] if piece.learnt else piece.size
        assert last == piece.size, "inputs after the last target compute nothing"


@given(st.lists(st.integers(0, 1), max_size=60))
def test_spans(mask: list[int]) -> None:
    spans = spans_of(mask)
    assert [int(any(a <= at < b for a, b in spans)) for at in range(len(mask))] == mask
    assert all(left[1] < right[0] for left, right in pairwise(spans))


def test_tokens_that_overlap_characters() -> None:
    offsets = [(0, 3), (3, 4), (4, 4), (4, 8), (8, 9), (9, 12)]
    assert tokens_in(offsets, ((3, 4),)) == ((1, 2),)
    assert tokens_in(offsets, ((5, 6), (9, 10))) == ((3, 4), (5, 6))
    assert tokens_in(offsets, ((2, 5),)) == ((0, 4),)
    assert tokens_in(offsets, ()) == ()
