"""What a checkpoint is: a folder `step-00000100` with a `complete.json` that names its files and their sizes.

complete.json is written last, by rank 0, after every rank has written. On a disk all of it happens in a draft
that is renamed when it is whole. A folder without that file, or whose files are not as it says, is none.

Order is that of writing (`serial`), not of steps: who goes back to step 100 and writes 150 has a newer one
than the 200 of before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from trainjob.train.checkpoint.place import Place
from trainjob.train.faults import Code, TrainError

COMPLETE: Final = "complete.json"
FORMAT: Final = 1
_FOLDER: Final = re.compile(r"step-(\d{8,})\Z")
_DRAFT: Final = re.compile(r"\.step-(\d{8,})\.(draft|old)\Z")


def folder(step: int) -> str:
    """The name of a step's folder: names sort as their steps do."""
    return f"step-{step:08d}"


def draft(step: int) -> str:
    """Where a disk's checkpoint is written."""
    return f".{folder(step)}.draft"


def _old(step: int) -> str:
    return f".{folder(step)}.old"


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """A complete checkpoint, as its complete.json says.

    `serial`: 1, 2, ... in the order of writing; `run`: who wrote it; `world_size`: ranks that wrote it;
    `fingerprint`: settings that must be the same to go on; `files`: sizes in bytes; `state`: what is no tensor.
    """

    step: int
    serial: int
    run: str
    world_size: int
    versions: Mapping[str, str]
    fingerprint: Mapping[str, Any]
    files: Mapping[str, int]
    state: Mapping[str, Any] = field(default_factory=dict)
    format: int = FORMAT

    def json(self) -> bytes:
        return json.dumps(asdict(self), indent=1).encode()


def parse(content: bytes) -> Whole:
    """Raises ValueError for what is no complete.json of this format."""
    read = json.loads(content)
    if not isinstance(read, dict) or read.get("format") != FORMAT:
        raise ValueError(f"its format is {read.get('format') if isinstance(read, dict) else 'unknown'}, not {FORMAT}")
    try:
        whole = Whole(**read)
        whole = Whole(**{**read, "files": {str(name): int(size) for name, size in whole.files.items()}})
    except (TypeError, AttributeError) as error:
        raise ValueError(str(error)) from error
    return whole


def damage(place: Place, whole: Whole) -> str:
    """What of a checkpoint is not as its complete.json says, in words; "" if nothing."""
    there = (place / folder(whole.step)).files()
    for name, size in sorted(whole.files.items()):
        if name not in there:
            return f"{name} is missing"
        if there[name] != size:
            return f"{name} has {there[name]} bytes instead of {size}"
    return ""


@dataclass(frozen=True, slots=True)
class Shelf:
    """Checkpoints of a place, newest first; folders that were never completed; and what is wrong with others.

    `damaged`: a folder to what its complete.json cannot be read for.
    """

    wholes: tuple[Whole, ...]
    unfinished: tuple[str, ...] = ()
    damaged: Mapping[str, str] = field(default_factory=dict)

    @property
    def serial(self) -> int:
        return max((whole.serial for whole in self.wholes), default=0)


def look(place: Place) -> Shelf:
    """Reads every complete.json. Sizes of files are looked at by `damage`, when one is to be used."""
    wholes: list[Whole] = []
    unfinished: list[str] = []
    damaged: dict[str, str] = {}
    for name in place.folders():
        if not (match := _FOLDER.match(name)):
            continue
        content = (place / name).read(COMPLETE)
        if content is None:
            unfinished.append(name)
            continue
        try:
            whole = parse(content)
            if whole.step != int(match[1]):
                raise ValueError(f"it is of step {whole.step}")
            wholes.append(whole)
        except ValueError as error:
            damaged[name] = f"{COMPLETE} cannot be read: {error}"
    wholes.sort(key=lambda whole: whole.serial, reverse=True)
    return Shelf(tuple(wholes), tuple(unfinished), damaged)


