"""From a checkpoint to a running state, on any number of ranks. Nothing is repaired or skipped in silence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from trainjob.train.checkpoint import whole as wholes
from trainjob.train.checkpoint.place import Place, fault
from trainjob.train.checkpoint.ranks import Ranks
from trainjob.train.checkpoint.state import State
from trainjob.train.checkpoint.whole import Whole
from trainjob.train.faults import Code, TrainError

_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Resumed:
    """What a run goes on from. `step`: steps that are done; `extra`: what the saved run's `State.extra` gave."""

    step: int
    world_size: int
    extra: Mapping[str, Any]


def choose(
    place: Place, ranks: Ranks, resume: str, fingerprint: Mapping[str, Any], run: str, say: Callable[[str], None]
) -> Whole | None:
    """The checkpoint to go on from, the same for all ranks. Removes what killed runs left.

    Raises TrainError on all ranks: BAD_CHECKPOINT for one of other settings, what `whole.choose` raises, and
    NO_SPACE, NO_ACCESS, CONFIG or STORAGE for a place where nothing can be written.
    """

    def decide() -> Whole | None:
        place.try_out()
        for name in wholes.sweep(place):
            say(f"removed {place.url}/{name}: it was never finished")
        found = wholes.choose(place, resume, run)
        if found is not None:
            _compare(place, found, fingerprint)
        return found

    return ranks.first(decide)


def _compare(place: Place, found: Whole, fingerprint: Mapping[str, Any]) -> None:
    keys = sorted({*found.fingerprint, *fingerprint})
    unlike = [
        f"{key} was {found.fingerprint.get(key, 'not set')} and is {fingerprint.get(key, 'not set')}"
        for key in keys
        if found.fingerprint.get(key) != fingerprint.get(key)
    ]
    if unlike:
        raise TrainError(
            Code.BAD_CHECKPOINT, f"{_url(place, found)} is of other settings: {_some(unlike)}",
            "set them back, or write to another folder (checkpoint.url)",
        )  # fmt: skip


def load(place: Place, found: Whole, state: State, ranks: Ranks) -> Resumed:
    """Loads a checkpoint into the live objects. Raises on all ranks TrainError: BAD_CHECKPOINT or STORAGE."""
    error: TrainError | None = None
    extra: Mapping[str, Any] = {}
    try:
        extra = _load(place / wholes.folder(found.step), found, state)
    except TrainError as caught:
        error = caught
    ranks.agree(error)
    return Resumed(found.step, found.world_size, extra)


def _load(folder: Place, found: Whole, state: State) -> Mapping[str, Any]:
    from torch.distributed import checkpoint as dcp
    from torch.distributed.checkpoint import CheckpointException

    from trainjob.train.checkpoint import files

    try:
        read = files.metadata(folder)
        shapes = {name: (tuple(entry.size), entry.properties.dtype) for name, entry in read.state_dict_metadata.items()}
        targets = state.targets(shapes)
        if state.optimizer is None:
            shapes = {name: each for name, each in shapes.items() if not name.startswith("optim.")}
        _same(folder, shapes, targets)
        dcp.load(
            targets, storage_reader=files.Reader(folder, read), no_dist=True,
            planner=dcp.DefaultLoadPlanner(flatten_state_dict=False, flatten_sharded_tensors=False),
        )  # fmt: skip
    except CheckpointException as failed:
        error = next(exception for exception, _ in failed.failures.values())
        if isinstance(error, files.UnreadableError):
            raise _unreadable(folder, error) from error
        raise fault(error, "cannot read the checkpoint", folder.url) from error
    except files.UnreadableError as error:
        raise _unreadable(folder, error) from error
    try:
        return state.apply(found.step, targets, found.state)
    except (KeyError, TypeError, ValueError) as error:
        raise TrainError(
            Code.BAD_CHECKPOINT, f"{folder.url}/{wholes.COMPLETE} is not of this optimizer and schedule: {error!r}",
            "go on with the settings of the run that wrote it, or name another folder (checkpoint.url)",
        ) from error  # fmt: skip


def _same(folder: Place, shapes: Mapping[str, tuple[tuple[int, ...], Any]], targets: Mapping[str, Any]) -> None:
    """Raises BAD_CHECKPOINT unless the checkpoint is of this model, and its optimizer of these parameters."""
    unlike: list[str] = []
    for name in sorted({*targets, *(name for name in shapes if not name.startswith("rng."))}):
        kind, _, rest = name.partition(".")
        if kind == "rng":
            continue
        if name not in targets:
            unlike.append(f"{rest if kind == 'model' else name} is in the checkpoint alone")
        elif name not in shapes:
            unlike.append(f"{rest} is in the model alone")
        else:
            shape, dtype = tuple(targets[name].shape), targets[name].dtype
            if (shape, dtype) != shapes[name]:
                unlike.append(f"{rest} is {_form(*shapes[name])} in the checkpoint and {_form(shape, dtype)} here")
    if unlike:
        raise TrainError(
            Code.BAD_CHECKPOINT, f"{folder.url} is of another model: {_some(unlike)}",
            "set the model and lora back, or write to another folder (checkpoint.url)",
        )  # fmt: skip


def _form(shape: tuple[int, ...], dtype: Any) -> str:
    return f"{str(dtype).removeprefix('torch.')} {'x'.join(map(str, shape)) or 'scalar'}"


def _some(lines: list[str]) -> str:
    more = f"; and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    return "; ".join(lines[:_SHOWN]) + more


def _unreadable(folder: Place, error: Any) -> TrainError:
    return TrainError(
        Code.BAD_CHECKPOINT, f"{folder.url}/{error.file}: {error.why}",
        f"remove {folder.url} to go on from the one before, or name another step (checkpoint.resume)",
    )  # fmt: skip


def _url(place: Place, found: Whole) -> str:
    return f"{place.url}/{wholes.folder(found.step)}"
