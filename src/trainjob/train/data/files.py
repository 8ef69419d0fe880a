"""JSONL files: which they are, and their lines one by one, from any place in them."""

from __future__ import annotations

import errno
import glob
import hashlib
import json
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from trainjob.train.faults import Code, TrainError

# A line is held in memory whole. One that is longer than this is a file that is not JSONL.
LONGEST_LINE: Final = 256 * 2**20

_BOM: Final = b"\xef\xbb\xbf"
# What files of other kinds begin with, and how to get lines of JSON out of them.
_OTHERS: Final = (
    (b"\x1f\x8b", "is compressed with gzip", "unpack it: gzip -dk {}"),
    (b"\x28\xb5\x2f\xfd", "is compressed with zstd", "unpack it: zstd -dk {}"),
    (b"PK\x03\x04", "is a zip archive", "unpack it"),
    (b"BZh", "is compressed with bzip2", "unpack it: bzip2 -dk {}"),
    (b"\xfd7zXZ\x00", "is compressed with xz", "unpack it: xz -dk {}"),
    (b"PAR1", "is a Parquet file", "write it as JSONL: datasets.Dataset.from_parquet(...).to_json(...)"),
    (b"ARROW1", "is an Arrow file", "write it as JSONL: datasets.Dataset.from_file(...).to_json(...)"),
)


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of documents. `size` in bytes."""

    path: str
    size: int


class Place(NamedTuple):
    """Where a line begins: the file's index, the byte in it, and the lines of that file before it."""

    file: int = 0
    offset: int = 0
    line: int = 0


class Line(NamedTuple):
    """A JSON object, the place where its line begins, and the place after it."""

    value: dict[str, Any]
    start: Place
    end: Place


def expand(patterns: Sequence[str]) -> tuple[DataFile, ...]:
    """The files that `patterns` name, in that order; those of one glob sorted by name.

    Raises TrainError: NOT_FOUND for a pattern without files, a folder, a URL; BAD_DATA for compressed and
    other files that are not JSONL; CONFIG for a file named twice; NO_ACCESS for one that may not be read.
    """
    found: dict[str, DataFile] = {}
    for pattern in patterns:
        for path in _matches(pattern):
            if path in found:
                raise TrainError(
                    Code.CONFIG,
                    f"data.train names {path} twice",
                    "name it once; train.epochs says how often all data are learnt",
                )
            found[path] = DataFile(path, _look(path))
    if not found:
        raise TrainError(Code.CONFIG, "data.train names no files", "name JSONL files: --data.train 'docs/*.jsonl'")
    return tuple(found.values())


def _matches(pattern: str) -> list[str]:
    if "://" in pattern:
        raise TrainError(
            Code.NOT_FOUND,
            f"data.train: {pattern}: data are read from files",
            "mount them as a volume, or fetch them with the TrainJob's dataset initializer (spec.initializer.dataset)",
        )
    path = str(Path(pattern).expanduser())
    # A name with brackets that exists is that file, not a glob. Path.glob needs a folder to start from.
    names = [path] if os.path.lexists(path) else sorted(glob.glob(path, recursive=True))  # noqa: PTH207
    files = [name for name in names if names == [path] or not Path(name).is_dir()]
    if not files:
        what = "matches no file" if glob.has_magic(path) else "does not exist"
        raise TrainError(
            Code.NOT_FOUND,
            f"data.train: {pattern} {what}",
            f"look at ls {Path(path).parent} in the pod: is it mounted?",
        )
    return files


def _look(path: str) -> int:
    """The size of a file that begins like JSONL."""
    try:
        facts = Path(path).stat()
        if stat.S_ISDIR(facts.st_mode):
            raise TrainError(
                Code.NOT_FOUND, f"data.train: {path} is a folder", f"name its files: --data.train '{path}/*.jsonl'"
            )
        with Path(path).open("rb") as file:
            begin = file.read(16)
    except OSError as error:
        raise _cannot_read(path, error) from error
    for magic, what, fix in _OTHERS:
        if begin.startswith(magic):
            raise TrainError(Code.BAD_DATA, f"data.train: {path} {what}, not JSONL", fix.format(path))
    if begin.removeprefix(_BOM).lstrip()[:1] == b"[":
        raise TrainError(
            Code.BAD_DATA,
            f"data.train: {path} is one JSON array, not a JSON object on each line",
            f"write it as JSONL: jq -c '.[]' {path}",
        )
    return facts.st_size


