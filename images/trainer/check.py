"""Tells whether a training image is sound: `docker run --rm IMAGE python /opt/trainer/check.py`.

Also after packages were added to it. Run it as the cluster will, under a user of its own and read-only:
`docker run --rm --network none --read-only --tmpfs /tmp --user 1000740000:0 IMAGE python /opt/trainer/check.py`.
Prints what is in it; exit 1 with a line for each fault.
"""

from __future__ import annotations

import argparse
import getpass
import importlib
import os
import re
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Final

_HERE: Final = Path(__file__).resolve().parent
# Where a user of group 0 may write.
_USER: Final = 1000
WRITABLE: Final = ("/home/trainer", "/workspace", "/tmp", "/var/tmp")
# Made by the container engine when it starts a container, not by the image.
_ENGINE: Final = ("/proc", "/sys", "/dev", "/run")
# The third flag of a compiled file: made from a hash of its source, which nobody compares (PEP 552).
_UNCHECKED_HASH: Final = 0b01
_MODULES: Final = (
    "torch", "torch.distributed.fsdp", "torch.distributed.checkpoint", "transformers.models.llama.modeling_llama",
    "peft", "s3fs", "bitsandbytes", "tensorboard", "mlflow", "trainjob.launch.run", "trainjob.train",
)  # fmt: skip


def pins(requirements: str) -> dict[str, str]:
    """Package -> version, from a requirements file."""
    return dict(re.findall(r"^([A-Za-z0-9._-]+)==([^\s\\]+)", requirements, re.MULTILINE))


def drift(wanted: dict[str, str], installed: dict[str, str]) -> Iterator[str]:
    """Packages that are not as pinned. A build for CPUs has a local version, and no packages of CUDA."""
    cpu_build = installed.get("torch", "").endswith("+cpu")
    for name, version in wanted.items():
        there = installed.get(name)
        if there is None and cpu_build and name.startswith(("nvidia-", "cuda-", "triton")):
            continue
        if there is None or there.partition("+")[0] != version:
            yield f"{name} is {there or 'missing'}, requirements.txt pins {version}"


def may_write(path: Path, apart_from: Sequence[str] = (*WRITABLE, *_ENGINE)) -> Iterator[str]:
    """What a user of group 0 may change below a folder, and programs that change the user.

    By mode, so also on a read-only root.
    """
    spared = set(apart_from)
    for folder, folders, files in os.walk(path):
        folders[:] = [name for name in folders if os.path.join(folder, name) not in spared]  # noqa: PTH118
        for name in (*folders, *files):
            place = os.path.join(folder, name)  # noqa: PTH118  (fifty thousand of them)
            facts = os.lstat(place)
            if stat.S_ISLNK(facts.st_mode):
                continue
            if facts.st_mode & 0o002 or (facts.st_gid == 0 and facts.st_mode & 0o020) or facts.st_uid == _USER:
                yield f"writable: {place}"
            if stat.S_ISREG(facts.st_mode) and facts.st_mode & 0o6000:
                yield f"changes the user: {place}"


def uncompiled(modules: Sequence[ModuleType], below: Path) -> Iterator[str]:
    """Loaded modules below a folder whose bytecode is missing, or would be compared with the source."""
    for module in modules:
        spec = getattr(module, "__spec__", None)
        cached = getattr(spec, "cached", None)
        if not cached or not Path(cached).is_relative_to(below):
            continue
        try:
            with Path(cached).open("rb") as file:
                flags = int.from_bytes(file.read(8)[4:], "little")
        except OSError:
            yield f"{module.__name__}: no bytecode"
            continue
        if flags != _UNCHECKED_HASH:
            yield f"{module.__name__}: its bytecode is compared with its source"


def main(argv: Sequence[str]) -> int:
    """Looks at this image; 0 sound, 1 with its faults on stderr."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args(argv)
    faults = list(_imports(_MODULES))
    installed = {_normal(d.name): d.version for d in metadata.distributions()}
    faults += drift(pins((_HERE / "requirements.txt").read_text()), installed)
    faults += uncompiled(list(sys.modules.values()), Path(sys.prefix))
    faults += may_write(Path("/"))
    checked = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True, check=False)
    if checked.returncode:
        faults += (f"pip check: {line}" for line in (checked.stdout or checked.stderr).splitlines())
    try:
        getpass.getuser()
    except (KeyError, OSError) as error:
        faults.append(f"the user has no name: {error}")
    for fault in faults:
        print(f"error: {fault}", file=sys.stderr)
    return 1 if faults else 0


def _imports(names: Sequence[str]) -> Iterator[str]:
    for name in names:
        begin = time.monotonic()
        try:
            module = importlib.import_module(name)
        except Exception as error:
            yield f"cannot import {name}: {type(error).__name__}: {error}"
            continue
        top = sys.modules[name.partition(".")[0]]
        version = getattr(top, "__version__", "")
        print(f"{module.__name__} {version}: {time.monotonic() - begin:.1f} s")
    torch = sys.modules.get("torch")
    if torch:
        print(f"CUDA {torch.version.cuda}, GPUs {torch.cuda.device_count()}, uid {os.getuid()}, gid {os.getgid()}")
        if not torch.distributed.is_gloo_available():
            yield "torch has no gloo"


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
