"""A folder on a disk or in an object store, and what its errors mean to who runs the training.

A disk is used by plain system calls: rename is atomic there and fsync makes a file survive a crash. Anything
else with a scheme goes through fsspec; s3:// through s3fs, which reads the AWS_* variables that `trainjob.storage`
sets. Objects appear whole or not at all, so a store needs no draft, but it has no rename either.
"""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from trainjob.train.faults import Code, TrainError

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG})
_FORBIDDEN: Final = frozenset({errno.EACCES, errno.EPERM})
_NO_FOLDER: Final = frozenset({errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.EINVAL})
# Codes of object stores, in the text of the client's error: S3 itself is never full, others are.
_FULL_STORE: Final = ("QuotaExceeded", "StorageFull", "InsufficientStorage", "NoSpace")
# safetensors and other native writers put the system's error into the text of their own.
_FULL_TEXT: Final = tuple(f"os error {number}" for number in sorted(_FULL))
_NO_KEYS: Final = ("NoCredentialsError", "PartialCredentialsError", "InvalidAccessKeyId", "SignatureDoesNotMatch")
_TRIED: Final = ".trainjob-can-write"
_REQUEST: Final = 16 * 1024 * 1024
_S3_RETRIES: Final = 10


def fault(error: BaseException, doing: str, url: str) -> TrainError:
    """What `error` means: no space, no access, a wrong place, or a store that does not answer."""
    if isinstance(error, TrainError):
        return error
    chain = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) is not None and cause not in chain:
        chain.append(cause)
    text = " ".join(f"{type(each).__name__}: {each}" for each in chain)
    numbers = [each.errno for each in chain if isinstance(each, OSError) and each.errno is not None]
    number = numbers[0] if numbers else None
    why = os.strerror(number) if number is not None and "://" not in url else str(error) or type(error).__name__
    reason = f"{doing} {url}: {why}"
    if any(each in _FULL for each in numbers) or any(word in text for word in (*_FULL_STORE, *_FULL_TEXT)):
        fix = "free or add space there, or keep fewer checkpoints (checkpoint.keep)"
        if errno.EROFS in numbers:
            fix = "mount it so that it can be written, or name another folder (checkpoint.url)"
        return TrainError(Code.NO_SPACE, reason, fix)
    if number in _FORBIDDEN or isinstance(error, PermissionError) or any(word in text for word in _NO_KEYS):
        fix = "give this user the right to write there (fsGroup of the pod, owner of the folder)"
        if "://" in url:
            fix = "look at the keys and the bucket's policy (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)"
        return TrainError(Code.NO_ACCESS, reason, fix)
    if isinstance(error, ImportError):
        return TrainError(Code.CONFIG, reason, "install what reads such a URL: for s3:// it is the package s3fs")
    if isinstance(error, FileNotFoundError):
        if "://" in url:
            return TrainError(Code.CONFIG, reason, "make the bucket, or name another one (checkpoint.url)")
        return TrainError(Code.NO_SPACE, reason, "name a folder that can be made and written (checkpoint.url)")
    if number in _NO_FOLDER or isinstance(error, ValueError):
        return TrainError(Code.CONFIG, reason, "name a folder (checkpoint.url)")
    return TrainError(Code.STORAGE, reason, "see that the storage is there and answers; another try can help")


def _options(scheme: str) -> dict[str, Any]:
    """s3fs: no cached listings (others write too), many tries, and no checksums that only AWS knows."""
    if scheme not in ("s3", "s3a"):
        return {}
    config: dict[str, Any] = {
        "retries": {"max_attempts": _S3_RETRIES, "mode": "standard"}, "connect_timeout": 15, "read_timeout": 120,
        # botocore >= 1.36 adds trailing checksums that several S3 servers refuse.
        "request_checksum_calculation": "when_required", "response_checksum_validation": "when_required",
    }  # fmt: skip
    return {"use_listings_cache": False, "config_kwargs": config}


