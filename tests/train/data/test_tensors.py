"""Rows to tensors."""

from __future__ import annotations

import subprocess
import sys
from array import array

import torch

from trainjob.train.data.batch import IGNORE
from trainjob.train.data.pieces import Piece
from trainjob.train.data.rows import Row
from trainjob.train.data.tensors import batch


def test_pieces_one_behind_the_other() -> None:
    one = Piece(array("i", [5, 6, 7]), None, 2)
    two = Piece(array("i", [1, 2, 3, 4]), ((1, 3),), 2)
    made = batch([Row((one, two), 5, 4), Row((one,), 2, 2)])
    assert made.input_ids.tolist() == [5, 6, 1, 2, 3, 5, 6]
    assert made.labels.tolist() == [6, 7, IGNORE, 3, 4, 6, 7]
    assert made.positions.tolist() == [0, 1, 0, 1, 2, 0, 1]
    assert made.starts.tolist() == [0, 2, 5, 7]
    assert (made.longest, made.targets) == (3, 6)
    kinds = (made.input_ids.dtype, made.labels.dtype, made.positions.dtype, made.starts.dtype)
    assert kinds == (torch.int64, torch.int64, torch.int64, torch.int32)


def test_no_rows() -> None:
    made = batch([])
    assert [t.tolist() for t in (made.input_ids, made.labels, made.positions, made.starts)] == [[], [], [], [0]]
    assert (made.longest, made.targets) == (0, 0)
    assert {t.dtype for t in (made.input_ids, made.labels, made.positions)} == {torch.int64}


def test_no_second_set_of_openmp_threads() -> None:
    """A thread in which torch computes on several threads gets threads of its own, and those of the training sleep."""
    program = """
import os, threading, torch
from array import array
from trainjob.train.data.pieces import Piece
from trainjob.train.data.rows import Row
from trainjob.train.data.tensors import batch
def threads(): return len(os.listdir("/proc/self/task"))
torch.set_num_threads(4)
torch.randn(1 << 20).mul(2)  # what the training has
before, seen = threads(), []
piece = Piece(array("i", range(1 << 16)), None, (1 << 16) - 1)
def make():
    batch([Row((piece,) * 8, 8 * piece.size, 8 * piece.targets)])
    seen.append(threads())
    torch.randn(1 << 20).mul(2)
    seen.append(threads())
thread = threading.Thread(target=make)
thread.start(); thread.join()
print(seen[0] - before, seen[1] - before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    # The thread itself; and, so that this test can fail, three more once torch computes on four.
    assert done.stdout.split() == ["1", "4"]
