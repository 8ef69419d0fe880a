from __future__ import annotations

import io
import os
from dataclasses import replace

import pytest

from tests.train.watch.steps import record
from trainjob.train.watch.meter import Record
from trainjob.train.watch.progress import Progress, line

STEP = Record(
    step=120, total=1000, epoch=0, time=0, loss=2.31412, lr=1.9e-5, grad_norm=0.8214, tokens=9000, seconds=0.7,
    tokens_per_second=12_345, tokens_per_second_per_rank=6172.5, mfu=0.412, memory=int(38.2 * 2**30), remaining=720,
)  # fmt: skip


def test_a_step_in_one_line() -> None:
    assert line(STEP, "GPU") == (
        "step 120/1000  loss 2.3141  lr 1.9e-05  grad 0.821  12.3k tok/s  6.17k tok/s/GPU  MFU 41.2 %  "
        "mem 38.2 GiB  ETA 12 min"
    )


def test_what_is_unknown_is_left_out() -> None:
    assert line(replace(STEP, total=0, mfu=None, remaining=None, loss=float("nan")), "process") == (
        "step 120  loss nan  lr 1.9e-05  grad 0.821  12.3k tok/s  6.17k tok/s/process  mem 38.2 GiB"
    )


def test_lines_every_few_steps_and_the_first_and_the_last() -> None:
    out = io.StringIO()
    progress = Progress("process", every=10, out=out)
    for step in range(13, 37):
        progress.step(record(step, total=36))
    assert [text.split()[1] for text in out.getvalue().splitlines()] == ["13/36", "20/36", "30/36", "36/36"]


def test_the_lines_around_the_steps() -> None:
    out = io.StringIO()
    progress = Progress(out=out)
    progress.start({"model": "granite, 8.17B parameters", "world": "2 ranks", "data": ""})
    progress.resumed(100, "s3://b/run")
    progress.resumed(100, "s3://b/run", seen=140)
    progress.saved(200, "s3://b/run", 3.25)
    progress.saved(300, "s3://b/run")
    progress.end(STEP, 754)
    progress.end(None, 12)
    assert out.getvalue().splitlines() == [
        "model  granite, 8.17B parameters",
        "world  2 ranks",
        "resumed from step 100 of s3://b/run",
        "resumed from step 100 of s3://b/run; 40 steps are computed again",
        "saved step 200 to s3://b/run in 3.2 s",
        "saved step 300 to s3://b/run",
        "done: step 120  loss 2.3141  12.3k tok/s  mem 38.2 GiB  after 13 min",
        "done: nothing was left to do, after 12 s",
    ]


def test_a_reader_that_went_away_stops_nothing() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with io.FileIO(writer, "w") as pipe:
        gone = io.TextIOWrapper(pipe, write_through=True)
        with pytest.raises(BrokenPipeError):
            gone.write("x")
        Progress(out=gone).step(STEP)
    closed = io.StringIO()
    closed.close()
    Progress(out=closed).step(STEP)
