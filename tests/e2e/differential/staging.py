"""A manifest made to run here: the image becomes the probe's, sizes shrink, what it names is made.

Nothing else of the job changes. Each change is listed in `Staged.adapted`, so that a page can say it.
The same staged text goes to the v1 operator and into the migration.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from tests.e2e.differential.image import IMAGE
from tests.e2e.differential.shape import Object, jobs_of
from tests.e2e.kube import claim
from trainjob.kube import quantity, schema
from trainjob.kube.objectmeta import with_object_meta
from trainjob.v1.normalise import normalise

QUEUE: Final = "kueue.x-k8s.io/queue-name"
PRIORITY: Final = "kueue.x-k8s.io/priority-class"
# What a pod may ask for at most; the cluster has two cores, and GPUs that are numbers only.
CAPS: Final = {"cpu": "200m", "memory": "128Mi", "ephemeral-storage": "64Mi"}
DEVICES_AT_MOST: Final = 2
# Two pods on the host network cannot share a node, and there are two nodes.
HOST_NETWORK_WORKERS: Final = 1
_OPERATOR_KEYS: Final = {"master": "Master", "worker": "Worker"}


@dataclass
class Staged:
    """Documents that can run here, the objects that they need, and what was changed."""

    documents: list[Object]
    objects: list[Object] = field(default_factory=list)
    adapted: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        if text not in self.adapted:
            self.adapted.append(text)


def stage(documents: list[Object]) -> Staged:
    """Adapts copies of the documents and makes what they name."""
    staged = Staged(copy.deepcopy(documents))
    jobs = jobs_of(staged.documents)
    for job in jobs:
        _as_v1_kept_it(job, staged)
        _as_v1_accepts_it(job, staged)
        for template in _templates(job):
            _as_users_wrote_it(template["spec"], staged)
            _pod(template["spec"], staged)
    present = {(d.get("kind"), d.get("metadata", {}).get("name")) for d in staged.documents}
    for document in staged.documents:
        document.get("metadata", {}).pop("namespace", None)
    for job in jobs:
        job.get("metadata", {}).pop("namespace", None)
        for obj in _needs(job):
            key = (obj["kind"], obj["metadata"]["name"])
            if key not in present:
                present.add(key)
                staged.objects.append(obj)
            elif key[0] in ("ConfigMap", "Secret"):
                _add_keys(staged, obj)
    return staged


def _add_keys(staged: Staged, obj: Object) -> None:
    for known in staged.objects:
        if (known["kind"], known["metadata"]["name"]) == (obj["kind"], obj["metadata"]["name"]):
            for place in ("data", "stringData"):
                if place in obj:
                    known.setdefault(place, {}).update(obj[place])


@functools.cache
def _schema() -> dict[str, Any]:
    return with_object_meta(schema.raw("PyTorchJob", None))


def _as_v1_kept_it(job: Object, staged: Staged) -> None:
    """Unknown fields and server fields go; scalars without quotes become text."""
    clean = normalise(job, _schema(), lambda _: None)
    if clean.unquoted:
        staged.note("scalars without quotes are written as text, or the API server refuses the job")
    kept = clean.data
    kept.pop("status", None)
    for key in ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"):
        kept.get("metadata", {}).pop(key, None)
    job.clear()
    job.update(kept)


def _as_v1_accepts_it(job: Object, staged: Staged) -> None:
    """What the 1.9.4 webhook refuses and its controller would have repaired."""
    specs = job["spec"]["pytorchReplicaSpecs"]
    for key in [*specs]:
        role = specs.pop(key)
        name = _OPERATOR_KEYS.get(key.lower(), key)
        if name != key or "replicas" not in role:
            staged.note("replica keys and counts are written as the v1 controller defaults them: its webhook asks so")
        role.setdefault("replicas", 1)
        if role["replicas"] == 0:
            staged.note("a role of 0 pods is left out: the v1 webhook refuses it")
            continue
        specs[name] = role
        pod = role["template"]["spec"]
        if all(c["name"] != "pytorch" for c in pod["containers"]) and len(pod["containers"]) == 1:
            staged.note("the only container is called pytorch: the v1 webhook asks for it")
            pod["containers"][0]["name"] = "pytorch"
        if pod.get("hostNetwork") and name == "Worker" and role["replicas"] > HOST_NETWORK_WORKERS:
            role["replicas"] = HOST_NETWORK_WORKERS
            staged.note("one Worker on the host network: v1 opens a port of the node, and there are two nodes")
    if job["spec"].get("runPolicy", {}).pop("managedBy", None):
        staged.note("managedBy is taken away: with it nobody here runs the job")


def _as_users_wrote_it(pod: Object, staged: Staged) -> None:
    """A dump of a live job holds what the operator added; v1 cannot add it a second time."""
    first = pod.get("initContainers", [])
    if any(container["name"] == "init-pytorch" for container in first):
        pod["initContainers"] = [container for container in first if container["name"] != "init-pytorch"]
        staged.note("init-pytorch is taken out of the dump: v1 adds it again and then refuses the pod")
    for container in pod["containers"]:
        env = {entry["name"]: entry for entry in container.get("env", [])}
        if len(env) < len(container.get("env", [])):
            container["env"] = list(env.values())
            staged.note("the last of a variable that stands twice: the API server of 1.9.4 refuses the job")
        ports = container.get("ports", [])
        doubled = [p for p in ports if p["containerPort"] == 23456 and p.get("name") != "pytorchjob-port"]
        if doubled:
            container["ports"] = [port for port in ports if port not in doubled]
            staged.note("a second port 23456 is taken out: with it v1 cannot make its Service, and the job never ends")


def _templates(job: Object) -> list[Object]:
    return [role["template"] for role in job["spec"]["pytorchReplicaSpecs"].values()]


def _pod(pod: Object, staged: Staged) -> None:
    for container in [*pod["containers"], *pod.get("initContainers", [])]:
        container["image"] = IMAGE
        if container.get("imagePullPolicy") == "Always":
            container["imagePullPolicy"] = "Never"
            staged.note("imagePullPolicy Always becomes Never: there is no registry")
        for amounts in container.get("resources", {}).values():
            if isinstance(amounts, dict):
                for key in amounts:
                    amounts[key] = _small(key, amounts[key])
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            if "exec" in container.get(probe, {}):
                container[probe] |= {"exec": {"command": ["true"]}, "periodSeconds": 1}
                staged.note("the command of a probe becomes `true`, every second")
    staged.note("images become the probe's, sizes shrink to what two cores can hold")
    for volume in pod.get("volumes", []):
        if "nfs" in volume:
            del volume["nfs"]
            volume["emptyDir"] = {}
            staged.note("an NFS volume becomes an emptyDir: there is no server")
        if volume.get("hostPath", {}).get("type") == "Directory":
            volume["hostPath"]["type"] = "DirectoryOrCreate"
            staged.note("hostPath type Directory becomes DirectoryOrCreate")
        claim = volume.get("ephemeral", {}).get("volumeClaimTemplate", {}).get("spec", {})
        if claim:
            claim["storageClassName"] = "standard"
            claim["resources"]["requests"]["storage"] = "1Mi"
            staged.note("storage classes become those of the cluster")
    _placement(pod, staged)


def _small(key: str, value: Any) -> str:
    """The amount, at most what the cluster can give; zero and the written text stay when they fit."""
    most = CAPS.get(key, str(DEVICES_AT_MOST))
    return str(value) if quantity.parse(value) <= quantity.parse(most) else most


def _placement(pod: Object, staged: Staged) -> None:
    """Node labels that no node here has become one that every node has."""
    if pod.get("nodeSelector"):
        pod["nodeSelector"] = {"kubernetes.io/os": "linux"}
        staged.note("node selectors name a label that the nodes here have")
    affinity = pod.get("affinity", {})
    required = affinity.get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", {})
    for term in required.get("nodeSelectorTerms", []):
        for expression in term.get("matchExpressions", []):
            if expression["operator"] == "In":
                expression |= {"key": "kubernetes.io/os", "values": ["linux", *expression["values"]]}
                staged.note("node selectors name a label that the nodes here have")
    for kind in ("podAffinity", "podAntiAffinity"):
        for term in affinity.get(kind, {}).get("requiredDuringSchedulingIgnoredDuringExecution", []):
            term["topologyKey"] = "kubernetes.io/hostname"
            staged.note("topology keys become the host name: the nodes here have no zones")


# --- what the job names ------------------------------------------------------------------------


def _needs(job: Object) -> Iterator[Object]:
    labels = job.get("metadata", {}).get("labels", {})
    if QUEUE in labels:
        yield {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "LocalQueue",
            "metadata": {"name": labels[QUEUE]},
            "spec": {"clusterQueue": "conformance"},
        }
    if PRIORITY in labels:
        yield {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "WorkloadPriorityClass",
            "metadata": {"name": labels[PRIORITY]},
            "value": 700,
        }
    for template in _templates(job):
        yield from _pod_needs(template["spec"])


def _pod_needs(pod: Object) -> Iterator[Object]:
    containers = [*pod["containers"], *pod.get("initContainers", [])]
    sub_paths: dict[str, list[str]] = {}
    for container in containers:
        for entry in container.get("env", []):
            source = entry.get("valueFrom", {})
            for kind, ref in (("Secret", source.get("secretKeyRef")), ("ConfigMap", source.get("configMapKeyRef"))):
                if ref:
                    yield _with_keys(kind, ref["name"], [ref["key"]])
        for entry in container.get("envFrom", []):
            for kind, ref in (("Secret", entry.get("secretRef")), ("ConfigMap", entry.get("configMapRef"))):
                if ref:
                    stem = ref["name"].upper().replace("-", "_")
                    yield _with_keys(kind, ref["name"], [f"{stem}_ONE", f"{stem}_TWO"])
        for mount in container.get("volumeMounts", []):
            if mount.get("subPath"):
                sub_paths.setdefault(mount["name"], []).append(mount["subPath"])
    for volume in pod.get("volumes", []):
        sources = [volume, *volume.get("projected", {}).get("sources", [])]
        for source in sources:
            for kind, ref in (("ConfigMap", source.get("configMap")), ("Secret", source.get("secret"))):
                if ref:
                    keys = [item["key"] for item in ref.get("items", [])] or sub_paths.get(volume["name"], ["file"])
                    yield _with_keys(kind, ref.get("name") or ref["secretName"], keys)
        if "persistentVolumeClaim" in volume:
            yield claim(volume["persistentVolumeClaim"]["claimName"])
    account = pod.get("serviceAccountName") or pod.get("serviceAccount")
    if account:
        yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account}}
    if pod.get("priorityClassName"):
        yield {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": pod["priorityClassName"]},
            "value": 500,
        }
    if pod.get("runtimeClassName"):
        name = pod["runtimeClassName"]
        yield {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": "runc"}


def _with_keys(kind: str, name: str, keys: list[str]) -> Object:
    data = {key: f"{kind} {name} {key}" for key in keys}
    place = "stringData" if kind == "Secret" else "data"
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, place: data}
