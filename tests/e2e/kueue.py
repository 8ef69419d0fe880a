"""Queues, runtimes and jobs for the tests of Kueue: small, and admitted or refused for their numbers only."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from tests.e2e.kube import TRAIN_IMAGE, Kubectl
from trainjob.kube.yaml import load
from trainjob.validate.queue import Queues

API = "kueue.x-k8s.io/v1beta2"
TRAINER = "trainer.kubeflow.org/v1alpha1"
STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
QUEUE = "kueue.x-k8s.io/queue-name"
PRIORITY = "kueue.x-k8s.io/priority-class"
GPU = "nvidia.com/gpu"
RESOURCES = ("cpu", "memory", "ephemeral-storage", GPU)
# What `trainjob validate --help` tells people to dump.
KINDS = "clusterqueues,localqueues,cohorts,resourceflavors,topologies,workloadpriorityclasses,namespaces,limitranges"
WIDE = {"cpu": "8", "memory": "8Gi", "ephemeral-storage": "8Gi", GPU: "4"}

Object = dict[str, Any]


def flavor(name: str, **spec: Any) -> Object:
    return {"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": name}, "spec": spec}


def quotas(name: str, amounts: Mapping[str, str], limits: Mapping[str, Mapping[str, str]] | None = None) -> Object:
    """The quotas of one flavor; `limits`: resource to borrowingLimit and lendingLimit."""
    rows = [{"name": r, "nominalQuota": q, **(limits or {}).get(r, {})} for r, q in amounts.items()]
    return {"name": name, "resources": rows}


def cluster_queue(name: str, *flavors: Object, **spec: Any) -> Object:
    """A ClusterQueue with one resource group, for every namespace unless `spec` says otherwise."""
    covered = [r["name"] for r in flavors[0]["resources"]]
    groups = [{"coveredResources": covered, "flavors": list(flavors)}]
    body = {"namespaceSelector": {}, "resourceGroups": groups, **spec}
    return {"apiVersion": API, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": body}


def cohort(name: str, *flavors: Object, **spec: Any) -> Object:
    """A Cohort, with quota of its own when there are flavors."""
    if flavors:
        covered = [r["name"] for r in flavors[0]["resources"]]
        spec["resourceGroups"] = [{"coveredResources": covered, "flavors": list(flavors)}]
    return {"apiVersion": API, "kind": "Cohort", "metadata": {"name": name}, "spec": spec}


def local_queue(name: str, queue: str) -> Object:
    return {"apiVersion": API, "kind": "LocalQueue", "metadata": {"name": name}, "spec": {"clusterQueue": queue}}


def runtime(name: str, resources: Object, *first: Object, grace: int = 2, **pod: Any) -> Object:
    """A namespaced runtime of one trainer job; `first` are replicated jobs before it."""
    container = {"name": "node", "image": TRAIN_IMAGE, "command": ["sleep", "1"], "resources": resources}
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": grace, "containers": [container], **pod}
    node = {
        "name": "node",
        "template": {
            "metadata": {"labels": {STEP: "trainer"}},
            "spec": {"backoffLimit": 0, "template": {"spec": spec}},
        },
    }
    return {
        "apiVersion": TRAINER,
        "kind": "TrainingRuntime",
        "metadata": {"name": name, "labels": {"trainer.kubeflow.org/framework": "torch"}},
        "spec": {"mlPolicy": {"numNodes": 1, "torch": {}}, "template": {"spec": {"replicatedJobs": [*first, node]}}},
    }


def job(name: str, runtime_name: str, queue: str = "", nodes: int = 1, priority: str = "", **trainer: Any) -> Object:
    labels = {QUEUE: queue, PRIORITY: priority}
    return {
        "apiVersion": TRAINER,
        "kind": "TrainJob",
        "metadata": {"name": name, "labels": {key: value for key, value in labels.items() if value}},
        "spec": {
            "runtimeRef": {"name": runtime_name, "kind": "TrainingRuntime"},
            "trainer": {"numNodes": nodes, **trainer},
        },
    }


def each(gpus: int = 0, cpu: str = "10m", memory: str = "16Mi", disk: str = "16Mi") -> Object:
    """Requests and limits of a pod that does nothing."""
    amounts = {"cpu": cpu, "memory": memory, "ephemeral-storage": disk, **({GPU: str(gpus)} if gpus else {})}
    return {"requests": amounts, "limits": dict(amounts)}


def live_queues(kubectl: Kubectl) -> Queues:
    """The queues as the cluster holds them, read as a user would dump them."""
    return Queues.read(load(kubectl.run("get", KINDS, "-A", "-o", "yaml"), "queues.yaml"))


def workload(kubectl: Kubectl, name: str) -> Object | None:
    """The Workload that Kueue made for a TrainJob."""
    for found in kubectl.list("workloads.kueue.x-k8s.io"):
        if any(owner["name"] == name for owner in found["metadata"].get("ownerReferences", [])):
            return found
    return None


def condition(found: Object | None, kind: str) -> Object:
    conditions = (found or {}).get("status", {}).get("conditions", [])
    return next((c for c in conditions if c["type"] == kind), {})


def own(objects: Iterable[Object], prefix: str, namespace: str) -> list[Object]:
    """Rendered objects under names of the test's own: cluster-scoped ones get a prefix, the team's
    namespace becomes the test's. Every reference follows; a LocalQueue keeps its name."""
    out = copy.deepcopy(list(objects))
    flavors = {o["metadata"]["name"] for o in out if o["kind"] == "ResourceFlavor"}
    for o in out:
        meta, spec = o["metadata"], o.get("spec", {})
        if o["kind"] == "Namespace":
            meta["name"] = namespace
        elif o["kind"] == "LocalQueue":
            meta["namespace"] = namespace
        else:
            meta["name"] = f"{prefix}-{meta['name']}"
        for key in ("cohortName", "clusterQueue", "topologyName"):
            if key in spec:
                spec[key] = f"{prefix}-{spec[key]}"
        selected = spec.get("namespaceSelector", {}).get("matchLabels", {})
        if "kubernetes.io/metadata.name" in selected:
            selected["kubernetes.io/metadata.name"] = namespace
        for group in spec.get("resourceGroups", []):
            for row in group["flavors"]:
                assert row["name"] in flavors
                row["name"] = f"{prefix}-{row['name']}"
    return out


def delete_all(cluster: Kubectl, objects: Iterable[Object]) -> None:
    """Take the cluster-scoped queue objects away, jobs first so that nothing holds them."""
    order = ("ClusterQueue", "Cohort", "ResourceFlavor", "Topology", "WorkloadPriorityClass")
    for kind in order:
        names = [o["metadata"]["name"] for o in objects if o["kind"] == kind]
        if names:
            cluster.run("delete", kind.lower(), *names, "--wait=false", "--ignore-not-found", check=False)
