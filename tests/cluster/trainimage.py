"""The training image of images/trainer, in its form for CPUs.

Two images: the libraries, which take minutes and 4 GB, and trainjob on top, which takes seconds. Each is
made again only when something that goes into it has changed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from . import container, engine, layer
from .context import Context
from .host import require_disk
from .images import Source
from .problems import ClusterError

# The name that the overlays for clusters without GPUs write.
IMAGE: Final = "localhost/trainjob-cpu-stand-in:1"
LIBRARIES: Final = "localhost/trainjob-training-libraries:1"
# Holds trainjob's layer, by itself, in /layer.
WHEEL: Final = "localhost/trainjob-wheel:1"
INDEX_VARIABLE: Final = "TRAINJOB_TORCH_INDEX"

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = "images/trainer"
_FILE: Final = f"{FOLDER}/Containerfile"
# The second part of the Containerfile needs nothing of the first but the image of the libraries.
_SEAM: Final = "# trainjob itself:"
_SOURCES: Final = ("pyproject.toml", "README.md", "LICENSE", "runtimes", "src")
_BOTH: Final = (f"{FOLDER}/install.py", f"{FOLDER}/build-requirements.txt")
_LIBRARIES_FROM: Final = (*_BOTH, f"{FOLDER}/requirements.txt")
_TRAINER_FROM: Final = (*_BOTH, f"{FOLDER}/check.py", *_SOURCES)
_INDEXES: Final = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
# Known to every builder, and left out of the image's history.
_PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
_LEFT: Final = "label=dev.trainjob.stage=build"
_BUILD_SECONDS: Final = 3600
# As OpenShift runs a pod: a user that the image does not know, in group 0. A read-only root shows what it writes to.
RESTRICTED: Final = (
    "--network", "none", "--read-only", "--tmpfs", "/tmp:exec", "--user", "1000740000:0", "--cap-drop", "ALL",
    "--security-opt", "no-new-privileges",
)  # fmt: skip


def ensure(ctx: Context, source: Source) -> str:
    """Makes the image if there is none of this recipe; returns its name."""
    _, upper = parts((ROOT / _FILE).read_text())
    recipe = container.recipe(upper, _below(ctx, source), *_contents(_TRAINER_FROM))
    if container.has(ctx, IMAGE, recipe) and container.has(ctx, WHEEL, recipe):
        return IMAGE
    with ctx.progress.step("training image"), _folder() as folder:
        on = {"LIBRARIES": libraries(ctx, source)}
        with ctx.progress.step("trainjob in the training image"):
            _build(ctx, folder, upper, WHEEL, "wheel", recipe, on)
            _build(ctx, folder, upper, IMAGE, "trainer", recipe, on)
        with ctx.progress.step("try the training image"):
            try:
                check(ctx, IMAGE)
            except BaseException:
                # Else the next call would find an image of this recipe, and take it.
                ctx.sh.run("docker", "image", "rm", "--no-prune", IMAGE, check=False)
                raise
    return IMAGE


def libraries(ctx: Context, source: Source) -> str:
    """Makes the image of the libraries if there is none of this recipe; returns its name."""
    recipe = _below(ctx, source)
    if container.has(ctx, LIBRARIES, recipe):
        return LIBRARIES
    require_disk(engine.data_folder(ctx))
    lower, _ = parts((ROOT / _FILE).read_text())
    args = {"BASE": source.debian(), "FORM": "cpu", "TORCH_INDEX": os.environ.get(INDEX_VARIABLE, "")}
    with ctx.progress.step("libraries of the training image"), _folder() as folder:
        _build(ctx, folder, lower, LIBRARIES, "libraries", recipe, args)
    return LIBRARIES


def load(ctx: Context, source: Source) -> None:
    """Makes the image and puts it into the nodes: after a change of trainjob its layer alone."""
    ensure(ctx, source)
    with ctx.progress.step(f"load {IMAGE}"), tempfile.TemporaryDirectory(dir=container.scratch(ctx)) as folder:
        top = Path(folder) / "layer.tar"
        # From its own image: docker would read all 4 GB of the other to get at the last layer.
        tar = ("tar", "--directory", "/layer", "--create", "--sort=name", "--owner=0", "--group=0", "opt")
        ctx.sh.pipe(["docker", "run", "--rm", "--network", "none", WHEEL, *tar], ["dd", f"of={top}", "status=none"])
        if not layer.load(ctx, IMAGE, LIBRARIES, top):
            ctx.progress.say("the nodes have it already")


def _below(ctx: Context, source: Source) -> str:
    """The recipe of the libraries."""
    lower, _ = parts((ROOT / _FILE).read_text())
    index = os.environ.get(INDEX_VARIABLE, "")
    return container.recipe(lower, source.debian(), index, ctx.host.arch, *_contents(_LIBRARIES_FROM))


def parts(containerfile: str) -> tuple[str, str]:
    """The Containerfile up to the libraries, and the rest, which starts from an image of them.

    docker's old builder goes through every stage of a file: it would make the libraries anew for each change.
    """
    lower, seam, upper = containerfile.partition(_SEAM)
    if not seam:
        raise ClusterError(f"{_FILE} has no line {_SEAM!r}", "put it before the stages that build trainjob itself")
    return lower, f"ARG LIBRARIES\n{seam}{upper}"


def check(ctx: Context, image: str) -> str:
    """Runs the image's own check as the strictest cluster would; returns what it found in it."""
    return ctx.sh.run(
        "docker", "run", "--rm", *RESTRICTED, image, "python", "/opt/trainer/check.py",
        timeout=900, next_step="images/trainer/check.py found these faults: change images/trainer, then run this again",
    ).out  # fmt: skip