def _cannot_read(path: str, error: OSError) -> TrainError:
    why = error.strerror or type(error).__name__
    if error.errno in (errno.EACCES, errno.EPERM):
        return TrainError(
            Code.NO_ACCESS, f"{path}: {why}", f"let user {os.getuid()}, group {os.getgid()} read it, or set fsGroup"
        )
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return TrainError(Code.NOT_FOUND, f"{path}: {why}", "is its volume mounted, and the file still there?")
    return TrainError(Code.STORAGE, f"{path}: {why}", "the volume does not answer as it should; another try may help")


def fingerprint(files: Sequence[DataFile]) -> str:
    """Tells one set of files from another by their names and sizes, in order.

    Folders do not count: data may be mounted elsewhere on the next start. Contents are not read: that would
    take as long as the training's first epoch.
    """
    facts = "".join(f"{Path(file.path).name}\0{file.size}\n" for file in files)
    return hashlib.sha256(facts.encode(errors="surrogateescape")).hexdigest()[:16]


def lines(files: Sequence[DataFile], start: Place) -> Iterator[Line]:
    """The JSON objects from `start` to the end of the last file. Holds one line in memory; skips empty ones.

    Raises TrainError: BAD_DATA naming file and line; NOT_FOUND, NO_ACCESS, STORAGE for a file that cannot be
    read (any more).
    """
    for index in range(start.file, len(files)):
        begin = start if index == start.file else Place(index)
        try:
            with Path(files[index].path).open("rb") as file:
                yield from _lines_of(files[index], file, begin)
        except OSError as error:
            raise _cannot_read(files[index].path, error) from error


def _lines_of(of: DataFile, file: BinaryIO, begin: Place) -> Iterator[Line]:
    file.seek(begin.offset)
    place = begin
    while raw := file.readline(LONGEST_LINE + 1):
        after = Place(place.file, place.offset + len(raw), place.line + 1)
        if len(raw) > LONGEST_LINE:
            raise bad_line(of, place, f"is longer than {LONGEST_LINE >> 20} MiB", "write one document on each line")
        text = raw.removeprefix(_BOM) if place.offset == 0 else raw
        if not text.isspace() and text:
            yield Line(_parse(of, place, text), place, after)
        place = after


def _parse(of: DataFile, place: Place, raw: bytes) -> dict[str, Any]:
    fix = "correct or remove the line"
    try:
        value = json.loads(raw.decode())
    except UnicodeDecodeError as error:
        raise bad_line(of, place, f"byte {error.start + 1} is not UTF-8", "save the file as UTF-8") from None
    except json.JSONDecodeError as error:
        cut = "" if raw.endswith(b"\n") else " (the file's last line: was it cut off?)"
        raise bad_line(of, place, f"is not JSON: {error.msg}, column {error.colno}{cut}", fix) from None
    except (RecursionError, ValueError) as error:  # nested too deeply; a number of too many digits
        raise bad_line(of, place, f"is not JSON that can be read: {error}", fix) from None
    if not isinstance(value, dict):
        raise bad_line(of, place, f"is a JSON {_kind(value)}, not an object", 'write {"text": "..."} on each line')
    return value


def _kind(value: object) -> str:
    names = {str: "string", list: "array", bool: "boolean", type(None): "null"}
    return names.get(type(value), "number")


def bad_line(file: DataFile, place: Place, why: str, fix: str) -> TrainError:
    """BAD_DATA for the line at `place`: `file:line: why`."""
    return TrainError(Code.BAD_DATA, f"{file.path}:{place.line + 1}: {why}", fix)
