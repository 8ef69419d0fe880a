"""Images get into the nodes once, and after a change by their last layer alone."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import kind, layer
from tests.cluster.context import Context
from tests.cluster.shell import Result

BASE_MANIFEST: dict[str, Any] = {
    "config": {"digest": "sha256:c0"},
    "layers": [{"digest": "sha256:aa", "size": 7, "mediaType": "tar"}],
}
BASE_CONFIG: dict[str, Any] = {
    "architecture": "amd64",
    "os": "linux",
    "config": {"Cmd": ["base"]},
    "rootfs": {"diff_ids": ["sha256:aa"]},
}
SETTINGS: dict[str, Any] = {
    "Cmd": ["python"],
    "User": "1000:0",
    "Env": ["A=b"],
    "Entrypoint": None,
    "Hostname": "build",
}


def opened(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {entry.name: (tar.extractfile(entry) or io.BytesIO()).read() for entry in tar}


def test_an_archive_holds_the_new_layer_and_names_the_old_ones() -> None:
    files = opened(layer.pack("localhost/x:1", BASE_MANIFEST, BASE_CONFIG, SETTINGS, b"a tar file"))

    def blob(digest: str) -> bytes:
        content = files[f"blobs/sha256/{digest.removeprefix('sha256:')}"]
        assert f"sha256:{hashlib.sha256(content).hexdigest()}" == digest
        return content

    (top,) = json.loads(files["index.json"])["manifests"]
    assert top["annotations"] == {"io.containerd.image.name": "localhost/x:1"}
    manifest = json.loads(blob(top["digest"]))
    assert manifest["layers"][0] == BASE_MANIFEST["layers"][0]
    assert "blobs/sha256/aa" not in files
    config = json.loads(blob(manifest["config"]["digest"]))
    assert config["config"] == {"Cmd": ["python"], "User": "1000:0", "Env": ["A=b"]}
    assert config["rootfs"]["diff_ids"] == ["sha256:aa", f"sha256:{hashlib.sha256(b'a tar file').hexdigest()}"]
    assert len(manifest["layers"]) == 2
    assert len(blob(manifest["layers"][1]["digest"])) == manifest["layers"][1]["size"]


class Node:
    """A node's container runtime, whose other half replaces the labels of an image once, some time after the import."""

    def __init__(self, delay: int) -> None:
        self.labels: dict[str, dict[str, str]] = {}
        self.delay = delay
        self.imported = 0

    def pipe(self, shell: object, producer: list[str], consumer: list[str], **options: Any) -> None:
        del shell, options
        self.imported += 1
        given = [word.removeprefix("--label=") for word in consumer if word.startswith("--label=")]
        self.labels["docker.io/library/x:1"] = dict(word.split("=") for word in given)
        assert producer == ["docker", "save", "x:1"]

    def run(self, shell: object, *argv: object, **options: Any) -> Result:
        del shell, options
        words = [str(word) for word in argv]
        if words[:2] == ["docker", "ps"]:
            return Result(0, "test-control-plane\trunning\n", "")
        if words[:3] == ["docker", "image", "inspect"]:
            return Result(0, "sha256:0123456789abcdef0\n", "")
        if "label" in words:
            key, _, value = words[-1].partition("=")
            self.labels[words[-2]][key] = value
            return Result(0, "", "")
        self._replace()
        if "--quiet" in words:
            key, _, value = words[-1].removeprefix('labels."').partition('"==')
            return Result(0, "\n".join(n for n, labels in self.labels.items() if labels.get(key) == value), "")
        rows = (
            f"{n} type digest {','.join(f'{k}={v}' for k, v in labels.items())}" for n, labels in self.labels.items()
        )
        return Result(0, "REF TYPE DIGEST LABELS\n" + "\n".join(rows), "")

    def _replace(self) -> None:
        self.delay -= self.imported
        if self.delay == 0:
            for labels in self.labels.values():
                labels.clear()
                labels["io.cri-containerd.image"] = "managed"


@pytest.mark.parametrize("delay", [1, 3])
def test_what_a_node_has_is_not_loaded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delay: int) -> None:
    node = Node(delay)
    monkeypatch.setattr("tests.cluster.shell.Shell.run", lambda shell, *a, **k: node.run(shell, *a, **k))
    monkeypatch.setattr("tests.cluster.shell.Shell.pipe", lambda shell, *a, **k: node.pipe(shell, *a, **k))
    monkeypatch.setattr("tests.cluster.kind.time.sleep", lambda _seconds: None)
    ctx = Context("test", home=tmp_path)
    assert kind.load(ctx, "x:1")
    assert not kind.load(ctx, "x:1")
    assert node.imported == 1
