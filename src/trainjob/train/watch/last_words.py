"""Why a run ended: one line that everybody finds, an exit code, and the traceback for those who need it.

    the log              traceback, then the line
    the termination log  the line, then the end of the traceback: `kubectl get pod -o yaml`
    torch's error file   what `trainjob launch` and torchrun show of a failed rank

One fault makes many ranks fail: within a pod the first one tells the traceback, the others say one line.
Imports no torch: a wrong configuration is told at once.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn, TextIO

from trainjob.train.faults import Code, TrainError
from trainjob.train.watch import talk

TERMINATION_LOG: Final = Path("/dev/termination-log")
# torch/distributed/elastic/multiprocessing/errors/error_handler.py, 2.13
ERROR_FILE: Final = "TORCHELASTIC_ERROR_FILE"
# Kubernetes keeps 4096 bytes of a termination message (kubelet, pkg/kubelet/kuberuntime).
_TERMINATION: Final = 4096
# An error whose reason is that of another rank; trainjob.launch blames it last.
PEER_LOST: Final = "PEER_LOST"
_INTERRUPTED: Final = 130

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG})
_FULL_TEXT: Final = ("No space left on device", "Disk quota exceeded", "Read-only file system")
# Messages of gloo 2.13 carry its source file; NCCL's name the remote end (ncclRemoteError).
_PEER_TEXT: Final = ("gloo/transport/", "ncclRemoteError", "remote process exited", "Watchdog caught collective")
_PEER_TYPES: Final = frozenset({"DistNetworkError", "DistStoreError"})
_HOST_MEMORY: Final = re.compile(r"DefaultCPUAllocator: can't allocate memory: you tried to allocate (\d+) bytes")
_AMOUNT: Final = r"([\d.]+ [KMGT]?i?B)"


@dataclass(frozen=True, slots=True)
class Words:
    """`line`: `NAME: reason; fix` or `ValueError: ...`; `foreseen`: the line explains it without a traceback."""

    code: int
    line: str
    foreseen: bool

    @property
    def victim(self) -> bool:
        """True when another rank is to blame."""
        return self.line.startswith(f"{PEER_LOST}:")


def end(
    error: BaseException,
    *,
    environ: Mapping[str, str] = os.environ,
    log: TextIO | None = None,
    termination: Path = TERMINATION_LOG,
) -> int:
    """Tells why the run ended; returns the exit code. Fails at nothing itself."""
    words = explain(error)
    trace = "".join(traceback.format_exception(error)).rstrip()
    told = _tell_agent(environ, words, trace)
    first = _first(environ, words.line)
    quiet = words.victim or words.code in (Code.TOLD, Code.CONFIG, _INTERRUPTED) or not first
    rank = f"rank {environ['RANK']}: " if "RANK" in environ else ""
    said = f"trainjob.train: {rank}{words.line} (exit code {words.code})"
    # The agent prints the traceback that it was given.
    shown = "" if quiet or (told and not words.foreseen) else f"{trace}\n"
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    talk.write(f"{shown}{said}", log)
    if first and not (words.victim and _said_before(termination)):
        with contextlib.suppress(OSError):
            termination.write_bytes(_message(said, "" if quiet else trace))
    return words.code


def leave(error: BaseException, *, termination: Path = TERMINATION_LOG) -> NoReturn:
    """Tells why the run ended and ends the process at once, with the code.

    An orderly exit of the interpreter destroys process groups, which can wait for ranks that are gone.
    """
    exit_now(end(error, termination=termination))


def exit_now(code: int) -> NoReturn:
    """Ends the process without the interpreter's and the libraries' own end; what was printed is out."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def clear(environ: Mapping[str, str] = os.environ, termination: Path = TERMINATION_LOG) -> None:
    """At the start: what an earlier attempt in this container wrote is no longer why it ends."""
    if environ.get("LOCAL_RANK", "0") == "0" and _said_before(termination):
        with contextlib.suppress(OSError):
            termination.write_bytes(b"")


