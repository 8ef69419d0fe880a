"""Runs programs: what they print goes to a log file, and into the message when they fail."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from .problems import ClusterError

_TAIL = 15
_LOG_BYTES = 4_000_000


class CommandError(ClusterError):
    """A program failed."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a program printed, and its exit status."""

    code: int
    out: str
    err: str

    @property
    def ok(self) -> bool:
        return self.code == 0


def tail(text: str, lines: int = _TAIL) -> str:
    """The last lines of a text that say something."""
    return "\n".join([line for line in text.splitlines() if line.strip()][-lines:])


@dataclass
class Shell:
    """Starts programs with one log file and one environment."""

    log: Path
    env: dict[str, str] = field(default_factory=lambda: dict(os.environ))

    def run(
        self,
        *argv: str | Path,
        stdin: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        timeout: float = 120,
        check: bool = True,
        next_step: str = "",
        bound: bool = False,
    ) -> Result:
        """Runs a program to its end. Kills it with its children at the time limit or an interrupt.

        `bound`: the kernel ends it when this process is killed, where it can.
        """
        command = [str(part) for part in argv]
        if bound and (setpriv := shutil.which("setpriv")):
            command = [setpriv, "--pdeathsig", "KILL", *command]
        begin = time.monotonic()
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                cwd=cwd,
                env={**self.env, **(env or {})},
                start_new_session=True,
            )
        except OSError as error:
            if check:
                raise CommandError(f"cannot start {command[0]}: {error.strerror}", next_step or "install it") from error
            return Result(127, "", str(error))
        try:
            out, err = process.communicate(stdin, timeout=timeout)
        except subprocess.TimeoutExpired:
            _kill(process)
            out, err = process.communicate()
            self._note(command, begin, -1, out, err)
            if check:
                raise CommandError(
                    f"{_short(command)} did not end within {timeout:.0f} s",
                    next_step or f"see {self.log}; run the same command again to go on from here",
                    tail(err or out),
                ) from None
            return Result(-1, out, err)
        except BaseException:
            _kill(process)
            raise
        self._note(command, begin, process.returncode, out, err)
        if check and process.returncode:
            raise CommandError(
                f"{_short(command)} failed (exit {process.returncode})",
                next_step or f"see {self.log}; run the same command again to go on from here",
                tail(err) or tail(out),
            )
        return Result(process.returncode, out, err)

    def pipe(self, producer: Sequence[str | Path], consumer: Sequence[str | Path], timeout: float = 900) -> None:
        """Runs `producer | consumer`; both have to succeed."""
        first, second = [str(part) for part in producer], [str(part) for part in consumer]
        begin = time.monotonic()
        with _both(first, second, self.env) as (left, right):
            # Without its producer the consumer ends too.
            timer = threading.Timer(timeout, _kill, (left,))
            timer.start()
            try:
                # The producer's stderr is read on the side: a full pipe would stop it.
                left_err: list[str] = []
                reader = threading.Thread(target=lambda: left_err.append(_read(left)), daemon=True)
                reader.start()
                out, err = right.communicate()
                left.wait()
                reader.join()
            finally:
                timer.cancel()
        self._note([*first, "|", *second], begin, left.returncode or right.returncode, out, "".join(left_err) + err)
        if left.returncode or right.returncode:
            raise CommandError(
                f"{_short(first)} | {_short(second)} failed (exit {left.returncode}, {right.returncode})",
                f"see {self.log}; run the same command again",
                tail("".join(left_err) + err),
            )

    def _note(self, command: Sequence[str], begin: float, code: int, out: str, err: str) -> None:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        if self.log.exists() and self.log.stat().st_size > _LOG_BYTES:
            self.log.replace(self.log.with_suffix(".old.txt"))
        lines = 60 if code else 6
        with self.log.open("a") as log:
            log.write(f"\n$ {shlex.join(command)}\n")
            for text in (out, err):
                log.write(tail(text, lines) + "\n" if text.strip() else "")
            log.write(f"# exit {code}, {time.monotonic() - begin:.1f} s\n")


@contextlib.contextmanager
def _both(
    first: list[str], second: list[str], env: Mapping[str, str]
) -> Iterator[tuple[subprocess.Popen[str], subprocess.Popen[str]]]:
    left = _open(first, subprocess.DEVNULL, env)
    try:
        right = _open(second, left.stdout, env)
    except BaseException:
        _kill(left)
        raise
    assert left.stdout is not None
    left.stdout.close()
    try:
        yield left, right
    except BaseException:
        _kill(left)
        _kill(right)
        raise


def _open(command: list[str], stdin: int | IO[str] | None, env: Mapping[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=dict(env),
        start_new_session=True,
    )


def _read(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    with process.stderr:
        return process.stderr.read()


def _kill(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _short(command: Sequence[str]) -> str:
    text = shlex.join([Path(command[0]).name, *command[1:]])
    return text if len(text) <= 100 else text[:97] + "..."