class Place:
    """A folder. `url`: a path, file:///path, or a URL that fsspec knows. Names are relative, with "/" between.

    Every method raises TrainError: NO_SPACE, NO_ACCESS, CONFIG or STORAGE.
    """

    def __init__(self, url: str, _fs: Any = None) -> None:
        self.url = url.rstrip("/") or "/"
        scheme, separator, rest = self.url.partition("://")
        self.local = not separator or scheme == "file"
        self._fs = _fs
        if self.local:
            self._folder = Path(rest if separator else self.url).absolute()
            self.path = str(self._folder)
            return
        if self._fs is None:
            with self.errors("cannot use"):
                import fsspec

                self._fs = fsspec.filesystem(scheme, **_options(scheme))
        self.path = str(self._fs._strip_protocol(self.url))

    def __truediv__(self, name: str) -> Place:
        return Place(f"{self.url.rstrip('/')}/{name}", self._fs)

    @contextmanager
    def errors(self, doing: str) -> Iterator[None]:
        """Turns what the system or the store raises into a TrainError with `doing` and the URL."""
        try:
            yield
        except Exception as error:
            raise fault(error, doing, self.url) from error

    def make(self) -> None:
        """Makes the folder and those above it. An object store has none to make."""
        if self.local:
            with self.errors("cannot make the folder"):
                self._folder.mkdir(parents=True, exist_ok=True)

    def try_out(self) -> None:
        """Writes and removes a file: what stands in the way is better met before the first step than after a day."""
        self.make()
        self.write(_TRIED, b"")
        self.discard(_TRIED)

    def folders(self) -> list[str]:
        """Names of the folders in it, sorted; none if it is not there."""
        with self.errors("cannot list"):
            if self.local:
                try:
                    with os.scandir(self.path) as found:
                        return sorted(entry.name for entry in found if entry.is_dir())
                except FileNotFoundError:
                    return []
            self._forget()
            try:
                entries = self._fs.ls(self.path, detail=True)
            except FileNotFoundError:
                return []
            return sorted(
                entry["name"].rstrip("/").rpartition("/")[2] for entry in entries if entry["type"] == "directory"
            )

    def files(self) -> dict[str, int]:
        """Name and size in bytes of every file below it; none if it is not there."""
        with self.errors("cannot list"):
            if self.local:
                paths = [Path(folder, name) for folder, _, names in os.walk(self.path) for name in names]
                return {str(path.relative_to(self._folder)): path.stat().st_size for path in paths}
            self._forget()
            try:
                entries = self._fs.find(self.path, detail=True)
            except FileNotFoundError:
                return {}
            return {path[len(self.path) + 1 :]: int(entry["size"]) for path, entry in entries.items()}

    def read(self, name: str, start: int = 0, length: int | None = None) -> bytes | None:
        """Bytes of a file, or None if there is none. Fewer than `length` if it ends before."""
        with self.errors(f"cannot read {name} in"):
            end = None if length is None else start + length
            try:
                if not self.local:
                    return self._fetch(f"{self.path}/{name}", start, end)
                with (self._folder / name).open("rb") as stream:
                    stream.seek(start)
                    return stream.read() if length is None else stream.read(length)
            except FileNotFoundError:
                return None

    def _fetch(self, path: str, start: int, end: int | None) -> bytes:
        """Bytes of an object; long ones in several requests at once, as a single one is slow."""
        if end is None or end - start <= _REQUEST:
            return bytes(self._fs.cat_file(path, start=start or None, end=end))
        starts = list(range(start, end, _REQUEST))
        ends = [min(first + _REQUEST, end) for first in starts]
        return b"".join(self._fs.cat_ranges([path] * len(starts), starts, ends, on_error="raise"))

    def write(self, name: str, content: bytes) -> None:
        """Writes a small file so that it is there whole or not at all, and survives a crash."""
        with self.errors(f"cannot write {name} in"):
            if not self.local:
                self._fs.pipe_file(f"{self.path}/{name}", content)
                return
            draft = self._folder / f"{name}.draft"
            with draft.open("wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            draft.replace(self._folder / name)
            self.sync()

    def open(self, name: str, mode: str) -> Any:
        """A binary stream, unmapped errors and all: for writers that live through several calls."""
        if self.local:
            return (self._folder / name).open(mode)
        return self._fs.open(f"{self.path}/{name}", mode)

    def put(self, path: str, name: str) -> None:
        """Copies a file of this machine into it; on a disk it is there whole or not at all."""
        with self.errors(f"cannot write {name} in"):
            if not self.local:
                self._fs.put_file(path, f"{self.path}/{name}")
                return
            target = self._folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            draft = target.with_name(f"{target.name}.draft")
            shutil.copyfile(path, draft)
            draft.replace(target)

    def discard(self, name: str) -> None:
        """Removes a file. Fine if it is not there."""
        with self.errors(f"cannot remove {name} in"), suppress(FileNotFoundError):
            if self.local:
                (self._folder / name).unlink()
            else:
                self._fs.rm_file(f"{self.path}/{name}")

    def remove(self, first: str = "") -> None:
        """Removes the folder and all in it, the file `first` before the others. Fine if it is not there."""
        with self.errors("cannot remove"):
            if self.local:
                if first:
                    (self._folder / first).unlink(missing_ok=True)
                _remove_tree(self.path)
                return
            self._forget()
            with suppress(FileNotFoundError):
                if first and self._fs.exists(f"{self.path}/{first}"):
                    self._fs.rm_file(f"{self.path}/{first}")
                self._fs.rm(self.path, recursive=True)

    def move(self, name: str, new: str) -> None:
        """Renames a folder in it; disks only."""
        with self.errors(f"cannot rename {name} to {new} in"):
            (self._folder / name).rename(self._folder / new)
            self.sync()

    def sync(self) -> None:
        """Makes the names in it survive a crash."""
        if not self.local:
            return
        with self.errors("cannot write"):
            folder = os.open(self.path, os.O_RDONLY)
            try:
                os.fsync(folder)
            except OSError as error:
                # Some network file systems have no fsync of folders.
                if error.errno not in (errno.EINVAL, errno.ENOTSUP):
                    raise
            finally:
                os.close(folder)

    def _forget(self) -> None:
        self._fs.invalidate_cache()


def _remove_tree(path: str) -> None:
    """NFS keeps a file that another process has open under a hidden name for a while: tries thrice."""
    for attempt in range(3):
        try:
            shutil.rmtree(path)
            return
        except FileNotFoundError:
            if not os.path.lexists(path):
                return
        except OSError as error:
            if attempt == 2 or error.errno not in (errno.ENOTEMPTY, errno.EBUSY):
                raise
            time.sleep(0.2)
