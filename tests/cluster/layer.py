"""Loads an image into the nodes by its last layer alone, where the nodes have the image that it stands on.

`docker save` and `ctr import` read and write every layer of an image, also those that a node has: minutes for
a training image, of which a few megabytes are new. An archive with the new layer and a manifest that names the
old ones by digest does: containerd unpacks only layers whose snapshot it lacks (client.Image.Unpack of
containerd 1.6 to 2.1; the nodes' own images rest on the same, their layers are discarded once unpacked).
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from . import container, kind
from .context import Context
from .problems import ClusterError

_LAYER: Final = "application/vnd.oci.image.layer.v1.tar+gzip"
_MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
_INDEX: Final = "application/vnd.oci.image.index.v1+json"
# Of the engine's description of an image: what a container gets from it.
_SETTINGS: Final = ("Cmd", "Entrypoint", "Env", "Labels", "User", "WorkingDir")


def load(ctx: Context, image: str, below: str, layer: Path) -> bool:
    """Puts an image into every node: `below` as a whole where it is missing, `layer` (a tar file) on top.

    False when all nodes have the image already.
    """
    kind.load(ctx, below)
    nodes = kind.without(ctx, image)
    settings = _settings(ctx, image)

    def one(node: str) -> None:
        manifest, config = _described(ctx, node, below)
        with tempfile.TemporaryDirectory(dir=container.scratch(ctx)) as folder:
            archive = Path(folder) / "image.tar"
            archive.write_bytes(pack(image, manifest, config, settings, layer.read_bytes()))
            kind.take(ctx, node, image, ["cat", archive])

    with ThreadPoolExecutor(max_workers=4) as pool:
        list(pool.map(one, nodes))
    return bool(nodes)


def pack(
    image: str, manifest: Mapping[str, Any], config: Mapping[str, Any], settings: Mapping[str, Any], layer: bytes
) -> bytes:
    """An OCI archive of an image: the layers of `manifest` by name only, one more as a whole."""
    packed = gzip.compress(layer, mtime=0)
    rootfs = {"type": "layers", "diff_ids": [*config["rootfs"]["diff_ids"], _digest(layer)]}
    upper = {
        **{key: config[key] for key in ("architecture", "os") if key in config},
        "config": {key: settings[key] for key in _SETTINGS if settings.get(key)},
        "rootfs": rootfs,
    }
    described = json.dumps(upper).encode()
    whole = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": _entry("application/vnd.oci.image.config.v1+json", described),
        "layers": [*manifest["layers"], _entry(_LAYER, packed)],
    }
    text = json.dumps(whole).encode()
    top = {**_entry(_MANIFEST, text), "annotations": {"io.containerd.image.name": image}}
    index = json.dumps({"schemaVersion": 2, "mediaType": _INDEX, "manifests": [top]}).encode()
    files = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": index}
    files |= {f"blobs/sha256/{_digest(blob)[7:]}": blob for blob in (text, described, packed)}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, blob in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(blob)
            tar.addfile(entry, io.BytesIO(blob))
    return out.getvalue()


def _settings(ctx: Context, image: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        ctx.sh.run("docker", "image", "inspect", image, "--format", "{{json .Config}}").out
    )
    return found


def _described(ctx: Context, node: str, image: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Manifest and configuration of an image that a node has."""
    ctr = ("docker", "exec", node, "ctr", "--namespace=k8s.io")
    listed = ctx.sh.run(*ctr, "images", "ls", f"name=={image}").out.split()
    digest = next((word for word in listed if word.startswith("sha256:")), "")
    if not digest:
        raise ClusterError(f"the node {node} has no image {image}", "run `python -m tests.cluster load` again")

    def blob(name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(ctx.sh.run(*ctr, "content", "get", name).out)
        return found

    manifest = blob(digest)
    if "manifests" in manifest:
        manifest = blob(manifest["manifests"][0]["digest"])
    return manifest, blob(manifest["config"]["digest"])


def _entry(kind_: str, blob: bytes) -> dict[str, Any]:
    return {"mediaType": kind_, "digest": _digest(blob), "size": len(blob)}


def _digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"
