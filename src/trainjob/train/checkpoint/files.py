"""DCP's files in a Place: one or a few files a rank and `.metadata`, as torch's own writer makes them.

What differs from torch 2.13's FileSystemWriter and FsspecWriter: the folder is made once, by rank 0; the first
error of a stream is the one that is raised (torch.save hides it behind its own) and one of any thread is; nothing
calls os.sync().
What differs from its readers: a file is read in large pieces and by several threads, every tensor's checksum is
looked at (torch writes CRC-32 and never reads it), and `.metadata` may name only the classes that belong there.
"""

from __future__ import annotations

import io
import os
import pickle
import queue
import zipfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch.distributed._shard._utils import narrow_tensor_by_index
from torch.distributed.checkpoint import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.filesystem import FileSystemBase, _write_files_from_queue
from torch.futures import Future

from trainjob.train.checkpoint.place import Place, fault
from trainjob.train.checkpoint.ranks import ToldError
from trainjob.train.faults import TrainError

METADATA: Final = ".metadata"
_PIECE: Final = 64 * 1024 * 1024
_READERS: Final = 4
# Files that a rank writes at once. A stream to an object store is slow, several are not.
_STREAMS: Final = {True: 1, False: 4}


class _Noting:
    """A stream that remembers the first error of a write."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.error: Exception | None = None

    def write(self, data: Any) -> int:
        try:
            return int(self._stream.write(data))
        except Exception as error:
            self.error = self.error or error
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Folder(FileSystemBase):  # type: ignore[misc]
    """The folder of one checkpoint, as torch's writer asks for it. Paths are names in it."""

    def __init__(self, place: Place) -> None:
        self._place = place

    @contextmanager
    def create_stream(self, path: str | os.PathLike[str], mode: str) -> Iterator[Any]:
        stream = _Noting(self._place.open(os.fspath(path), mode))
        try:
            yield stream
            stream.close()
        except BaseException as error:
            try:
                # A multipart upload that is not finished leaves no object.
                (stream.discard if hasattr(stream, "discard") else stream.close)()
            except Exception as second:
                stream.error = stream.error or second
            raise stream.error or error from error

    def concat_path(self, _path: str | os.PathLike[str], suffix: str) -> str:
        return suffix

    def rename(self, path: str | os.PathLike[str], new_path: str | os.PathLike[str]) -> None:
        raise NotImplementedError

    def init_path(self, path: str | os.PathLike[str]) -> str:
        return os.fspath(path)

    def mkdir(self, _path: str | os.PathLike[str]) -> None:
        self._place.make()

    @classmethod
    def validate_checkpoint_id(cls, _checkpoint_id: str | os.PathLike[str]) -> bool:
        return True

    def exists(self, _path: str | os.PathLike[str]) -> bool:
        return False

    def rm_file(self, path: str | os.PathLike[str]) -> None:
        raise NotImplementedError


class Writer(FileSystemWriter):  # type: ignore[misc]
    """Writes one checkpoint. `prepare` and `publish` run on rank 0: before the first file, and after the last
    with the names and sizes of all. What goes wrong anywhere is raised on every rank, as `ToldError`.
    """

    def __init__(self, place: Place, prepare: Callable[[], object], publish: Callable[[Mapping[str, int]], object]):
        super().__init__(place.path, sync_files=place.local, thread_count=_STREAMS[place.local])
        self.fs = _Folder(place)
        self.path = place.url
        self._place = place
        self._prepare = prepare
        self._publish = publish

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except TrainError as error:
            raise ToldError.of(error) from None
        except (OSError, RuntimeError, ValueError) as error:
            raise ToldError.of(fault(error, "cannot write the checkpoint", self._place.url)) from error

    def prepare_local_plan(self, plan: Any) -> Any:
        return plan

    def prepare_global_plan(self, plans: list[Any]) -> list[Any]:
        with self._telling():
            self._prepare()
        return list(super().prepare_global_plan(plans))

    def write_data(self, plan: Any, planner: Any) -> Any:
        with self._telling():
            # Rank 0 has made it, unless this node writes to a disk of its own: then rank 0 will miss the files.
            self._place.make()
            return super().write_data(plan, planner)

    def _write_data(self, planner: Any, file_queue: Any) -> Any:
        """As torch's, which loses an error of any thread but its own, and with it the tensors of that file."""
        written: queue.Queue[list[Any]] = queue.Queue()
        with ThreadPoolExecutor(self.thread_count, thread_name_prefix="write") as pool:
            started = [
                pool.submit(
                    _write_files_from_queue, self.fs.create_stream, file_queue, written, planner, self.transforms,
                    self.per_thread_copy_ahead, self.sync_files, self.thread_count, self.serialization_format,
                )
                for _ in range(self.thread_count)
            ]  # fmt: skip
        for each in started:
            each.result()
        done: Any = Future()
        done.set_result([result for results in written.queue for result in results])
        return done

    def finish(self, metadata: Any, results: list[list[Any]]) -> None:
        sizes: dict[str, int] = {}
        metadata.storage_data = {}
        for result in (each for of_rank in results for each in of_rank):
            info = result.storage_data
            metadata.storage_data[result.index] = info
            sizes[info.relative_path] = max(sizes.get(info.relative_path, 0), info.offset + info.length)
        metadata.storage_meta = self.storage_meta()
        content = pickle.dumps(metadata)
        sizes[METADATA] = len(content)
        with self._telling():
            self._place.write(METADATA, content)
            self._publish(sizes)

    @classmethod
    def validate_checkpoint_id(cls, _checkpoint_id: str | os.PathLike[str]) -> bool:
        return True


