"""Which files, and their lines."""

from __future__ import annotations

import errno
import gzip
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.train.data.material import write, write_texts
from trainjob.train.data import files
from trainjob.train.data.files import DataFile, Place, expand, fingerprint, lines
from trainjob.train.faults import Code, TrainError


def refused(path: Path, content: bytes) -> TrainError:
    path.write_bytes(content)
    with pytest.raises(TrainError) as caught:
        list(lines(expand([str(path)]), Place()))
    return caught.value


def test_patterns_in_their_order_and_names_in_theirs(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.jsonl", "c/d.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write_texts(tmp_path / name, ["x"])
    found = expand([str(tmp_path / "c/*.jsonl"), str(tmp_path / "*.jsonl")])
    assert [Path(file.path).name for file in found] == ["d.jsonl", "a.jsonl", "b.jsonl"]
    assert [file.size for file in found] == [14, 14, 14]
    deep = expand([str(tmp_path / "**/*.jsonl")])
    assert [Path(file.path).name for file in deep] == ["a.jsonl", "b.jsonl", "d.jsonl"]


def test_a_name_with_brackets_is_a_name(tmp_path: Path) -> None:
    path = write_texts(tmp_path / "part[1].jsonl", ["x"])
    assert [file.path for file in expand([str(path)])] == [str(path)]


def test_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    path = write_texts(tmp_path / "a.jsonl", ["x"])
    assert [file.path for file in expand(["~/a.jsonl"])] == [str(path)]


@pytest.mark.parametrize(
    ("pattern", "code", "says"),
    [
        ("none.jsonl", Code.NOT_FOUND, "none.jsonl does not exist"),
        ("*.json", Code.NOT_FOUND, "*.json matches no file"),
        ("folder", Code.NOT_FOUND, "folder is a folder"),
        ("s3://bucket/a.jsonl", Code.NOT_FOUND, "s3://bucket/a.jsonl: data are read from files"),
        ("a.jsonl", Code.CONFIG, "a.jsonl twice"),
    ],
)
def test_what_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str, code: Code, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    write_texts(tmp_path / "a.jsonl", ["x"])
    with pytest.raises(TrainError) as caught:
        expand(["a.jsonl", pattern])
    assert caught.value.code is code
    assert says in caught.value.reason
    assert caught.value.fix


def test_nothing_named() -> None:
    with pytest.raises(TrainError, match="names no files") as caught:
        expand([])
    assert caught.value.code is Code.CONFIG


@pytest.mark.parametrize(
    ("content", "says", "fix"),
    [
        (gzip.compress(b'{"text": "x"}\n'), "compressed with gzip", "gzip -dk"),
        (b"\x28\xb5\x2f\xfd\x04\x00", "compressed with zstd", "zstd -dk"),
        (b"PAR1\x15\x04", "a Parquet file", "from_parquet"),
        (b'\n [\n {"text": "x"}]', "one JSON array", "jq -c '.[]'"),
    ],
)
def test_files_of_other_kinds(tmp_path: Path, content: bytes, says: str, fix: str) -> None:
    error = refused(tmp_path / "a.jsonl", content)
    assert error.code is Code.BAD_DATA
    assert says in error.reason
    assert fix in error.fix


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b'{"text": }', "is not JSON: Expecting value, column 10"),
        (b'{"text": "x"', "was it cut off?"),
        (b'["x"]', "is a JSON array, not an object"),
        (b"12", "is a JSON number, not an object"),
        (b"null", "is a JSON null, not an object"),
        (b'{"text": "\xff"}', "byte 11 is not UTF-8"),
        (b'{"a":' * 200_000, "is not JSON that can be read"),
        (b'{"a": ' + b"1" * 5000 + b"}", "is not JSON that can be read"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: bytes, says: str) -> None:
    path = tmp_path / "a.jsonl"
    error = refused(path, b'{"text": "x"}\n\n' + line)
    assert error.code is Code.BAD_DATA
    assert error.reason.startswith(f"{path}:3: ")
    assert says in error.reason
    assert error.fix


def test_a_line_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LONGEST_LINE", 2**20)
    error = refused(tmp_path / "a.jsonl", b'{"text": "' + b"x" * 2**20 + b'"}')
    assert "a.jsonl:1: is longer than 1 MiB" in error.reason


def test_a_file_that_goes_away(tmp_path: Path) -> None:
    found = expand([str(write_texts(tmp_path / "a.jsonl", ["x"]))])
    (tmp_path / "a.jsonl").unlink()
    with pytest.raises(TrainError) as caught:
        list(lines(found, Place()))
    assert caught.value.code is Code.NOT_FOUND


@pytest.mark.parametrize(
    ("number", "code"), [(errno.EACCES, Code.NO_ACCESS), (errno.EIO, Code.STORAGE), (errno.ESTALE, Code.STORAGE)]
)
def test_a_volume_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, code: Code) -> None:
    found = expand([str(write_texts(tmp_path / "a.jsonl", ["x"]))])

    def fails(*_: Any, **__: Any) -> Any:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "open", fails)
    with pytest.raises(TrainError) as caught:
        list(lines(found, Place()))
    assert caught.value.code is code
    assert os.strerror(number) in caught.value.reason


LINES = [b"", b"  ", b'{"n": 1}', b'{"text": "\xc3\xa4\xe2\x80\xa8"}', b'{"n": 2}\r']


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.lists(st.sampled_from(LINES), max_size=6),
        min_size=1, max_size=4,
    ),
    st.booleans(),
)  # fmt: skip
def test_from_any_place_on(tmp_path_factory: pytest.TempPathFactory, contents: list[list[bytes]], last: bool) -> None:
    folder = tmp_path_factory.mktemp("files")
    for number, some in enumerate(contents):
        bom = b"\xef\xbb\xbf" if number == 0 else b""
        (folder / f"{number}.jsonl").write_bytes(bom + b"\n".join(some) + (b"\n" if last else b""))
    found = expand([str(folder / "*.jsonl")])
    whole = list(lines(found, Place()))
    assert [line.start.line for line in whole] == [n for some in contents for n, raw in enumerate(some) if raw.strip()]
    for number, line in enumerate(whole):
        assert list(lines(found, line.start)) == whole[number:]
        assert list(lines(found, line.end)) == whole[number + 1 :]


def test_fingerprint(tmp_path: Path) -> None:
    def of(*some: tuple[str, int]) -> str:
        return fingerprint([DataFile(path, size) for path, size in some])

    here = of(("/data/a.jsonl", 1), ("/data/b.jsonl", 2))
    assert here == of(("/mnt/a.jsonl", 1), ("/mnt/b.jsonl", 2))
    others = [
        of(("/data/a.jsonl", 1), ("/data/b.jsonl", 3)),
        of(("/data/b.jsonl", 2), ("/data/a.jsonl", 1)),
        of(("/data/a.jsonl", 1), ("/data/c.jsonl", 2)),
        of(("/data/a.jsonl", 1)),
    ]
    assert here not in others
    path = write(tmp_path / "\udcff.jsonl", [])
    assert fingerprint([DataFile(str(path), 0)])
