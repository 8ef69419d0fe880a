"""Makes images without a builder: start a container, run things in it, commit. Or import a few files.

For images of the cluster: that of a node needs a privileged container, which no builder gives. An image
carries a label with the digest of its recipe: the same recipe is not made again.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import tarfile
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final

from .context import Context

LABEL: Final = "dev.trainjob.recipe"
# Begins the names of containers that become images. No label would do: the image would inherit it.
_BUILD: Final = "trainjob-build-"


def made_here(image: str) -> str:
    """The engine's name for an image that stands in for a published one: it must not pass for that one."""
    return f"localhost/trainjob-made/{image}"


def recipe(*parts: object) -> str:
    """A short digest of everything that an image is made from."""
    return hashlib.sha256("\0".join(str(part) for part in parts).encode()).hexdigest()[:16]


def has(ctx: Context, image: str, made_from: str = "") -> bool:
    """Whether the engine has the image, made from this recipe if one is named."""
    label = ctx.sh.run(
        "docker", "image", "inspect", image, "--format", f'{{{{index .Config.Labels "{LABEL}"}}}}', check=False
    )
    return label.ok and (not made_from or label.out.strip() == made_from)


def image_id(ctx: Context, image: str) -> str:
    """The identity of an image; it changes when the image is made anew."""
    return ctx.sh.run("docker", "image", "inspect", image, "--format", "{{.Id}}").out.strip()


def changes(
    made_from: str = "",
    entrypoint: Iterable[str] = (),
    env: Mapping[str, str] | None = None,
    user: str = "",
    workdir: str = "",
) -> list[str]:
    """Options for `docker import` and `docker commit`. A command left from the making is always removed."""
    quoted = ",".join(f'"{part}"' for part in entrypoint)
    lines = [f"ENTRYPOINT [{quoted}]", "CMD []"]
    lines += [f"ENV {key}={value}" for key, value in (env or {}).items()]
    lines += [f"USER {user}"] if user else []
    lines += [f"WORKDIR {workdir}"] if workdir else []
    lines += [f"LABEL {LABEL}={made_from}"] if made_from else []
    return [word for line in lines for word in ("--change", line)]


def import_files(ctx: Context, image: str, files: Mapping[str, Path], options: list[str]) -> None:
    """Makes an image of nothing but these files, given by their place in it."""
    with tempfile.TemporaryDirectory(dir=scratch(ctx)) as folder:
        archive = Path(folder) / "root.tar"
        with tarfile.open(archive, "w") as tar:
            for place, file in files.items():
                entry = tar.gettarinfo(file, arcname=place.lstrip("/"))
                entry.mode, entry.uid, entry.gid, entry.uname, entry.gname = 0o755, 0, 0, "root", "root"
                with file.open("rb") as stream:
                    tar.addfile(entry, stream)
        with replacing(ctx, image):
            ctx.sh.run("docker", "import", *options, archive, image, timeout=300)


@dataclass
class Build:
    """A container that becomes an image; it is gone at the end, however that comes."""

    ctx: Context
    base: str
    privileged: bool = False
    # A commit cannot set it, but keeps the container's.
    stop_signal: str = ""
    name: str = field(default_factory=lambda: f"{_BUILD}{uuid.uuid4().hex[:8]}")

    def __enter__(self) -> Build:
        flags = ["--privileged", "--security-opt", "seccomp=unconfined"] if self.privileged else []
        flags += ["--stop-signal", self.stop_signal] if self.stop_signal else []
        self.ctx.sh.run(
            "docker", "run", "--detach", "--init", "--name", self.name,
            # The host's network, because only that may reach the packages.
            "--network", "host", *flags, "--user", "0", "--entrypoint", "sleep", self.base, "infinity",
        )  # fmt: skip
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.ctx.sh.run("docker", "rm", "--force", "--volumes", self.name, check=False)

    def run(self, script: str, env: Mapping[str, str] | None = None, timeout: float = 900, hint: str = "") -> str:
        """Runs a shell script in the container. The environment does not get into the image."""
        given = [word for key, value in (env or {}).items() for word in ("--env", f"{key}={value}")]
        return self.ctx.sh.run(
            "docker", "exec", *given, self.name, "sh", "-euc", script, timeout=timeout, next_step=hint
        ).out

    def install(self, *packages: str) -> None:
        """Installs Debian packages and removes what only the installation needed."""
        self.run(
            "apt-get update && apt-get install -y --no-install-recommends " + " ".join(packages)
            + " && apt-get clean && rm -rf /var/lib/apt/lists/* /var/log/* /var/cache/debconf/*"
            " /usr/share/doc/* /usr/share/man/* /usr/share/locale/*",
            env={"DEBIAN_FRONTEND": "noninteractive"},
            hint="see that this machine reaches its Debian packages (`apt-get update`), then run this command again",
        )  # fmt: skip

    def copy(self, source: Path, place: str) -> None:
        """Copies a file, or what is in a folder, into the container; it belongs to root there."""
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            if source.is_dir():
                for file in sorted(source.rglob("*")):
                    _add(tar, file, f"{place}/{file.relative_to(source)}")
            else:
                _add(tar, source, place)
        with tempfile.NamedTemporaryFile(dir=scratch(self.ctx), suffix=".tar") as draft:
            draft.write(archive.getvalue())
            draft.flush()
            self.ctx.sh.pipe(["cat", draft.name], ["docker", "cp", "-", f"{self.name}:/"])

    def write(self, place: str, text: str, executable: bool = False) -> None:
        """Writes a file in the container."""
        with tempfile.TemporaryDirectory(dir=scratch(self.ctx)) as folder:
            file = Path(folder) / "file"
            file.write_text(text)
            file.chmod(0o755 if executable else 0o644)
            self.copy(file, place)

    def commit(self, image: str, options: list[str]) -> None:
        """Makes the image."""
        with replacing(self.ctx, image):
            self.ctx.sh.run("docker", "commit", *options, self.name, image, timeout=900)


def clear_left_overs(ctx: Context) -> None:
    """Removes the containers of builds that were killed."""
    left = ctx.sh.run("docker", "ps", "--all", "--quiet", "--filter", f"name=^{_BUILD}").out.split()
    if left:
        ctx.sh.run("docker", "rm", "--force", "--volumes", *left, check=False)


def remove_others(ctx: Context, image: str) -> None:
    """Removes other versions of an image, apart from those that a container uses."""
    repository, _, tag = image.rpartition(":")
    tags = ctx.sh.run("docker", "image", "ls", repository, "--format", "{{.Tag}}").out.split()
    for other in tags:
        if other != tag:
            ctx.sh.run("docker", "image", "rm", f"{repository}:{other}", check=False)


@contextlib.contextmanager
def replacing(ctx: Context, image: str) -> Iterator[None]:
    """Lets no nameless image stay behind when a name goes to a new one."""
    old = ctx.sh.run("docker", "image", "ls", "--quiet", "--no-trunc", image).out.strip()
    yield
    if old and old != image_id(ctx, image):
        ctx.sh.run("docker", "image", "rm", old, check=False)


def _add(tar: tarfile.TarFile, file: Path, place: str) -> None:
    entry = tar.gettarinfo(file, arcname=place.lstrip("/"))
    entry.uid, entry.gid, entry.uname, entry.gname = 0, 0, "root", "root"
    # A module cache is read-only, an image need not be.
    entry.mode |= 0o200
    if entry.isreg():
        with file.open("rb") as stream:
            tar.addfile(entry, stream)
    else:
        tar.addfile(entry)


def scratch(ctx: Context) -> Path:
    """A folder for files that do not last."""
    folder = ctx.home / "build"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
