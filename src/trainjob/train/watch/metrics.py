"""One JSON object a step, in a file that plots read: {"step": 3, "loss": 2.31, ..., "time": 1764531000.5}.

The file is a curve, not a history: what a run wrote beyond the step from which it goes on is removed, since
those steps are computed again. It may be on an object store, which cannot append: then it is written to a
local file and copied whole with every checkpoint and at the end.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from trainjob.train.watch.meter import Record

FILE: Final = "metrics.jsonl"
# More than two lines have.
_LINE: Final = 4096


def encode(record: Record) -> str:
    """A line. JSON has no NaN and no infinity: they become null."""
    values: dict[str, Any] = {"step": record.step, **record.metrics, "time": record.time}
    values["epoch"], values["tokens"], values["memory"] = record.epoch, record.tokens, record.memory
    return json.dumps({k: v if math.isfinite(v) else None for k, v in values.items()}) + "\n"


def cut(file: Path, step: int) -> tuple[int, int]:
    """Removes the lines beyond `step`, and a half-written one. How many, and the last step that was there.

    The new file replaces the old one in one move; a file that needs no cut is left alone.
    """
    kept, removed, last = [], 0, 0
    text = file.read_bytes().decode(errors="replace") if file.exists() else ""
    for line in text.splitlines(keepends=True):
        seen = _step(line)
        last = max(last, seen)
        if line.endswith("\n") and 0 < seen <= step:
            kept.append(line)
        else:
            removed += 1
    if removed:
        draft = file.with_name(f".{file.name}.draft")
        with draft.open("w") as out:
            out.writelines(kept)
            out.flush()
            os.fsync(out.fileno())
        draft.replace(file)
    return removed, last


def last_step(url: str) -> int:
    """The last step in a local file, from its end alone; 0 when there is none, or it is elsewhere."""
    try:
        with Path(url).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LINE))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return 0
    return max(map(_step, lines), default=0)


def _step(line: str) -> int:
    """0 for a line that is not whole."""
    try:
        found = json.loads(line)["step"]
    except (ValueError, TypeError, KeyError):
        return 0
    return found if isinstance(found, int) else 0


@dataclass
class Metrics:
    """The sink. `url`: a path, or a URL of fsspec such as s3://bucket/folder/metrics.jsonl.

    `start`: the step from which the run goes on, 0 for a new one; `say` is told what was removed.
    """

    url: str
    start: int
    say: Callable[[str], None]
    name: str = "the metrics file"
    _file: Path = field(init=False)
    _out: IO[str] = field(init=False)
    _folder: Any = field(default=None, init=False)

    def __post_init__(self) -> None:
        if "://" in self.url:
            self._folder = tempfile.TemporaryDirectory(prefix="trainjob-metrics-")
            self._file = Path(self._folder.name) / FILE
            if self.start:
                with contextlib.suppress(FileNotFoundError):
                    self._remote("get")
        else:
            self._file = Path(self.url)
            self._file.parent.mkdir(parents=True, exist_ok=True)
        removed, last = cut(self._file, self.start)
        if removed:
            self.say(f"{self.url}: {removed} lines beyond step {self.start} (up to step {last}) removed")
        self._out = self._file.open("a")

    def write(self, records: Sequence[Record]) -> None:
        self._out.writelines(map(encode, records))
        self._out.flush()

    def saved(self, step: int) -> None:  # noqa: ARG002
        if self._folder:
            self._remote("put")

    def close(self, ok: bool) -> None:  # noqa: ARG002
        self._out.close()
        if self._folder:
            self._remote("put")
            self._folder.cleanup()

    def _remote(self, verb: str) -> None:
        import fsspec

        system, path = fsspec.core.url_to_fs(self.url)
        if verb == "get":
            system.get_file(path, str(self._file))
        else:
            system.makedirs(path.rpartition("/")[0], exist_ok=True)
            system.put_file(str(self._file), path)