def _build(ctx: Context, folder: Path, text: str, image: str, stage: str, recipe: str, args: Mapping[str, str]) -> None:
    file = folder / FOLDER / f"{stage}.Containerfile"
    file.write_text(text)
    # By name only, the values from the environment: an address may hold a password, and commands are logged.
    index = next((os.environ[name] for name in _INDEXES if os.environ.get(name)), "")
    named = {"INDEX": index, **{name: os.environ[name] for name in _PROXIES if name in os.environ}}
    given = [word for name, value in args.items() for word in ("--build-arg", f"{name}={value}")]
    given += [word for name in named for word in ("--build-arg", name)]
    with container.replacing(ctx, image):
        ctx.sh.run(
            "docker", "build", "--file", file, "--target", stage, "--tag", image, *given,
            # The host's network, because only that may reach the packages.
            "--network", "host", "--force-rm", "--label", f"{container.LABEL}={recipe}", folder,
            env=named, timeout=_BUILD_SECONDS,
            next_step="see that this machine reaches its Debian and Python packages, then run this command again",
        )  # fmt: skip
    # Docker's old builder leaves each stage as an image without a name: 4 GB.
    left = ctx.sh.run("docker", "image", "ls", "--quiet", "--filter", "dangling=true", "--filter", _LEFT).out.split()
    for identity in dict.fromkeys(left):
        ctx.sh.run("docker", "image", "rm", identity, check=False)


@contextmanager
def _folder() -> Iterator[Path]:
    """What the builder gets to see: the sources, and the certificates that this machine trusts."""
    with tempfile.TemporaryDirectory(prefix="trainjob-image-") as name:
        folder = Path(name)
        for wanted in (FOLDER, *_SOURCES):
            place = folder / wanted
            place.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / wanted).is_dir():
                shutil.copytree(ROOT / wanted, place, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / wanted, place)
        bundle = Path(os.environ.get("SSL_CERT_FILE") or "/etc/ssl/certs/ca-certificates.crt")
        if bundle.is_file():
            shutil.copy(bundle, folder / FOLDER / "certificates" / "host.crt")
        yield folder


def _contents(names: tuple[str, ...]) -> Iterator[str]:
    """Names and contents of the files below these, in order."""
    for name in names:
        root = ROOT / name
        for file in sorted(root.rglob("*")) if root.is_dir() else [root]:
            if file.is_file() and "__pycache__" not in file.parts:
                yield f"{file.relative_to(ROOT)}\0{file.read_bytes().hex()}"
