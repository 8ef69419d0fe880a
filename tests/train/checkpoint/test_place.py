import errno
import uuid
from pathlib import Path

import pytest

from trainjob.train.checkpoint.place import Place, fault
from trainjob.train.faults import Code, TrainError


@pytest.fixture(params=["disk", "store"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(str(tmp_path / "run") if request.param == "disk" else f"memory://{uuid.uuid4()}/run")


def test_files_come_back(place: Place) -> None:
    place.make()
    (place / "step").make()
    (place / "step").write("a.json", b"12345")
    (place / "step").write("a.json", b"123456")
    assert (place / "step").read("a.json") == b"123456"
    assert (place / "step").read("a.json", 2, 3) == b"345"
    assert (place / "step").read("a.json", 4, 99) == b"56"
    assert place.files() == {"step/a.json": 6}
    assert place.folders() == ["step"]


def test_long_files_are_read_in_pieces(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    from trainjob.train.checkpoint import place as module

    monkeypatch.setattr(module, "_REQUEST", 10)
    content = bytes(range(100))
    place.make()
    place.write("long", content)
    assert place.read("long", 3, 95) == content[3:98]
    assert place.read("long", 5, 20) == content[5:25]
    assert place.read("long", 5, 10) == content[5:15]


def test_what_is_not_there(place: Place) -> None:
    assert place.folders() == []
    assert place.files() == {}
    assert place.read("none") is None
    place.remove()
    place.discard("none")


def test_remove_takes_the_folder_and_nothing_else(place: Place) -> None:
    for name in ("one", "two"):
        (place / name).make()
        (place / name).write("complete.json", b"1")
        (place / name).write("x", b"2")
    (place / "one").remove(first="complete.json")
    assert place.files() == {"two/complete.json": 1, "two/x": 1}


def test_put_and_discard(place: Place, tmp_path: Path) -> None:
    (tmp_path / "here").write_bytes(b"abc")
    place.make()
    place.put(str(tmp_path / "here"), "sub/there")
    assert place.files() == {"sub/there": 3}
    place.discard("sub/there")
    assert place.files() == {}


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOSPC, Code.NO_SPACE), (errno.EDQUOT, Code.NO_SPACE), (errno.EROFS, Code.NO_SPACE),
        (errno.EFBIG, Code.NO_SPACE), (errno.EACCES, Code.NO_ACCESS), (errno.EPERM, Code.NO_ACCESS),
        (errno.ENOTDIR, Code.CONFIG), (errno.EIO, Code.STORAGE), (errno.ESTALE, Code.STORAGE),
    ],
)  # fmt: skip
def test_system_errors_have_a_code_and_a_fix(number: int, code: Code) -> None:
    error = fault(OSError(number, "words"), "cannot write", "/checkpoints")
    assert error.code is code
    assert error.reason.startswith("cannot write /checkpoints: ")
    assert error.fix


def test_errors_of_a_store() -> None:
    full = OSError(errno.EIO, "An error occurred (QuotaExceeded) when calling the PutObject operation")
    assert fault(full, "cannot write", "s3://b/x").code is Code.NO_SPACE
    assert fault(PermissionError("Access Denied"), "cannot list", "s3://b/x").code is Code.NO_ACCESS
    assert "AWS_ACCESS_KEY_ID" in fault(PermissionError("Access Denied"), "cannot list", "s3://b/x").fix
    assert fault(FileNotFoundError("NoSuchBucket"), "cannot write", "s3://b/x").code is Code.CONFIG
    assert fault(TimeoutError(), "cannot read", "s3://b/x").code is Code.STORAGE


def test_the_first_cause_counts() -> None:
    # A native writer hides the system's error behind its own.
    hidden = RuntimeError("file write failed")
    hidden.__context__ = OSError(errno.ENOSPC, "No space left on device")
    assert fault(hidden, "cannot write", "/x").code is Code.NO_SPACE
    text = RuntimeError("I/O error: No space left on device (os error 28)")
    assert fault(text, "cannot write", "/x").code is Code.NO_SPACE


def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file")
    with pytest.raises(TrainError) as caught:
        Place(str(tmp_path / "run" / "deep")).make()
    assert caught.value.code is Code.CONFIG
    assert str(tmp_path / "run" / "deep") in caught.value.reason


def test_an_unknown_scheme() -> None:
    with pytest.raises(TrainError) as caught:
        Place("nosuchscheme://bucket/run")
    assert caught.value.code is Code.CONFIG
