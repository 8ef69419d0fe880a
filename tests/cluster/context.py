"""What every step gets: where files go, how programs run, what to tell the user."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from .host import Host
from .problems import ClusterError
from .progress import Progress
from .shell import Shell

HOME_VARIABLE: Final = "TRAINJOB_CLUSTER_HOME"
CACHE_VARIABLE: Final = "TRAINJOB_CLUSTER_CACHE"
# Container names are made of it.
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,28}[a-z0-9])?")


def home() -> Path:
    """The work folder: everything that the harness writes, apart from docker and apt, is in it."""
    if given := os.environ.get(HOME_VARIABLE):
        return Path(given).expanduser().absolute()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser().absolute() / "trainjob" / "cluster"


def cache() -> Path | None:
    """The folder of ready-built programs, if one is given."""
    given = os.environ.get(CACHE_VARIABLE)
    return Path(given).expanduser().absolute() if given else None


@dataclass
class Context:
    """One run of the command for one cluster."""

    name: str
    home: Path = field(default_factory=home)
    host: Host = field(default_factory=Host.here)
    progress: Progress = field(default_factory=Progress)
    sh: Shell = field(init=False)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ClusterError(
                f"{self.name!r} is no cluster name",
                "use up to 30 lower-case letters, digits and hyphens",
            )
        self.sh = Shell(self.folder / "log.txt")
        # Never the user's own cluster, whatever a program falls back to.
        self.sh.env["KUBECONFIG"] = str(self.kubeconfig)
        self.sh.env["LC_ALL"] = "C.UTF-8"

    @property
    def folder(self) -> Path:
        """Of this cluster."""
        return self.home / "clusters" / self.name

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    @property
    def shared(self) -> Path:
        """The folder that all nodes of this cluster share."""
        return self.folder / "shared"

    @property
    def timings(self) -> Path:
        return self.home / "timings" / f"{self.name}.json"

    @property
    def state(self) -> dict[str, Any]:
        """What was written down about the cluster; empty when it is not ours or not there."""
        return read_json(self.folder / "cluster.json")

    def note(self, **facts: Any) -> None:
        """Adds facts to the state."""
        write_json(self.folder / "cluster.json", {**self.state, **facts})

    @contextlib.contextmanager
    def lock(self, patience: float = 3600) -> Iterator[None]:
        """One run at a time in this work folder; others wait. The lock goes with the process, however it ends."""
        self.home.mkdir(parents=True, exist_ok=True)
        with (self.home / "lock").open("a+") as file:
            begin, told = time.monotonic(), False
            while not _locked(file):
                file.seek(0)
                holder = f"another run is at work in {self.home} (process {file.read().strip() or 'unknown'})"
                if time.monotonic() - begin >= patience:
                    raise ClusterError(holder, f"wait for it, or use another work folder with {HOME_VARIABLE}")
                if not told:
                    self.progress.say(f"{holder}: waiting for it")
                    told = True
                time.sleep(1)
            file.seek(0)
            file.truncate()
            file.write(str(os.getpid()))
            file.flush()
            yield


def _locked(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def read_json(file: Path) -> dict[str, Any]:
    """The object in a file; empty when there is none, or half of one."""
    try:
        value = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def write_json(file: Path, value: dict[str, Any]) -> None:
    """Writes an object so that a reader never sees half of it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(file.name + ".new")
    draft.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n")
    draft.replace(file)
