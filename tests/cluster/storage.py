"""A storage class `shared` for claims that several nodes write at once, beside the default `standard`.

kind brings rancher's local-path provisioner (0.0.30, provisioner.go: `storageClassConfigs`). It makes
ReadWriteMany volumes in a folder that is the same on every node, which here is a mount of this machine.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from .context import Context
from .kind import SHARED
from .problems import ClusterError
from .shell import tail

SHARED_CLASS: Final = "shared"
_DEFAULT_CLASS: Final = "standard"
_NAMESPACE: Final = "local-path-storage"
_CONFIG: Final = "local-path-config"


def share(ctx: Context, kubectl: Path) -> None:
    """Makes the class. Harmless when done again."""
    got = ctx.sh.run(kubectl, "get", "configmap", _CONFIG, f"--namespace={_NAMESPACE}", "--output=json", timeout=60)
    config = json.loads(got.out)
    data = with_shared(json.loads(config["data"]["config.json"]))
    patch = {"data": {"config.json": json.dumps(data, indent=1)}}
    storage_class = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": SHARED_CLASS},
        "provisioner": "rancher.io/local-path",
        "volumeBindingMode": "Immediate",
        "reclaimPolicy": "Delete",
    }
    ctx.sh.run(
        kubectl,
        "patch",
        "configmap",
        _CONFIG,
        f"--namespace={_NAMESPACE}",
        "--type=merge",
        f"--patch={json.dumps(patch)}",
    )
    done = ctx.sh.run(
        kubectl,
        "apply",
        "--server-side",
        "--force-conflicts",
        "--filename=-",
        stdin=json.dumps(storage_class),
        check=False,
    )
    if not done.ok:
        raise ClusterError("cannot make the storage class `shared`", f"see {ctx.sh.log}", tail(done.err))


def with_shared(config: dict[str, Any]) -> dict[str, Any]:
    """The provisioner's configuration with a class of its own for shared volumes."""
    classes = dict(config.get("storageClassConfigs") or {_DEFAULT_CLASS: {"nodePathMap": config["nodePathMap"]}})
    classes[SHARED_CLASS] = {"sharedFileSystemPath": SHARED}
    return {"storageClassConfigs": classes}
