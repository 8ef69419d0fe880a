"""The manifests of the stack: rendered from the projects' own module folders, changed by small overlays."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any, Final

from . import binaries
from .context import Context
from .problems import ClusterError
from .versions import HELPER_IMAGE, STORAGE_MANAGER, STORAGE_MODULE, Manager, Module

# A released manifest that Trainer's overlay names by its address.
_RELEASE: Final = re.compile(r"(?m)^(\s*-\s+)https://\S+/jobset/\S+\.yaml\s*$")

# As kind's own node image does it: default class, a folder below /var, and it runs on the control plane.
STORAGE_PATCHES: Final[list[dict[str, Any]]] = [
    {
        "target": {"kind": "StorageClass"},
        "patch": json.dumps(
            [
                {"op": "replace", "path": "/metadata/name", "value": "standard"},
                {
                    "op": "add",
                    "path": "/metadata/annotations",
                    "value": {"storageclass.kubernetes.io/is-default-class": "true"},
                },
            ]
        ),
        "options": {"allowNameChange": True},
    },
    {
        "target": {"kind": "Deployment"},
        "patch": json.dumps(
            [
                {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": STORAGE_MANAGER.image},
                {"op": "add", "path": "/spec/template/spec/tolerations", "value": [{"operator": "Exists"}]},
            ]
        ),
    },
]

# Kueue's API of pending workloads. Served by a Kueue that was built without its version (`go install` does
# that) it answers "not found", the API server's discovery fails for it, and no namespace can be deleted.
WITHOUT_VISIBILITY: Final[dict[str, Any]] = {
    "target": {"kind": "APIService"},
    "patch": json.dumps(
        {
            "$patch": "delete",
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": "any"},
        }
    ),
}


def manager_overlay(resource: str, images: list[tuple[str, str]], files: list[str] | None = None) -> dict[str, Any]:
    """A kustomization over `resource` that fits a small cluster which pulls nothing.

    `images` are pairs of the name that the manifests use and the image that is there. CPU requests of
    the managers shrink: as shipped, three of them ask for more than a laptop's cores leave over.
    """
    return {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [resource, *(files or [])],
        "images": [_image(name, image) for name, image in images],
        "patches": [
            {
                "target": {"kind": "Deployment"},
                "patch": json.dumps(
                    [
                        {
                            "op": "add",
                            "path": "/spec/template/spec/containers/0/imagePullPolicy",
                            "value": "IfNotPresent",
                        },
                        {
                            "op": "add",
                            "path": "/spec/template/spec/containers/0/resources",
                            "value": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "1Gi"}},
                        },
                    ]
                ),
            }
        ],
    }


def local_jobset(kustomization: str, file: str) -> str:
    """Trainer's kustomization of JobSet, with a local file in place of the released manifest."""
    changed, count = _RELEASE.subn(rf"\g<1>{file}", kustomization)
    if count != 1:
        raise ClusterError(
            f"Trainer's third-party/jobset names {count} released JobSet manifests, not one",
            "this Trainer differs from those that the harness was written for: change manifests.py",
        )
    return changed


def trainer(ctx: Context, kubectl: Path, manager: Manager, jobset: Manager) -> str:
    """Trainer with JobSet in its namespace."""
    jobset_copy = _copy(ctx, jobset.program.module, "config")
    released = _kustomize(ctx, kubectl, jobset_copy / "config" / "default")
    copy = _copy(ctx, manager.program.module, "manifests")
    third_party = copy / "manifests" / "third-party" / "jobset"
    (third_party / "jobset.yaml").write_text(released)
    kustomization = third_party / "kustomization.yaml"
    kustomization.write_text(local_jobset(kustomization.read_text(), "jobset.yaml"))
    images = [(image, jobset.image) for image in sorted(_images(released))]
    images += [(jobset.image.rpartition(":")[0], jobset.image), (manager.image.rpartition(":")[0], manager.image)]
    return _overlay(ctx, kubectl, copy, manager_overlay("../manifests/overlays/manager", images))


def kueue(ctx: Context, kubectl: Path, manager: Manager) -> str:
    """Kueue with its default configuration, which knows TrainJobs and PyTorchJobs."""
    copy = _copy(ctx, manager.program.module, "config")
    overlay = _renaming(ctx, kubectl, copy, "config/default", manager)
    overlay["patches"].append(WITHOUT_VISIBILITY)
    return _overlay(ctx, kubectl, copy, overlay)


def operator(ctx: Context, kubectl: Path, manager: Manager) -> str:
    """The v1 Training Operator."""
    copy = _copy(ctx, manager.program.module, "manifests")
    return _overlay(ctx, kubectl, copy, _renaming(ctx, kubectl, copy, "manifests/overlays/standalone", manager))


def storage(ctx: Context, kubectl: Path) -> str:
    """The storage class `standard` with its provisioner, for kind to install."""
    copy = _copy(ctx, STORAGE_MODULE, "deploy")
    file = copy / "deploy" / "local-path-storage.yaml"
    text = file.read_text()
    text = text.replace("/opt/local-path-provisioner", "/var/local-path-provisioner")
    file.write_text(re.sub(r"image: busybox\b\S*", f"image: {HELPER_IMAGE}", text))
    return _overlay(
        ctx, kubectl, copy,
        {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": ["../deploy"],
            "patches": STORAGE_PATCHES,
        },
    )  # fmt: skip


def _renaming(ctx: Context, kubectl: Path, copy: Path, folder: str, manager: Manager) -> dict[str, Any]:
    used = sorted(_images(_kustomize(ctx, kubectl, copy / folder)))
    return manager_overlay(f"../{folder}", [(image, manager.image) for image in used])


def _images(rendered: str) -> set[str]:
    """Names, without tag, of the images in rendered manifests."""
    return {match[1] for match in re.finditer(r"(?m)^\s*(?:- )?image: \"?([^\s\"]+?)(?::[\w.-]+)?\"?$", rendered)}


def _image(name: str, image: str) -> dict[str, str]:
    new, _, tag = image.rpartition(":")
    return {"name": name, "newName": new, "newTag": tag}


def _copy(ctx: Context, module: Module, folder: str) -> Path:
    """A writable copy of a module's manifests."""
    target = ctx.home / "build" / "manifests" / re.sub(r"\W+", "-", module.at)
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(binaries.module_folder(ctx, module) / folder, target / folder)
    # The module cache may be read-only.
    for path in (target, *target.rglob("*")):
        path.chmod(path.stat().st_mode | 0o200)
    return target


def _overlay(ctx: Context, kubectl: Path, copy: Path, kustomization: dict[str, Any]) -> str:
    folder = copy / "overlay"
    folder.mkdir()
    (folder / "kustomization.yaml").write_text(json.dumps(kustomization, indent=1))
    return _kustomize(ctx, kubectl, folder)


def _kustomize(ctx: Context, kubectl: Path, folder: Path) -> str:
    # Trainer's third-party folder lies outside the overlay's, which kustomize allows for resources only.
    return ctx.sh.run(kubectl, "kustomize", folder, timeout=180).out
