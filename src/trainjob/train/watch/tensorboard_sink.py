"""Curves for TensorBoard, through its own library (extra `tensorboard`)."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from trainjob.train.faults import Code, TrainError
from trainjob.train.watch.meter import Record


def check() -> None:
    """Raises TrainError(CONFIG) when the library is missing. Imports nothing."""
    if importlib.util.find_spec("tensorboard") is None:
        raise TrainError(
            Code.CONFIG,
            "report.tensorboard is set, but the package tensorboard is not installed",
            "pip install 'trainjob[tensorboard]', or unset report.tensorboard",
        )


@dataclass
class TensorBoard:
    """The sink. `folder`: a path or a URL; `start`: the step from which the run goes on.

    Points beyond `start` that an earlier attempt wrote are hidden by TensorBoard itself (purge_step).
    """

    folder: str
    start: int
    name: str = "TensorBoard"
    _writer: Any = field(init=False)

    def __post_init__(self) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(self.folder, purge_step=self.start + 1)

    def write(self, records: Sequence[Record]) -> None:
        for record in records:
            for name, value in record.metrics.items():
                self._writer.add_scalar(name, value, record.step, walltime=record.time)
        self._writer.flush()

    def saved(self, step: int) -> None:
        """Nothing: it is flushed with every write."""

    def close(self, ok: bool) -> None:  # noqa: ARG002
        self._writer.close()