class UnreadableError(Exception):
    """A file that is not what was written. `file` is its name in the checkpoint's folder."""

    def __init__(self, file: str, why: str) -> None:
        super().__init__(f"{file}: {why}")
        self.file = file
        self.why = why


class _Unpickler(pickle.Unpickler):
    """Makes what .metadata consists of and nothing else: a checkpoint may come from elsewhere."""

    def find_class(self, module: str, name: str) -> Any:
        if module in ("torch.distributed.checkpoint.metadata", "torch.distributed.checkpoint.filesystem"):
            if name in _METADATA_CLASSES:
                return super().find_class(module, name)
        elif module == "torch" and isinstance(getattr(torch, name, None), torch.dtype):
            return getattr(torch, name)
        elif (module, name) in (("torch", "Size"), ("torch.serialization", "_get_layout")):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"it names {module}.{name}, which is no part of a checkpoint")


_METADATA_CLASSES: Final = frozenset(
    {
        "BytesStorageMetadata", "ChunkStorageMetadata", "Metadata", "MetadataIndex", "StorageMeta",
        "TensorProperties", "TensorStorageMetadata", "_MEM_FORMAT_ENCODING", "_StorageInfo",
    }
)  # fmt: skip


def metadata(place: Place) -> Any:
    """DCP's Metadata of a checkpoint: names, shapes and where their pieces are. Raises UnreadableError, TrainError."""
    content = place.read(METADATA)
    if content is None:
        raise UnreadableError(METADATA, "is missing")
    try:
        return _Unpickler(io.BytesIO(content)).load()
    except Exception as error:
        raise UnreadableError(METADATA, f"cannot be read: {error}") from error


class Reader(FileSystemReader):  # type: ignore[misc]
    """Reads from one checkpoint what a plan asks for. Raises UnreadableError and TrainError."""

    def __init__(self, place: Place, read: Any) -> None:
        """`read`: what `metadata(place)` returned."""
        super().__init__(place.path)
        self.path = place.url
        self._place = place
        self._metadata = read

    def read_metadata(self, *_args: Any, **_kwargs: Any) -> Any:
        return self._metadata

    def read_data(self, plan: Any, planner: Any) -> Any:
        by_file: dict[str, list[Any]] = {}
        for item in plan.items:
            by_file.setdefault(self.storage_data[item.storage_index].relative_path, []).append(item)
        pieces = [(name, piece) for name, items in by_file.items() for piece in self._pieces(items)]
        with ThreadPoolExecutor(_READERS) as pool:
            for _ in pool.map(lambda each: self._read(planner, *each), pieces):
                pass
        done: Any = Future()
        done.set_result(None)
        return done

    def _pieces(self, items: list[Any]) -> Iterator[list[Any]]:
        """Neighbours in a file, together at most _PIECE bytes or a single tensor."""
        piece: list[Any] = []
        start = end = 0
        for item in sorted(items, key=lambda each: self.storage_data[each.storage_index].offset):
            info = self.storage_data[item.storage_index]
            if piece and (info.offset > end or info.offset + info.length - start > _PIECE):
                yield piece
                piece = []
            if not piece:
                start = end = info.offset
            piece.append(item)
            end = max(end, info.offset + info.length)
        if piece:
            yield piece

    def _read(self, planner: Any, name: str, items: list[Any]) -> None:
        infos = [self.storage_data[item.storage_index] for item in items]
        start = min(info.offset for info in infos)
        length = max(info.offset + info.length for info in infos) - start
        content = self._place.read(name, start, length)
        if content is None or len(content) < length:
            raise UnreadableError(name, "is missing" if content is None else f"ends before byte {start + length}")
        view = memoryview(content)
        with torch.no_grad():
            for item, info in zip(items, infos, strict=True):
                part = view[info.offset - start : info.offset - start + info.length]
                tensor = narrow_tensor_by_index(_tensor(name, part, item), item.storage_offsets, item.lengths)
                target = planner.resolve_tensor(item).detach()
                target.copy_(tensor)
                planner.commit_tensor(item, target)


def _tensor(name: str, content: memoryview, item: Any) -> Any:
    """One stored tensor, its checksum compared."""
    what = item.storage_index.fqn
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if broken := archive.testzip():
                raise UnreadableError(name, f"the checksum of {what} ({broken}) is wrong")
        return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except UnreadableError:
        raise
    except Exception as error:
        raise UnreadableError(name, f"{what} cannot be read: {error}") from error
