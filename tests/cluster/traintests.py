"""Runs tests/train in the training image: `python -m tests.cluster train-tests [pytest's arguments]`.

They need the image's libraries alone: the checkout is mounted, so they see the code as it is now. pytest is
brought along, it is no part of the image.
"""

from __future__ import annotations

import contextlib
import platform
import shutil
import subprocess
import sys
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from . import container, engine, images, trainimage
from .context import Context

_REQUIREMENTS: Final = trainimage.ROOT / trainimage.FOLDER / "test-requirements.txt"
_TESTS: Final = "tests/train"
_CPUS: Final = "2"
_PYTHON: Final = "3.13"


def run(ctx: Context, arguments: Sequence[str]) -> int:
    """Runs the tests, and returns pytest's exit status. Starts docker and makes the image if need be."""
    with ctx.lock():
        started = engine.ensure(ctx)
        image = trainimage.libraries(ctx, images.choose(ctx, "auto"))
        packages = _packages(ctx)
    try:
        return _run(ctx, command(image, packages, f"trainjob-train-tests-{uuid.uuid4().hex[:8]}", arguments))
    finally:
        if started:
            engine.stop_if_ours(ctx)


def command(image: str, packages: Path, name: str, arguments: Sequence[str]) -> list[str]:
    """The command line: restricted as in a cluster, everything of this machine read-only."""
    chosen = any(not word.startswith("-") and "tests" in word for word in arguments)
    return [
        # torchrun looks its host's name up; without a network only this one is found.
        "docker", "run", "--rm", "--init", "--name", name, "--hostname", "localhost", *trainimage.RESTRICTED,
        "--tmpfs", "/home/trainer:mode=0777", "--shm-size", "1g", "--cpus", _CPUS,
        "--volume", f"{trainimage.ROOT}:/src:ro", "--volume", f"{packages}:/packages:ro", "--workdir", "/src",
        "--env", "PYTHONPATH=/src/src:/packages", "--env", "OMP_NUM_THREADS=1",
        image, "python", "-m", "pytest", "-p", "no:cacheprovider", *([] if chosen else [_TESTS]), *arguments,
    ]  # fmt: skip


def _run(ctx: Context, words: list[str]) -> int:
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, env=ctx.sh.env)
    try:
        return process.wait()
    except BaseException:
        # Docker has passed the interrupt on; pytest gets a moment to say where it was.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=5)
        ctx.sh.run("docker", "rm", "--force", words[words.index("--name") + 1], check=False)
        process.wait()
        raise


def _packages(ctx: Context) -> Path:
    """The folder with pytest and what it needs, for the Python of the image."""
    folder = ctx.home / "train-tests" / container.recipe(_REQUIREMENTS.read_text(), ctx.host.arch)
    if folder.is_dir():
        return folder
    shutil.rmtree(folder.parent, ignore_errors=True)
    draft = folder.with_name(folder.name + ".new")
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(ctx.host.arch, platform.machine())
    with ctx.progress.step("pytest for the training image"):
        ctx.sh.run(
            sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile",
            "--no-deps", "--require-hashes", "--only-binary=:all:", "--python-version", _PYTHON,
            *(word for tag in ("2_17", "2_28", "2_34") for word in ("--platform", f"manylinux_{tag}_{machine}")),
            "--target", draft, "--requirement", _REQUIREMENTS, timeout=600,
            next_step="see that this machine reaches its Python package index, then run the same command again",
        )  # fmt: skip
    draft.rename(folder)
    return folder
