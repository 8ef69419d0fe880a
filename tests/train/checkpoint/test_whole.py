import uuid
from pathlib import Path
from typing import Any

import pytest

from trainjob.train.checkpoint import whole as wholes
from trainjob.train.checkpoint.place import Place
from trainjob.train.checkpoint.whole import Whole
from trainjob.train.faults import Code, TrainError


@pytest.fixture(params=["disk", "store"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(str(tmp_path / "run") if request.param == "disk" else f"memory://{uuid.uuid4()}/run")


def save(place: Place, step: int, serial: int, **more: Any) -> Whole:
    target = wholes.prepare(place, step)
    target.write("data", b"x" * step)
    made = Whole(
        step=step, serial=serial, world_size=2, versions={}, fingerprint={}, files={"data": step},
        **{"run": "", "state": {"optim": [1.5]}, **more},
    )  # fmt: skip
    wholes.publish(place, made)
    return made


def test_the_newest_is_chosen(place: Place) -> None:
    assert wholes.choose(place, "auto") is None
    save(place, 100, 1)
    newest = save(place, 200, 2)
    assert wholes.choose(place, "auto") == newest
    assert wholes.choose(place, "never") is None


def test_one_without_complete_json_is_none(place: Place) -> None:
    first = save(place, 100, 1)
    save(place, 200, 2)
    (place / "step-00000200").discard("complete.json")
    assert wholes.choose(place, "auto") == first
    assert wholes.look(place).unfinished == ("step-00000200",)


def test_order_is_that_of_writing(place: Place) -> None:
    """Back to 100, and on from there: 150 is newer than the 200 of before."""
    for step, serial in ((100, 1), (200, 2), (150, 3)):
        save(place, step, serial)
    chosen = wholes.choose(place, "auto")
    assert chosen is not None
    assert chosen.step == 150
    assert wholes.retain(place, 2) == [100]
    assert place.folders() == ["step-00000150", "step-00000200"]


def test_a_step_is_written_again(place: Place) -> None:
    save(place, 100, 1)
    again = save(place, 100, 2, state={"optim": [2.5]})
    assert wholes.choose(place, "auto") == again
    assert place.folders() == ["step-00000100"]


def test_a_named_step(place: Place) -> None:
    first = save(place, 100, 1)
    save(place, 200, 2)
    assert wholes.choose(place, "100") == first
    with pytest.raises(TrainError) as caught:
        wholes.choose(place, "150")
    assert caught.value.code is Code.BAD_CHECKPOINT
    assert "100, 200" in caught.value.fix
    with pytest.raises(TrainError) as caught:
        wholes.choose(place, "newest")
    assert caught.value.code is Code.CONFIG


@pytest.mark.parametrize("resume", ["never", "100"])
def test_a_restarted_job_goes_on_from_its_own(place: Place, resume: str) -> None:
    save(place, 100, 1, run="before")
    save(place, 200, 2, run="before")
    begun = wholes.choose(place, resume, run="now")
    assert (begun.step if begun else None) == (None if resume == "never" else 100)
    save(place, 150, 3, run="now")
    chosen = wholes.choose(place, resume, run="now")
    assert chosen is not None
    assert chosen.step == 150


@pytest.mark.parametrize("resume", ["auto", "200"])
@pytest.mark.parametrize("harm", ["shorter", "gone", "complete.json"])
def test_a_damaged_one_is_not_passed_over(place: Place, resume: str, harm: str) -> None:
    save(place, 100, 1)
    save(place, 200, 2)
    folder = place / "step-00000200"
    if harm == "shorter":
        folder.write("data", b"x" * 199)
    elif harm == "gone":
        folder.discard("data")
    else:
        folder.write("complete.json", b'{"step": 200')
    with pytest.raises(TrainError) as caught:
        wholes.choose(place, resume)
    assert caught.value.code is Code.BAD_CHECKPOINT
    assert "step-00000200 is damaged: " in caught.value.reason
    assert {"shorter": "199 bytes instead of 200", "gone": "data is missing", "complete.json": "cannot be read"}[
        harm
    ] in caught.value.reason
    assert "100" in caught.value.fix
    older = wholes.choose(place, "100")
    assert older is not None
    assert older.step == 100


def test_leftovers_are_swept_and_only_they(place: Place) -> None:
    save(place, 100, 1)
    wholes.prepare(place, 200).write("data", b"half")
    (place / "export").make()
    (place / "export").write("config.json", b"{}")
    (place / ".other.draft").make()
    (place / ".other.draft").write("x", b"not ours")
    swept = wholes.sweep(place)
    assert swept == [".step-00000200.draft" if place.local else "step-00000200"]
    assert place.folders() == [".other.draft", "export", "step-00000100"]
    assert wholes.sweep(place) == []


def test_killed_between_the_last_write_and_the_rename(tmp_path: Path) -> None:
    """Also when an older one of the same step had just been put aside."""
    place = Place(str(tmp_path))
    save(place, 100, 1)
    again = save(place, 100, 2)
    place.move("step-00000100", ".step-00000100.draft")
    (place / ".step-00000100.old").make()
    assert wholes.choose(place, "auto") is None
    assert wholes.sweep(place) == [".step-00000100.old"]
    assert wholes.choose(place, "auto") == again
    place.move("step-00000100", ".step-00000100.draft")
    (place / ".step-00000100.draft").write("data", b"short")
    assert wholes.sweep(place) == [".step-00000100.draft"]
    assert place.folders() == []


def test_on_a_disk_nothing_shows_before_it_is_whole(tmp_path: Path) -> None:
    place = Place(str(tmp_path))
    wholes.prepare(place, 100).write("data", b"x")
    assert wholes.look(place) == wholes.Shelf(())
    assert place.folders() == [".step-00000100.draft"]


def test_another_format_is_refused(place: Place) -> None:
    save(place, 100, 1)
    folder = place / "step-00000100"
    content = folder.read("complete.json")
    assert content is not None
    folder.write("complete.json", content.replace(b'"format": 1', b'"format": 2'))
    with pytest.raises(TrainError, match="its format is 2, not 1"):
        wholes.choose(place, "auto")
