"""The image in which every program is the probe: small, so that a cluster has it in seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.cluster import container, images, kind
from tests.cluster.container import Build
from tests.cluster.context import Context

IMAGE: Final = "localhost/trainjob-probe:1"
PROBE: Final = Path(__file__).with_name("probe.py")
_PACKAGES: Final = ("python3-minimal",)
_BIN: Final = "/usr/local/bin"
# Each name that a command of the shapes calls; `bash` gives real scripts to the real one.
PROGRAMS: Final = (
    "python", "python3", "torchrun", "accelerate", "pip", "pip3", "git", "entrypoint", "bash", "ship", "etcd",
    "demo-graph-compile", "demo-tracker",
)  # fmt: skip
_USER: Final = "1000:1000"


def ensure(ctx: Context) -> str:
    """Makes the image if there is none of this recipe and puts it into every node; returns its name."""
    recipe = container.recipe(PROBE.read_text(encoding="utf-8"), _PACKAGES, PROGRAMS, _BIN, _USER, ctx.host.arch)
    if not container.has(ctx, IMAGE, recipe):
        debian = images.choose(ctx, "auto").debian()
        with ctx.progress.step("image of the probe"), Build(ctx, debian) as build:
            build.install(*_PACKAGES)
            build.write(f"{_BIN}/probe", PROBE.read_text(encoding="utf-8"), executable=True)
            build.run(f"cd {_BIN} && for name in {' '.join(PROGRAMS)}; do ln -sf probe $name; done")
            build.run("useradd --uid 1000 --create-home trainer; mkdir -p /workspace; chmod 1777 /workspace")
            options = container.changes(recipe, [f"{_BIN}/entrypoint"], user=_USER, workdir="/workspace")
            build.commit(IMAGE, options)
    kind.load(ctx, IMAGE)
    return IMAGE
