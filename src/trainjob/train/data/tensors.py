"""Rows to the tensors of a micro-batch."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate

import torch

from trainjob.train.data.batch import IGNORE, Batch
from trainjob.train.data.pieces import Piece
from trainjob.train.data.rows import Row


def batch(rows: Sequence[Row]) -> Batch:
    """One micro-batch of `rows`, one behind the other."""
    pieces = [piece for row in rows for piece in row.pieces]
    inputs, labels = array("i"), array("i")
    for piece in pieces:
        inputs += piece.tokens[:-1]
        labels += _labels(piece)
    sizes = [piece.size for piece in pieces]
    starts = torch.tensor([0, *accumulate(sizes)], dtype=torch.int32)
    # Each token's place in the row, less where its document begins.
    begins = torch.repeat_interleave(starts[:-1].long(), torch.tensor(sizes, dtype=torch.int64))
    return Batch(
        input_ids=_tensor(inputs),
        labels=_tensor(labels),
        positions=torch.arange(len(inputs)) - begins,
        starts=starts,
        longest=max(sizes, default=0),
        targets=sum(piece.targets for piece in pieces),
    )


def _labels(piece: Piece) -> array[int]:
    if piece.learnt is None:
        return piece.tokens[1:]
    labels = array("i", [IGNORE]) * piece.size
    for start, end in piece.learnt:
        labels[start:end] = piece.tokens[start + 1 : end + 1]
    return labels


def _tensor(numbers: array[int]) -> torch.Tensor:
    if not numbers:
        return torch.zeros(0, dtype=torch.int64)
    return torch.frombuffer(numbers, dtype=torch.int32).long()
