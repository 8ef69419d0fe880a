"""Saves while the training goes on.

A save begins between two steps: the training thread notes which tensors there are, and goes on. A thread of
this module agrees with the other ranks who writes what (gloo, apart from the training's traffic), copies it,
and writes the copy. Weights and moments change only in optimizer.step(), so the copy has the time of a forward
and a backward; `before_update` waits for what is left of it. There is one save at a time.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from importlib import metadata as packages
from typing import Any, Final

from trainjob.train.checkpoint import load as loading
from trainjob.train.checkpoint import whole as wholes
from trainjob.train.checkpoint.place import Place
from trainjob.train.checkpoint.ranks import Ranks, ToldError
from trainjob.train.checkpoint.stage import Stage
from trainjob.train.checkpoint.state import Snapshot, State
from trainjob.train.config import Checkpoint
from trainjob.train.faults import Code, TrainError

_PACKAGES: Final = ("torch", "transformers", "peft")
_COUNT: Final = itertools.count()
# A folder on a network disk may show a file of another node a little later.
_APPEARS: Final = 30.0
# Seconds.
_WORTH_SAYING: Final = 0.1


class _Job:
    """A save under way, or done. `error` is read after `done`.

    `mark`: the device's work that the copy must see; None to write the live tensors. `staged`: set when they may
    change, on a GPU after `copied`.
    """

    def __init__(self, step: int, stage: Stage | None) -> None:
        self.step = step
        self.stage = stage
        self.mark = stage.begin() if stage is not None else None
        self.staged = threading.Event()
        self.copied: Any = None
        self.done = threading.Event()
        self.error: BaseException | None = None

    def copy(self, sources: dict[Any, Any]) -> dict[Any, Any]:
        """As `plan.Planner` asks for it."""
        assert self.stage is not None
        copies, self.copied = self.stage.copy(sources, self.mark)
        self.staged.set()
        if self.copied is not None:
            self.copied.synchronize()
        return copies


class Checkpointer:
    """Saves and loads the state of a run; made and called by all ranks alike, always from the training thread.

    `fingerprint`: settings that must be the same to go on from a checkpoint, as JSON. `run`: what this job and
    its restarts have in common (the TrainJob's uid), or "". `saved(step)`: called on every rank when the step
    is whole, by the thread that writes. `say`: for lines to the user, on rank 0.

    `stalled`: seconds so far in which the training waited for saves. `last`: newest step that is whole, or None.
    """

    def __init__(
        self, config: Checkpoint, *, url: str, state: State, fingerprint: Mapping[str, Any] | None = None,
        run: str = "", saved: Callable[[int], None] | None = None, say: Callable[[str], None] = print,
    ) -> None:  # fmt: skip
        self.place = Place(url)
        self.stalled = 0.0
        self.last: int | None = None
        self._config = config
        self._state = state
        # As it will be read: JSON knows no tuples.
        self._fingerprint: dict[str, Any] = json.loads(json.dumps(dict(fingerprint or {})))
        self._run = run
        self._saved = saved
        self._say = say
        self._ranks = Ranks()
        self._stage: Stage | None = None
        self._job: _Job | None = None
        self._serial = 0
        self._name = f"trainjob-{next(_COUNT)}"
        # Of one process; torch asks whether that is meant.
        warnings.filterwarnings("ignore", message="torch.distributed is disabled, unavailable or uninitialized")

    def resume(self) -> loading.Resumed | None:
        """Goes on from what `checkpoint.resume` says, or returns None to begin. Once, before the first step.

        Raises TrainError: BAD_CHECKPOINT, or NO_SPACE, NO_ACCESS, CONFIG, STORAGE if nothing can be written there.
        """
        say = self._say if self._ranks.rank == 0 else _silent
        found = loading.choose(self.place, self._ranks, self._config.resume, self._fingerprint, self._run, say)
        if found is None:
            return None
        resumed = loading.load(self.place, found, self._state, self._ranks)
        self.last = found.step
        for name, version in found.versions.items():
            if version != (now := _versions().get(name, "none")):
                say(f"step {found.step} was saved with {name} {version}; this is {now}")
        return resumed

    def save(self, step: int, *, wait: bool = False) -> None:
        """Saves the state after `step` steps. Returns at once, or with `wait` (at the end, when told to end) or
        without `checkpoint.asynchronous` when it is written.

        Raises TrainError, also that of the save before: NO_SPACE, NO_ACCESS, STORAGE, CONFIG.
        """
        began = time.monotonic()
        late = self._job is not None and not self._job.done.is_set()
        self._settle()
        waited = time.monotonic() - began
        if late and not wait and waited >= _WORTH_SAYING and self._ranks.rank == 0:
            self._say(
                f"step {step}: waited {waited:.1f} s for the save before it: the storage is slower "
                "than checkpoint.every"
            )
        if step != self.last:
            snapshot = self._state.snapshot()
            waits = wait or not self._config.asynchronous
            if not waits and self._stage is None:
                self._stage = Stage(self._state.device)
            job = _Job(step, None if waits else self._stage)
            if waits:
                self._write(job, snapshot)
            else:
                # A daemon: a run that fails must not wait for ranks that are gone.
                threading.Thread(target=self._write, args=(job, snapshot), name=f"save-{step}", daemon=True).start()
            self._job = job
            if waits:
                self._settle()
        self.stalled += time.monotonic() - began

    def before_update(self) -> None:
        """To be called before weights change: waits until a save under way has its copy of them.

        Raises TrainError if that save has failed.
        """
        job = self._job
        if job is None:
            return
        began = time.monotonic()
        job.staged.wait()
        if job.done.is_set():
            self._settle()
        elif job.copied is not None:
            import torch

            # The device waits, not this thread: the update is queued behind the copy.
            torch.cuda.current_stream().wait_event(job.copied)
        self.stalled += time.monotonic() - began

    def finish(self, timeout: float | None = None) -> bool:
        """Waits for a save under way, at most `timeout` seconds; True if there is none left.

        Raises TrainError if it failed. Afterwards nothing more can be saved.
        """
        if self._job is not None and not self._job.done.wait(timeout):
            return False
        try:
            self._settle()
        finally:
            if self._stage is not None:
                self._stage.close()
        return True

    def _settle(self) -> None:
        """Waits for the save under way and raises its error, once."""
        job, self._job = self._job, None
        if job is None:
            return
        job.done.wait()
        if job.error is not None:
            raise job.error

    def _write(self, job: _Job, snapshot: Snapshot) -> None:
        """One save, on the thread of its own or, waiting, on the training's."""
        from torch.distributed import checkpoint as dcp
        from torch.distributed.checkpoint import CheckpointException

        from trainjob.train.checkpoint.files import Writer
        from trainjob.train.checkpoint.plan import Planner

        try:
            if job.stage is not None:
                job.stage.enter()
            # Plans differ only in what they look up; each way keeps its own.
            name = f"{self._name}-{'live' if job.stage is None else 'copy'}"
            planner = Planner(name, None if job.stage is None else job.copy)
            target = self.place / (wholes.draft(job.step) if self.place.local else wholes.folder(job.step))
            writer = Writer(
                target,
                prepare=lambda: wholes.prepare(self.place, job.step),
                publish=lambda sizes: self._publish(job.step, target, sizes, snapshot.values),
            )
            dcp.save(
                snapshot.tensors, storage_writer=writer, planner=planner,
                process_group=self._ranks.group, no_dist=self._ranks.group is None,
            )  # fmt: skip
            self.last = job.step
            if self._saved is not None:
                self._saved(job.step)
            if self._ranks.rank == 0:
                self._retain()
        except CheckpointException as failed:
            job.error = _blamed(failed, job.step)
        except TrainError as error:
            job.error = error
        except Exception as error:
            job.error = RuntimeError(f"the checkpoint of step {job.step} could not be saved: {error}")
            job.error.__cause__ = error
        finally:
            job.staged.set()
            job.done.set()

    def _publish(self, step: int, target: Place, sizes: Mapping[str, int], values: Mapping[str, Any]) -> None:
        """On rank 0, when all ranks have written."""
        _see(target, sizes)
        self._serial = max(self._serial, wholes.look(self.place).serial) + 1
        wholes.publish(
            self.place,
            wholes.Whole(
                step=step, serial=self._serial, run=self._run, world_size=self._ranks.world, versions=_versions(),
                fingerprint=self._fingerprint, files=dict(sizes), state=values,
            ),
        )  # fmt: skip

    def _retain(self) -> None:
        try:
            wholes.retain(self.place, self._config.keep)
        except TrainError as error:
            # The new one is whole: that an old one stays is no reason to end.
            self._say(f"an old checkpoint stays: {error}")


def _silent(line: str) -> None:
    """Where ranks other than 0 say something."""


def _versions() -> dict[str, str]:
    found: dict[str, str] = {}
    for name in _PACKAGES:
        try:
            found[name] = packages.version(name)
        except packages.PackageNotFoundError:
            continue
    return found


def _see(target: Place, sizes: Mapping[str, int]) -> None:
    """Rank 0 sees every rank's files: else each node has written to a disk of its own."""
    end = time.monotonic() + _APPEARS
    while True:
        there = target.files()
        missing = sorted(name for name, size in sizes.items() if there.get(name) != size)
        if not missing:
            return
        if time.monotonic() > end:
            break
        time.sleep(0.5)
    raise TrainError(
        Code.CONFIG, f"{target.url}: {missing[0]} of another rank cannot be seen from rank 0",
        "checkpoints of several nodes need storage that all share: a ReadWriteMany claim or s3://",
    )  # fmt: skip


def _blamed(failed: Any, step: int) -> BaseException:
    """The error of the lowest rank that has one."""
    rank, (error, _) = min(failed.failures.items())
    if isinstance(error, ToldError):
        return error.error(rank)
    wrapped = RuntimeError(f"the checkpoint of step {step} could not be saved: rank {rank}: {error!r}")
    wrapped.__cause__ = error
    return wrapped
