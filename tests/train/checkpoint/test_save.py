import errno
import subprocess
import sys
import threading
import uuid
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.train.checkpoint.small import Run, equal, whole
from trainjob.train.checkpoint import whole as wholes
from trainjob.train.checkpoint.place import Place
from trainjob.train.checkpoint.stage import Stage
from trainjob.train.faults import Code, TrainError


@pytest.fixture(params=["disk", "store"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "run") if request.param == "disk" else f"memory://{uuid.uuid4()}/run"


@pytest.mark.parametrize("asynchronous", [True, False])
def test_a_resumed_run_is_equal_to_the_last_bit(url: str, asynchronous: bool) -> None:
    run = Run()
    saver = run.saver(url, asynchronous=asynchronous)
    assert saver.resume() is None
    for _ in range(3):
        run.step(saver)
    saver.save(3)
    expected = [run.step(saver) for _ in range(3)]
    assert saver.finish()

    again = Run(seed=9)
    resumed = again.saver(url).resume()
    assert resumed is not None
    assert (resumed.step, resumed.world_size, dict(resumed.extra)) == (3, 1, {"row": 21})
    again.done = 3
    assert [again.step() for _ in range(3)] == expected
    assert equal(whole(again), whole(run))
    assert again.schedule.get_last_lr() == run.schedule.get_last_lr()


def test_saves_one_after_the_other_and_retention(url: str) -> None:
    done: list[int] = []
    run = Run()
    saver = run.saver(url, keep=2, saved=done.append)
    for step in range(1, 6):
        run.step(saver)
        saver.save(step)
    saver.finish()
    assert done == [1, 2, 3, 4, 5]
    assert saver.last == 5
    assert Place(url).folders() == ["step-00000004", "step-00000005"]
    serials = [each.serial for each in wholes.look(Place(url)).wholes]
    assert serials == [5, 4]


def test_complete_json_names_all_files_and_who_wrote_them(url: str) -> None:
    run = Run()
    run.step()
    saver = run.saver(url, fingerprint={"lora.rank": 4}, run="uid-1")
    saver.save(1, wait=True)
    (found,) = wholes.look(Place(url)).wholes
    assert (found.step, found.world_size, found.run, found.fingerprint) == (1, 1, "uid-1", {"lora.rank": 4})
    assert found.versions["torch"] == torch.__version__.partition("+")[0]
    there = (Place(url) / "step-00000001").files()
    del there["complete.json"]
    assert there == dict(found.files)


def test_torch_reads_it_too(tmp_path: Path) -> None:
    """The files are DCP's own format."""
    from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

    run = Run()
    run.step()
    run.saver(tmp_path / "run").save(1, wait=True)
    dcp_to_torch_save(tmp_path / "run/step-00000001", tmp_path / "one.pt")
    read = torch.load(tmp_path / "one.pt", weights_only=True)
    assert torch.equal(read["model.first.weight"], run.model.first.weight)


def test_weights_wait_for_their_copy_and_not_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """before_update waits until the copy is made; the writing goes on after it."""
    copying, disk = threading.Event(), threading.Event()
    copy, opened = Stage.copy, Place.open

    def slow_copy(stage: Stage, *args: Any) -> Any:
        assert copying.wait(20)
        return copy(stage, *args)

    def slow_disk(place: Place, *args: Any) -> Any:
        assert disk.wait(20)
        return opened(place, *args)

    monkeypatch.setattr(Stage, "copy", slow_copy)
    monkeypatch.setattr(Place, "open", slow_disk)
    run = Run()
    run.step()
    saved = whole(run)
    saver = run.saver(tmp_path / "run")
    saver.save(1)
    timer = threading.Timer(0.3, copying.set)
    timer.start()
    before = saver.stalled
    run.step(saver)
    assert saver.stalled - before > 0.2
    assert not equal(whole(run), saved)
    assert wholes.choose(saver.place, "auto") is None
    disk.set()
    saver.finish()
    again = Run(seed=9)
    again.saver(tmp_path / "run").resume()
    assert equal(whole(again), saved)


def test_a_slow_storage_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = threading.Event()
    opened = Place.open
    monkeypatch.setattr(Place, "open", lambda place, *args: disk.wait(20) and opened(place, *args))
    run = Run()
    said: list[str] = []
    saver = run.saver(tmp_path / "run", said=said)
    run.step(saver)
    saver.save(1)
    assert not saver.finish(timeout=0.01)
    run.step(saver)
    threading.Timer(0.3, disk.set).start()
    saver.save(2)
    saver.finish()
    (line,) = said
    assert line.startswith("step 2: waited 0.")
    assert "slower than checkpoint.every" in line


def test_the_same_step_is_not_written_twice(tmp_path: Path) -> None:
    run = Run()
    run.step()
    done: list[int] = []
    saver = run.saver(tmp_path / "run", saved=done.append)
    saver.save(1)
    saver.save(1, wait=True)
    assert done == [1]
    again = Run()
    second = again.saver(tmp_path / "run", saved=done.append)
    second.resume()
    second.save(1, wait=True)
    assert done == [1]


class _Full:
    """A stream of a disk that takes `room` bytes more."""

    def __init__(self, stream: Any, room: int) -> None:
        self._stream = stream
        self._room = room

    def write(self, data: Any) -> int:
        self._room -= memoryview(data).nbytes
        if self._room < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return int(self._stream.write(data))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@pytest.mark.parametrize("how", ["asynchronous", "waiting"])
def test_a_full_disk_ends_the_run_and_leaves_the_older_one(url: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run()
    saver = run.saver(url)
    run.step(saver)
    saver.save(1, wait=True)
    older = whole(run)
    opened = Place.open
    monkeypatch.setattr(Place, "open", lambda place, name, mode: _Full(opened(place, name, mode), 2000))
    run.step(saver)
    if how == "asynchronous":
        saver.save(2)
    with pytest.raises(TrainError) as caught:
        saver.finish() if how == "asynchronous" else saver.save(2, wait=True)
    assert caught.value.code is Code.NO_SPACE
    assert "checkpoint.keep" in caught.value.fix
    monkeypatch.undo()
    again = Run(seed=9)
    resumed = again.saver(url).resume()
    assert resumed is not None
    assert resumed.step == 1
    assert equal(whole(again), older)
    assert Place(url).folders() == ["step-00000001"]


def test_the_error_of_a_save_is_raised_before_the_next_update(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file, not a folder")
    run = Run()
    run.step()
    saver = run.saver(tmp_path / "run")
    saver.save(1)
    raised: list[TrainError] = []
    while not raised:
        try:
            run.step(saver)
        except TrainError as error:
            raised.append(error)
        threading.Event().wait(0.01)
    assert raised[0].code is Code.CONFIG
    saver.finish()  # The error is raised once.


def test_where_nothing_can_be_written_nothing_begins(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file, not a folder")
    with pytest.raises(TrainError) as caught:
        Run().saver(tmp_path / "run").resume()
    assert caught.value.code is Code.CONFIG
    with pytest.raises(TrainError) as caught:
        Run().saver("/proc/none").resume()
    assert caught.value.code is Code.NO_SPACE
    assert Run().saver(tmp_path / "new").resume() is None
    assert list((tmp_path / "new").iterdir()) == []


def test_killed_in_the_middle_of_a_save(tmp_path: Path) -> None:
    """kill -9 while the second one is written: the first is chosen, and the rest of the second removed."""
    url = tmp_path / "run"
    program = [sys.executable, "-m", "tests.train.checkpoint.killed", str(url)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]) as process:
        assert process.stdout is not None
        said = [process.stdout.readline().strip() for _ in range(2)]
        process.kill()
    assert said == ["saved", "writing"]
    assert Place(str(url)).folders() == [".step-00000002.draft", "step-00000001"]
    run = Run(seed=9)
    lines: list[str] = []
    resumed = run.saver(url, said=lines).resume()
    assert resumed is not None
    assert resumed.step == 1
    assert Place(str(url)).folders() == ["step-00000001"]
    assert lines == [f"removed {url}/.step-00000002.draft: it was never finished"]


def test_nothing_is_whole_until_all_is_written(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends at the last moment, when only complete.json is missing."""
    run = Run()
    run.step()
    run.saver(url).save(1, wait=True)
    monkeypatch.setattr(wholes, "publish", lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "gone")))
    run.step()
    with pytest.raises(TrainError) as caught:
        run.saver(url).save(2, wait=True)
    assert caught.value.code is Code.STORAGE
    monkeypatch.undo()
    found = wholes.choose(Place(url), "auto")
    assert found is not None
    assert found.step == 1


def test_an_old_one_that_stays_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> None:
        raise TrainError(Code.NO_ACCESS, "cannot remove x")

    run = Run()
    said: list[str] = []
    saver = run.saver(tmp_path / "run", said=said)
    run.step()
    monkeypatch.setattr(wholes, "retain", refused)
    saver.save(1, wait=True)
    assert said == ["an old checkpoint stays: cannot remove x"]
    assert saver.last == 1
