"""Queues and jobs for the checks of queues: small texts, as people write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.validate.objects import STEP, Obj
from trainjob.kube.yaml import dump_all, load
from trainjob.targets import API_VERSION, DEFAULT, Target
from trainjob.validate.queue import Queues, Verdict, check_queues

API = "kueue.x-k8s.io/v1beta2"
GPU = "nvidia.com/gpu"
WIDE = {"cpu": "100", "memory": "1000Gi", "ephemeral-storage": "1000Gi", GPU: "4"}


def kueue(kind: str, name: str, spec: Obj | None = None, **metadata: Any) -> Obj:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec or {}}


def flavor(name: str = "f", **spec: Any) -> Obj:
    return kueue("ResourceFlavor", name, spec)


def quotas(amounts: Mapping[str, Any], name: str = "f", limits: Mapping[str, Mapping[str, Any]] | None = None) -> Obj:
    rows = [{"name": r, "nominalQuota": q, **(limits or {}).get(r, {})} for r, q in amounts.items()]
    return {"name": name, "resources": rows}


def group(*flavors: Obj) -> Obj:
    return {"coveredResources": [r["name"] for r in flavors[0]["resources"]], "flavors": list(flavors)}


def cluster_queue(name: str, *flavors: Obj, **spec: Any) -> Obj:
    return kueue("ClusterQueue", name, {"namespaceSelector": {}, "resourceGroups": [group(*flavors)], **spec})


def cohort(name: str, *flavors: Obj, **spec: Any) -> Obj:
    return kueue("Cohort", name, {**({"resourceGroups": [group(*flavors)]} if flavors else {}), **spec})


def local_queue(name: str = "q", queue: str = "c", namespace: str = "team", **spec: Any) -> Obj:
    return kueue("LocalQueue", name, {"clusterQueue": queue, **spec}, namespace=namespace)


def namespace(name: str = "team", **labels: str) -> Obj:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def read(*objects: Obj) -> Queues:
    return Queues.read(load(dump_all(list(objects)), "queues.yaml"))


def plain(*more: Obj, amounts: Mapping[str, Any] | None = None, **spec: Any) -> Queues:
    """One flavor, one ClusterQueue `c`, and LocalQueue `q` in namespace `team`."""
    return read(flavor(), cluster_queue("c", quotas(amounts or WIDE), **spec), local_queue(), *more)


def each(gpus: int = 2, **amounts: str) -> Obj:
    asked = {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi", GPU: str(gpus), **amounts}
    return {"requests": dict(asked), "limits": dict(asked)}


def runtime(amounts: Obj | None = None, *first: Obj, annotations: Obj | None = None, **pod: Any) -> Obj:
    node = {"name": "node", "image": "a/b:1", "resources": each() if amounts is None else amounts}
    template = {"metadata": {"annotations": annotations or {}}, "spec": {"containers": [node], **pod}}
    trainer = {
        "name": "node",
        "template": {"metadata": {"labels": {STEP: "trainer"}}, "spec": {"template": template}},
    }
    return {
        "apiVersion": API_VERSION,
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "r"},
        "spec": {
            "mlPolicy": {"numNodes": 1, "torch": {}},
            "template": {"spec": {"replicatedJobs": [*first, trainer]}},
        },
    }


def job(nodes: int = 1, labels: Mapping[str, str] | None = None, where: str = "team", **trainer: Any) -> Obj:
    metadata: Obj = {"name": "j", "labels": {"kueue.x-k8s.io/queue-name": "q"} if labels is None else dict(labels)}
    if where:
        metadata["namespace"] = where
    return {
        "apiVersion": API_VERSION,
        "kind": "TrainJob",
        "metadata": metadata,
        "spec": {"runtimeRef": {"name": "r"}, "trainer": {"numNodes": nodes, **trainer}},
    }


def verdict(
    queues: Queues, the_job: Obj | None = None, the_runtime: Obj | None = None, target: Target = DEFAULT, ns: str = ""
) -> Verdict:
    (only,) = check_queues([the_runtime or runtime(), the_job or job()], queues, target, {}, ns)
    return only


def codes(found: Verdict) -> list[str]:
    return [f.code for f in found.findings]