def explain(error: BaseException) -> Words:
    """What an exception means."""
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        return Words(code, f"SystemExit: {error.code}", True)
    if isinstance(error, KeyboardInterrupt):
        return Words(_INTERRUPTED, "KeyboardInterrupt: interrupted", True)
    for each in _chain(error):
        fault = each if isinstance(each, TrainError) else _fault(each)
        if fault is not None:
            return Words(int(fault.code), f"{fault.code.name}: {fault}", True)
    for each in _chain(error):
        if _is_peer(each):
            return Words(
                1,
                f"{PEER_LOST}: another rank went away or does not answer ({_head(each, 160)}); "
                "look at the rank that failed first",
                False,
            )
    return Words(1, f"{type(error).__name__}: {_head(error)}", False)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what led to it, as a traceback shows it."""
    seen: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        yield each
        each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)


def _fault(error: BaseException) -> TrainError | None:
    """The foreseen fault that another library reports in its own way."""
    text = str(error)
    if type(error).__name__ == "OutOfMemoryError":
        return _gpu_memory(text)
    host = _HOST_MEMORY.search(text)
    if host or isinstance(error, MemoryError):
        wanted = f": {int(host[1]) / 2**30:.2f} GiB were asked for" if host else ""
        return TrainError(
            Code.OUT_OF_MEMORY,
            f"the host has no memory left{wanted}",
            "raise the memory of resourcesPerNode, or lower train.micro_batch or data.seq_length",
        )
    if (isinstance(error, OSError) and error.errno in _FULL) or any(mark in text for mark in _FULL_TEXT):
        return TrainError(
            Code.NO_SPACE,
            f"nothing can be written: {_head(error)}",
            "free or enlarge the volume, or lower checkpoint.keep",
        )
    return None


def _gpu_memory(text: str) -> TrainError:
    """torch's message (c10/cuda/CUDACachingAllocator.cpp, 2.13) in one line."""
    found = {
        what: match[1]
        for what, pattern in (
            ("asked for", rf"Tried to allocate {_AMOUNT}"),
            ("free", rf"of which {_AMOUNT} is free"),
            ("in the GPU", rf"total capacity of {_AMOUNT}"),
            ("held by tensors", rf"{_AMOUNT} is allocated by PyTorch"),
            ("kept unused by torch", rf"{_AMOUNT} is reserved by PyTorch but unallocated"),
        )
        if (match := re.search(pattern, text))
    }
    sizes = ", ".join(f"{amount} {what}" for what, amount in found.items()) or text.split(". ")[0]
    fix = (
        "lower train.micro_batch or data.seq_length, set parallel.activation_checkpointing, shard over more GPUs "
        "(parallel.mode fsdp), or train adapters (lora.rank)"
    )
    if re.match(r"[\d.]+ G", found.get("kept unused by torch", "")):
        fix = f"set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or {fix}"
    return TrainError(Code.OUT_OF_MEMORY, f"the GPU has no memory left: {sizes}", fix)


def _is_peer(error: BaseException) -> bool:
    names = {each.__name__ for each in type(error).__mro__}
    return bool(names & _PEER_TYPES) or ("RuntimeError" in names and any(mark in str(error) for mark in _PEER_TEXT))


def _head(error: BaseException, longest: int = 300) -> str:
    """The message in one line, of reasonable length."""
    lines = str(error).strip().splitlines()
    # torch's C++ stack follows its message.
    text = " ".join(" ".join(lines[:3]).split()) if lines else type(error).__name__
    text = re.sub(r"\[/\S+/third_party/", "[", text)  # where torch was built
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def _tell_agent(environ: Mapping[str, str], words: Words, trace: str) -> bool:
    """Leaves the reason where torch's elastic agent looks; True if there is one."""
    file = environ.get(ERROR_FILE)
    if not file:
        return False
    # The agent takes the last line that is not indented for the error.
    stack = words.line if words.foreseen else trace if trace.endswith(words.line) else f"{trace}\n{words.line}"
    extra = {"py_callstack": stack, "timestamp": time.time()}
    try:
        Path(file).write_text(json.dumps({"message": {"message": words.line, "extraInfo": extra}}))
    except OSError:
        return False
    return True


def _first(environ: Mapping[str, str], line: str) -> bool:
    """Whether no other rank of this pod has said the same. Without an agent there is no other."""
    file = environ.get(ERROR_FILE)
    if not file:
        return True
    # .../attempt_0/<local rank>/error.json: the folder above is that of this attempt of this pod.
    attempt = Path(file).parent.parent
    try:
        (attempt / f"said-{hashlib.sha256(line.encode()).hexdigest()[:16]}").touch(exist_ok=False)
    except FileExistsError:
        return False
    except OSError:
        return True
    return True


def _said_before(termination: Path) -> bool:
    try:
        return termination.stat().st_size > 0
    except OSError:
        return False


def _message(said: str, trace: str) -> bytes:
    """The line, and as much of the end of the traceback as fits."""
    head = said.encode()[: _TERMINATION - 1]
    room = _TERMINATION - len(head) - 2
    tail = trace.encode()[-room:] if trace and room > 0 else b""
    # No half character at the cut.
    return (head + b"\n" + tail.decode(errors="ignore").encode()).strip() + b"\n"
