"""What one rank decides and all know; what one rank meets and all raise."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final, TypeVar

from trainjob.train.faults import Code, TrainError

T = TypeVar("T")

# A rank may upload for long while the others wait for it. One that is gone is noticed at once by its closed
# connection, so this limit only meets a storage that hangs.
_PATIENCE: Final = timedelta(hours=2)


class ToldError(Exception):
    """A TrainError on its way to other ranks: pickled by its arguments, the code's name, a reason and a fix."""

    def __init__(self, code: str, reason: str, fix: str) -> None:
        super().__init__(code, reason, fix)

    @classmethod
    def of(cls, error: TrainError) -> ToldError:
        return cls(error.code.name, error.reason, error.fix)

    def error(self, rank: int | None = None) -> TrainError:
        code, reason, fix = self.args
        return TrainError(Code[code], reason if rank in (None, 0) else f"rank {rank}: {reason}", fix)


class Ranks:
    """The processes of a run, connected by gloo: objects of the CPU, apart from the training's own traffic."""

    def __init__(self) -> None:
        """To be called by all ranks at the same place."""
        import torch.distributed as dist

        there = dist.is_available() and dist.is_initialized()
        self.rank: int = dist.get_rank() if there else 0
        self.world: int = dist.get_world_size() if there else 1
        self.group: Any = dist.new_group(backend="gloo", timeout=_PATIENCE) if self.world > 1 else None

    def first(self, decide: Callable[[], T]) -> T:
        """What rank 0 decides. Its TrainError is raised on all ranks."""
        answer: list[Any] = [None]
        if self.rank == 0:
            try:
                answer = [(decide(), None)]
            except TrainError as error:
                answer = [(None, ToldError.of(error))]
        if self.group is not None:
            import torch.distributed as dist

            dist.broadcast_object_list(answer, src=0, group=self.group)
        value, told = answer[0]
        if told is not None:
            raise told.error()
        return value  # type: ignore[no-any-return]

    def agree(self, error: TrainError | None) -> None:
        """Raises on all ranks the error of the lowest rank that has one."""
        mine = ToldError.of(error) if error is not None else None
        met: list[ToldError | None] = [mine]
        if self.group is not None:
            import torch.distributed as dist

            met = [None] * self.world
            dist.all_gather_object(met, mine, group=self.group)
        for rank, told in enumerate(met):
            if told is not None:
                raise told.error(rank)

    def close(self) -> None:
        """Ends the connections; by all ranks at the same place."""
        if self.group is not None:
            import torch.distributed as dist

            dist.destroy_process_group(self.group)
            self.group = None
