"""The kind node image of the source route: Debian, kind's own files, programs built from modules.

Kubernetes' images lie in it, so that a cluster comes up without pulling anything.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from . import binaries, container, manifests
from .container import Build
from .context import Context
from .host import Host
from .problems import ClusterError
from .versions import (
    HELPER_IMAGE,
    INIT_IMAGE,
    KIND_MODULE,
    KUBERNETES,
    NODE_PROGRAMS,
    PAUSE_IMAGE,
    PRELOADED,
    STORAGE,
    STORAGE_MANAGER,
)

_RUNC: Final = "runc-without-sys-resource"
_RUNC_IN_NODE: Final = f"/usr/local/sbin/{_RUNC}"
# What kind's own node has, as Debian names it; catatonit brings the pause program.
_PACKAGES: Final = (
    "systemd", "dbus", "conntrack", "iptables", "nftables", "iproute2", "ethtool", "util-linux", "mount", "kmod",
    "libseccomp2", "pigz", "e2fsprogs", "bash", "ca-certificates", "curl", "jq", "procps", "containerd", "runc",
    "socat", "containernetworking-plugins", "catatonit",
)  # fmt: skip
# A container is no machine: these units would wait for hardware, or set up what docker has set up.
_TRIM: Final = """
find /lib/systemd/system/sysinit.target.wants/ -name systemd-tmpfiles-setup.service -delete
rm -f /lib/systemd/system/multi-user.target.wants/* /etc/systemd/system/*.wants/* \
      /lib/systemd/system/local-fs.target.wants/* /lib/systemd/system/sockets.target.wants/*udev* \
      /lib/systemd/system/sockets.target.wants/*initctl* /lib/systemd/system/basic.target.wants/*
echo ReadKMsg=no >> /etc/systemd/journald.conf
ln -sf /usr/lib/systemd/systemd /sbin/init
"""
# kind's units look for containerd in /usr/local/bin and for the network plug-ins in /opt/cni/bin.
_SETTLE: Final = """
chmod 755 /usr/local/bin/* /kind /kind/bin /kind/bin/*
for program in containerd ctr containerd-shim-runc-v2; do ln -sf /usr/bin/$program /usr/local/bin/$program; done
mkdir -p /opt/cni /etc/kubernetes/manifests /kind/manifests
ln -sfn /usr/lib/cni /opt/cni/bin
systemctl enable kubelet.service containerd.service undo-mount-hacks.service
systemctl mask systemd-binfmt.service
ctr oci spec | jq '.hooks.createContainer += [{"path": "/kind/bin/mount-product-files.sh"}] | del(.process.rlimits)' \
    > /etc/containerd/cri-base.json
"""


def ensure(ctx: Context, debian: str) -> str:
    """Makes the node image if there is none of this recipe; returns its name."""
    recipe = container.recipe(
        KUBERNETES, KIND_MODULE, NODE_PROGRAMS, PRELOADED, PAUSE_IMAGE, STORAGE_MANAGER, _PACKAGES, _TRIM, _SETTLE,
        ctx.host.variant, manifests.STORAGE_PATCHES, debian,
        # And how it is made.
        Path(__file__).read_text(), Path(__file__).with_name(_RUNC).read_text(),
    )  # fmt: skip
    image = f"localhost/trainjob-node:{KUBERNETES}-{recipe}"
    if container.has(ctx, image, recipe):
        return image
    programs = binaries.provide(ctx, [*NODE_PROGRAMS, STORAGE])
    with ctx.progress.step("node image"):
        kind = binaries.module_folder(ctx, KIND_MODULE) / "images" / "base" / "files"
        storage = manifests.storage(ctx, programs["kubectl"])
        with Build(ctx, debian, privileged=True, stop_signal="SIGRTMIN+3") as build:
            with ctx.progress.step("Debian packages of the node"):
                # Before kind's files: the package manager stops at a configuration that is there already.
                build.install(*_PACKAGES)
                build.run(_TRIM)
            build.copy(_without_licences(ctx, kind), "")
            build.run(_SETTLE)
            config = (kind / "etc" / "containerd" / "config.toml").read_text()
            build.write("/etc/containerd/config.toml", containerd_config(config, ctx.host))
            build.write(_RUNC_IN_NODE, Path(__file__).with_name(_RUNC).read_text(), executable=True)
            build.write("/kind/manifests/default-storage.yaml", storage)
            build.write("/kind/version", KUBERNETES + "\n")
            for name in ("kubelet", "kubeadm", "kubectl"):
                build.copy(programs[name], f"/usr/bin/{name}")
            with ctx.progress.step("images of Kubernetes"):
                images = _kubernetes_images(ctx, build, programs, debian)
                _preload(ctx, build, images)
            build.commit(
                image,
                container.changes(
                    recipe,
                    entrypoint=("/usr/local/bin/entrypoint", "/sbin/init"),
                    env={"container": "docker"},
                ),
            )
    container.remove_others(ctx, image)
    return image


def containerd_config(text: str, host: Host) -> str:
    """kind's containerd configuration, changed where this machine needs it."""
    text = _edit(text, r'(?m)^(\s*sandbox_image = )".*"$', rf'\1"{PAUSE_IMAGE}"')
    if host.cgroup_v1:
        text = _edit(text, r"(?m)^(\s*SystemdCgroup = )true$", r"\1false")
    if not host.sys_resource:
        # Nor can an oom score be lowered without the capability.
        text = _edit(text, r"(?m)^(\s*restrict_oom_score_adj = )false$", r"\1true")
        text = _edit(text, r"(?m)^(\s*)(SystemdCgroup = \w+)$", rf'\1\2\n\1BinaryName = "{_RUNC_IN_NODE}"')
    return text


def _edit(text: str, pattern: str, replacement: str) -> str:
    changed, count = re.subn(pattern, replacement, text)
    if not count:
        raise ClusterError(
            f"kind's containerd configuration has no line like {pattern}",
            f"kind {KIND_MODULE.version} differs from the one that this harness was written for: look at its"
            " images/base/files/etc/containerd/config.toml and change nodeimage.py",
        )
    return changed


def _without_licences(ctx: Context, files: Path) -> Path:
    """kind's files as they go into the node."""
    copy = ctx.home / "build" / "kind-files"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(files, copy, ignore=shutil.ignore_patterns("LICENSES", "clean-install", "*fuse-overlayfs*"))
    return copy


def _kubernetes_images(ctx: Context, build: Build, programs: Mapping[str, Path], debian: str) -> list[str]:
    """Makes the images that kubeadm and kind's storage expect; returns their names."""
    names = []
    for image in PRELOADED:
        made, place = container.made_here(image.name), f"/usr/local/bin/{image.program}"
        options = container.changes(
            entrypoint=(place,) if image.entrypoint else (),
            env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
        )
        if image.packages:
            with Build(ctx, debian) as proxy:
                proxy.install(*image.packages)
                proxy.copy(programs[image.program], place)
                proxy.commit(made, options)
        else:
            container.import_files(ctx, made, {place: programs[image.program]}, options)
        names.append(image.name)
    pause = ctx.home / "build" / "catatonit"
    ctx.sh.run("docker", "cp", "--follow-link", f"{build.name}:/usr/bin/catatonit", pause)
    # Asked to be a pause container, it sleeps and collects dead children.
    made = container.made_here(PAUSE_IMAGE)
    container.import_files(ctx, made, {"/pause": pause}, container.changes(entrypoint=("/pause", "-P")))
    place = STORAGE_MANAGER.entrypoint
    container.import_files(
        ctx, container.made_here(STORAGE_MANAGER.image), {place: programs[STORAGE.name]},
        container.changes(entrypoint=(place,), env={"PATH": "/usr/bin"}),
    )  # fmt: skip
    helpers(ctx, debian)
    return [*names, PAUSE_IMAGE, STORAGE_MANAGER.image, HELPER_IMAGE, INIT_IMAGE]


def helpers(ctx: Context, debian: str) -> None:
    """Stand-ins for the small public images that pods of the stack start.

    The v1 operator's init container loops over `nslookup NAME` until it exits with 0. Programs of that
    name fail when one of the search domains does not know the name; asking as the C library does is right.
    """
    with Build(ctx, debian) as build:
        build.write("/usr/local/bin/nslookup", '#!/bin/sh\nexec getent hosts "$1"\n', executable=True)
        for image in (INIT_IMAGE, HELPER_IMAGE):
            build.commit(container.made_here(image), container.changes())


def _preload(ctx: Context, build: Build, images: list[str]) -> None:
    """Puts the images into the node's own store, under the names that Kubernetes asks for."""
    made = [container.made_here(image) for image in images]
    ctr = "ctr --namespace=k8s.io images"
    ctx.sh.run("docker", "exec", "--detach", build.name, "containerd")
    build.run("for i in $(seq 100); do ctr version > /dev/null 2>&1 && exit; sleep 0.2; done; exit 1", timeout=60)
    take = f"{ctr} import --label=io.cri-containerd.pinned=pinned --all-platforms --no-unpack -"
    ctx.sh.pipe(["docker", "save", *made], ["docker", "exec", "--interactive", build.name, *take.split()])
    build.run("".join(f"{ctr} tag {here} {there}\n{ctr} rm {here}\n" for here, there in zip(made, images, strict=True)))
    there = build.run(f"{ctr} ls --quiet").split()
    # Containerd has to end in order: its database is part of the image.
    build.run("pkill containerd; while pgrep -x containerd > /dev/null; do sleep 0.1; done", timeout=60)
    if missing := [image for image in images if image not in there]:
        raise ClusterError(f"the node image lacks {', '.join(missing)}", f"see {ctx.sh.log}", "\n".join(there))
    # From here on they are in the node image only.
    ctx.sh.run("docker", "image", "rm", *made, check=False)
