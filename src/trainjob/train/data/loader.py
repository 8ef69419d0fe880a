"""The steps of a rank: rows of the one order, spread over ranks and micro-batches, as tensors."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from trainjob.train import config
from trainjob.train.data import tokens
from trainjob.train.data.ahead import Ahead
from trainjob.train.data.batch import Step
from trainjob.train.data.documents import Documents
from trainjob.train.data.files import Place, expand, fingerprint
from trainjob.train.data.rows import Position, Row, Rows, Window
from trainjob.train.data.spread import spread
from trainjob.train.data.tensors import batch
from trainjob.train.faults import Code, TrainError

_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class _Planned:
    """The rows of a step, and the position after them."""

    rows: tuple[Row, ...]
    epoch: int
    after: Position


class Loader:
    """Iterates over `Step`s, from where `load_state_dict` put it, or the beginning.

    Row k of the global order belongs to step k // global_batch, on any number of ranks. The last step of the
    last epoch may have fewer rows; steps go over the ends of windows and epochs.

    Every rank tokenises all the data and makes tensors of its own rows alone: no rank waits for another, and the
    order cannot depend on their number. A core does 0.7 million tokens a second (measured: byte-level BPE of
    32,000, prose and code; 95 % of it inside the tokenizer), and a rank uses all cores it may. So this would hold
    up a job that trains more tokens a second, over all ranks, than a rank's share of cores can make.
    Windows are prepared in one thread, steps in another.
    """

    def __init__(
        self,
        settings: config.Data,
        *,
        tokenizer: Any,
        global_batch: int,
        micro_batch: int,
        seed: int,
        rank: int = 0,
        world: int = 1,
        epochs: int = 1,
        prefetch: int = 2,
        log: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`epochs`: 0 for ever; `prefetch`: steps ahead; `log`: what is worth a line, also from a thread.

        Raises TrainError: WORLD_SIZE for more ranks than rows in a step, and those of files and documents.
        """
        if world > global_batch:
            raise TrainError(
                Code.WORLD_SIZE,
                f"{world} ranks share the {global_batch} rows of a step: {world - global_batch} would have none",
                f"set train.global_batch to {world} or more, or use fewer ranks",
            )
        self.files = expand(settings.train)
        self.epoch_rows = 0
        """Rows of an epoch; 0: not counted. Rank 0 may count, and others be told."""
        self._documents = Documents(settings, self.files, tokenizer, log)
        self._rows = Rows(self._documents, seed=seed, log=log)
        self._global_batch, self._micro_batch = global_batch, micro_batch
        self._rank, self._world = rank, world
        self._epochs, self._prefetch = epochs, prefetch
        self._data = fingerprint(self.files)
        form = self._documents.form
        own = (
            {"data.text_field": settings.text_field}
            if form == "text"
            else {"data.chat_field": settings.chat_field, "data.learn": settings.learn}
        )
        self._order: dict[str, Any] = {
            "data.format": form,
            **own,
            "data.seq_length": settings.seq_length,
            "data.packing": settings.packing,
            "data.shuffle": settings.shuffle,
            "data.window": settings.window,
            "train.seed": seed,
            "the chat template": self._documents.template(),
            "the tokenizer": tokens.fingerprint(tokenizer),
        }
        self._position = Position()
        self._windows: Ahead[Window] | None = None
        self._steps: Ahead[tuple[Step, Position]] | None = None

    def start(self) -> None:
        """Begins to prepare the first steps, in threads; else the first step that is asked for does."""
        if self._steps is not None:
            return
        begin = self._position
        windows = Ahead(lambda closed: self._rows.windows(begin, self._epochs, closed), 1, "data windows")
        self._windows = windows
        self._steps = Ahead(lambda _: self._made(windows), self._prefetch, "data steps")

    def __iter__(self) -> Iterator[Step]:
        return self

    def __next__(self) -> Step:
        self.start()
        assert self._steps
        step, self._position = next(self._steps)
        return step

    def _made(self, windows: Iterator[Window]) -> Iterator[tuple[Step, Position]]:
        for planned in self._planned(windows):
            sizes = [row.size for row in planned.rows]
            mine = spread(sizes, self._world, self._micro_batch)[self._rank]
            step = Step(
                batches=tuple(batch([planned.rows[index] for index in some]) for some in mine),
                targets=sum(row.targets for row in planned.rows),
                tokens=sum(sizes),
                epoch=planned.epoch,
            )
            yield step, planned.after

    def _planned(self, windows: Iterator[Window]) -> Iterator[_Planned]:
        rows: list[Row] = []
        epoch = 0
        for window in windows:
            for number, row in enumerate(window.rows, 1):
                epoch = epoch if rows else window.start.epoch
                rows.append(row)
                if len(rows) == self._global_batch:
                    used = window.start.row + number
                    last = number == len(window.rows)
                    after = window.after if last else window.start._replace(row=used)
                    yield _Planned(tuple(rows), epoch, after)
                    rows = []
        if rows:
            yield _Planned(tuple(rows), epoch, Position(self._epochs))

    def count(self) -> int:
        """Steps of all epochs, those done before `load_state_dict` included.

        The first call reads and tokenises all data once (`epoch_rows` then holds the result, and the state
        keeps it). Raises ValueError without `epochs`, TrainError as iterating does.
        """
        if not self._epochs:
            raise ValueError("without epochs the steps do not end")
        if not self.epoch_rows:
            self.close()  # one thread at a time in the tokenizer: its settings change between calls
            self.epoch_rows = self._rows.count()
        return -(-self.epoch_rows * self._epochs // self._global_batch)

    @property
    def identity(self) -> str:
        """A digest of the files' names and sizes and of all that gives rows their order: equal on all ranks."""
        return hashlib.sha256(json.dumps([self._data, self._order]).encode()).hexdigest()[:16]

    def state_dict(self) -> dict[str, Any]:
        """The position after the last step that was handed out, of a few hundred bytes of JSON."""
        epoch, place, row = self._position
        return {
            "version": _VERSION,
            "epoch": epoch,
            "file": place.file,
            "offset": place.offset,
            "line": place.line,
            "row": row,
            "epoch_rows": self.epoch_rows,
            "data": self._data,
            "order": dict(self._order),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from `state`, with any number of ranks, any batch and prefetch.

        A byte of other files, or a row of other settings, is another one: documents would be learnt twice or
        never, unseen. So this raises TrainError: BAD_CHECKPOINT for other data, CONFIG for other settings.
        """
        anew = "or begin anew: checkpoint.resume: never"
        if state.get("version") != _VERSION:
            raise TrainError(
                Code.BAD_CHECKPOINT, "the checkpoint's place in the data is of another version of trainjob", anew
            )
        if state["data"] != self._data:
            raise TrainError(
                Code.BAD_CHECKPOINT,
                "the data are not those of the checkpoint: other file names or sizes",
                f"put the files back, {anew}, with the exported model as model.path",
            )
        for name, was in state["order"].items():
            now = self._order.get(name)
            if now != was:
                values = f": {now} now, {was} in the checkpoint" if "." in name else ""
                raise TrainError(
                    Code.CONFIG,
                    f"{name} has changed{values}; its place in the data is in another order of rows",
                    f"set it back, {anew}",
                )
        self.close()
        self._position = Position(state["epoch"], Place(state["file"], state["offset"], state["line"]), state["row"])
        self.epoch_rows = state["epoch_rows"]

    def close(self) -> None:
        """Ends the threads. Iterating goes on after the last step that was handed out."""
        if self._windows and self._steps:
            self._windows.stop()  # first: the other one may be waiting for it
            self._steps.close()
            self._windows.close()
        self._windows = self._steps = None