def choose(place: Place, resume: str, run: str = "") -> Whole | None:
    """The checkpoint to go on from, or None to begin.

    `resume`: `auto`, the newest; `never`; or a step. A job that is restarted goes on from its own newest one also
    with `never` or a step: `run` is what a job and its restarts have in common, or "".
    Raises TrainError: BAD_CHECKPOINT if the one to use is damaged or the step is not there; CONFIG for another word.
    """
    shelf = look(place)
    if resume not in ("auto", "never") and not resume.isdecimal():
        raise TrainError(Code.CONFIG, f'checkpoint.resume: "{resume}"', "write auto, never, or the number of a step")
    ours = [whole for whole in shelf.wholes if resume == "auto" or (run and whole.run == run)]
    if resume == "auto":
        # Which of them is the newest, only complete.json could say.
        for name, wrong in shelf.damaged.items():
            raise _damaged(place, name, wrong, shelf)
    chosen = ours[0] if ours else None
    if chosen is None and resume.isdecimal():
        if wrong := shelf.damaged.get(folder(int(resume)), ""):
            raise _damaged(place, folder(int(resume)), wrong, shelf)
        chosen = next((whole for whole in shelf.wholes if whole.step == int(resume)), None)
        if chosen is None:
            raise TrainError(
                Code.BAD_CHECKPOINT, f"{place.url} has no checkpoint of step {resume}",
                f"it has {_steps(shelf) or 'none'}: name one of them (checkpoint.resume), or auto",
            )  # fmt: skip
    if chosen is not None and (wrong := damage(place, chosen)):
        raise _damaged(place, folder(chosen.step), wrong, shelf)
    return chosen


def _damaged(place: Place, name: str, wrong: str, shelf: Shelf) -> TrainError:
    step = int(name.removeprefix("step-"))
    others = _steps(shelf, but=step)
    fix = f"remove that folder, or name another step (checkpoint.resume): {others}" if others else "remove that folder"
    return TrainError(Code.BAD_CHECKPOINT, f"{place.url}/{name} is damaged: {wrong}", fix)


def _steps(shelf: Shelf, but: int = -1) -> str:
    return ", ".join(str(step) for step in sorted(whole.step for whole in shelf.wholes) if step != but)


def prepare(place: Place, step: int) -> Place:
    """An empty folder to write a step into; removes what is left of an earlier try. Rank 0 only."""
    if not place.local:
        target = place / folder(step)
        target.remove(first=COMPLETE)
        return target
    target = place / draft(step)
    target.remove()
    target.make()
    return target


def publish(place: Place, whole: Whole) -> None:
    """Makes a written step the newest checkpoint: nothing before this call shows, all after it does. Rank 0 only."""
    if not place.local:
        (place / folder(whole.step)).write(COMPLETE, whole.json())
        return
    (place / draft(whole.step)).write(COMPLETE, whole.json())
    if folder(whole.step) in place.folders():
        (place / _old(whole.step)).remove()
        place.move(folder(whole.step), _old(whole.step))
    place.move(draft(whole.step), folder(whole.step))
    (place / _old(whole.step)).remove()


def _leftovers(place: Place) -> Iterator[str]:
    """What a run that was killed leaves: drafts on a disk, folders without complete.json in a store."""
    for name in place.folders():
        if _DRAFT.match(name) or (
            not place.local and _FOLDER.match(name) and COMPLETE not in (place / name).files()
        ):  # fmt: skip
            yield name


def sweep(place: Place) -> list[str]:
    """Removes leftovers; what it removed. Rank 0 only, and only while no save is under way."""
    removed: list[str] = []
    for name in list(_leftovers(place)):
        if (match := _DRAFT.match(name)) and match[2] == "draft" and _finish(place, int(match[1])):
            continue
        (place / name).remove()
        removed.append(name)
    return removed


def _finish(place: Place, step: int) -> bool:
    """Renames a draft that is whole: its run was killed in `publish`. False if it is none, or has been replaced."""
    content = (place / draft(step)).read(COMPLETE)
    if content is None or folder(step) in place.folders():
        return False
    try:
        whole = parse(content)
    except ValueError:
        return False
    there = (place / draft(step)).files()
    if any(there.get(name) != size for name, size in whole.files.items()):
        return False
    place.move(draft(step), folder(step))
    return True


def retain(place: Place, keep: int) -> list[int]:
    """Removes all but the newest `keep` checkpoints; their steps. Rank 0 only."""
    gone = look(place).wholes[keep:]
    for whole in gone:
        if place.local:
            # From here on nobody takes it for a checkpoint, however far the removal comes.
            (place / _old(whole.step)).remove()
            place.move(folder(whole.step), _old(whole.step))
            (place / _old(whole.step)).remove()
        else:
            (place / folder(whole.step)).remove(first=COMPLETE)
    return [whole.step for whole in gone]
