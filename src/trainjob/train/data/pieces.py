"""Documents as tokens, cut into pieces that fit a row."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Half-open ranges, in order, that do not touch.
Spans = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Encoded:
    """A document: its tokens (int32), and the ranges of those that are learnt; None: all."""

    tokens: array[int]
    learnt: Spans | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """`size` inputs and the token after each: tokens[0:size] are inputs, tokens[1:size+1] their labels.

    `learnt`: ranges of labels that are learnt, None for all; `targets`: how many those are, at least 1.
    """

    tokens: array[int]
    learnt: Spans | None
    targets: int

    @property
    def size(self) -> int:
        """Tokens that it takes in a row."""
        return len(self.tokens) - 1


def cut(document: Encoded, seq_length: int) -> list[Piece]:
    """Pieces of at most `seq_length` inputs.

    Each token but the first of the document is the label of one input, in one piece: where a document is cut,
    the last label of a piece is the first input of the next, so nothing is lost and nothing learnt twice. The
    next piece does not see the one before. The document's last token follows nothing: it is a label only.
    What cannot change the loss is left out: inputs after a piece's last target, and pieces without one.
    """
    tokens, inputs = document.tokens, len(document.tokens) - 1
    pieces = []
    for start in range(0, inputs, seq_length):
        size = min(seq_length, inputs - start)
        if document.learnt is None:
            pieces.append(Piece(tokens[start : start + size + 1], None, size))
            continue
        # Token start + 1 is label 0.
        spans = _within(document.learnt, start + 1, start + 1 + size)
        if spans:
            size = spans[-1][1]
            targets = sum(end - begin for begin, end in spans)
            pieces.append(Piece(tokens[start : start + size + 1], None if targets == size else spans, targets))
    return pieces


def _within(spans: Spans, start: int, end: int) -> Spans:
    """The parts of `spans` in [start, end), counted from `start`."""
    parts = ((max(a, start) - start, min(b, end) - start) for a, b in spans)
    return tuple((a, b) for a, b in parts if a < b)


def spans_of(mask: Iterable[int]) -> Spans:
    """Where `mask` is not 0."""
    spans: list[tuple[int, int]] = []
    for at, on in enumerate(mask):
        if not on:
            continue
        if spans and spans[-1][1] == at:
            spans[-1] = (spans[-1][0], at + 1)
        else:
            spans.append((at, at + 1))
    return tuple(spans)


def tokens_in(offsets: Sequence[tuple[int, int]], chars: Spans) -> Spans:
    """The tokens that overlap ranges of characters. `offsets`: each token's characters, in order.

    The rule of transformers for `return_assistant_tokens_mask` (5.24, tokenization_utils_base.py).
    """
    mask = [0] * len(offsets)
    at = 0
    for index, (start, end) in enumerate(offsets):
        while at < len(chars) and start >= chars[at][1]:
            at += 1
        if at == len(chars):
            break
        mask[index] = int(end > chars[at][0])
    return spans_of(mask)
