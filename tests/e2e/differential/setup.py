"""What the whole suite needs on the cluster beside its shapes: runtimes, a queue, devices that are numbers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from tests.e2e.differential.api import Api
from tests.e2e.differential.run import OWNER
from tests.e2e.differential.shape import Object, Shape, jobs_of
from tests.e2e.kube import Kubectl
from trainjob import kustomize

ROOT: Final = Path(__file__).parents[3]
QUEUE: Final = "conformance"
_DEVICES_PER_NODE: Final = "32"
_CORE: Final = ("cpu", "memory", "ephemeral-storage")


@contextlib.contextmanager
def prepared(api: Api, cluster: Kubectl, shapes: Iterable[Shape]) -> Iterator[None]:
    """Installs the product's runtimes and makes a wide queue; takes away at the end what it added."""
    for left in api.list("Namespace", selector=OWNER):  # of a run that was killed
        api.delete("Namespace", "", left["metadata"]["name"])
    cluster.install(kustomize.build(ROOT / "overlays" / "prod-multi-node").decode())
    devices = sorted(devices_of(shapes))
    extra = {node["metadata"]["name"]: _missing(node, devices) for node in api.list("Node")}
    for node, names in extra.items():
        if names:
            api.patch("Node", "", node, _capacity(names, _DEVICES_PER_NODE), status=True)
    queues = _queues([*_CORE, *devices])
    for obj in queues:
        api.delete(obj["kind"], "", obj["metadata"]["name"])
    for obj in queues:
        api.ensure(obj, "")
    try:
        yield
    finally:
        for obj in reversed(queues):
            api.delete(obj["kind"], "", obj["metadata"]["name"])
        for node, names in extra.items():
            if names:
                api.patch("Node", "", node, _capacity(names, None), status=True)


def devices_of(shapes: Iterable[Shape]) -> set[str]:
    """Every device that a pod of these shapes asks for."""
    out = set()
    for shape in shapes:
        for job in jobs_of(list(shape.documents)):
            for role in job["spec"]["pytorchReplicaSpecs"].values():
                for container in role["template"]["spec"]["containers"]:
                    for amounts in container.get("resources", {}).values():
                        out |= {key for key in amounts if "/" in key}
    return out


def _missing(node: Object, devices: list[str]) -> list[str]:
    return [name for name in devices if name not in node["status"]["capacity"]]


def _capacity(names: list[str], amount: str | None) -> Object:
    amounts = dict.fromkeys(names, amount)
    return {"status": {"capacity": amounts, "allocatable": amounts}}


def _queues(resources: list[str]) -> list[Object]:
    api = "kueue.x-k8s.io/v1beta2"
    rows = [{"name": name, "nominalQuota": "1000" if "/" in name or name == "cpu" else "1000Gi"} for name in resources]
    groups = [{"coveredResources": resources, "flavors": [{"name": QUEUE, "resources": rows}]}]
    return [
        {"apiVersion": api, "kind": "ResourceFlavor", "metadata": {"name": QUEUE}, "spec": {}},
        {
            "apiVersion": api,
            "kind": "ClusterQueue",
            "metadata": {"name": QUEUE},
            "spec": {"namespaceSelector": {}, "resourceGroups": groups},
        },
    ]
