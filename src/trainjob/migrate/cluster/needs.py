"""What migrated jobs need of a cluster, and what of that is missing there.

Only named things are looked at: a pod that mounts a claim which does not exist stays Pending, and
Kueue leaves a job alone whose LocalQueue does not exist. Kueue's resources: kubernetes-sigs/kueue v0.17
apis/kueue/v1beta1 and v1beta2.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from trainjob import emit, targets
from trainjob.findings import Finding, Location, Severity
from trainjob.kube import quantity
from trainjob.kube.names import QUEUE_LABEL
from trainjob.migrate import codes
from trainjob.migrate.cluster.client import Obj, Reader, ReadError, Resource
from trainjob.migrate.cluster.jobs import LiveJob
from trainjob.targets import Target

_PRIORITY: Final = "kueue.x-k8s.io/priority-class"
_RUNTIMES: Final = Resource("trainer.kubeflow.org/v1alpha1", "clustertrainingruntimes", "ClusterTrainingRuntime", False)
_CRDS: Final = Resource("apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition", False)
_QUOTAS: Final = Resource("v1", "resourcequotas", "ResourceQuota")
_NAMESPACES: Final = Resource("v1", "namespaces", "Namespace", False)
# kind -> where to look; several versions of one kind are tried in order.
_KINDS: Final[Mapping[str, tuple[Resource, ...]]] = {
    "ClusterTrainingRuntime": (_RUNTIMES,),
    "PersistentVolumeClaim": (Resource("v1", "persistentvolumeclaims", "PersistentVolumeClaim"),),
    "Secret": (Resource("v1", "secrets", "Secret"),),
    "ConfigMap": (Resource("v1", "configmaps", "ConfigMap"),),
    "ServiceAccount": (Resource("v1", "serviceaccounts", "ServiceAccount"),),
    "LocalQueue": (
        Resource("kueue.x-k8s.io/v1beta2", "localqueues", "LocalQueue"),
        Resource("kueue.x-k8s.io/v1beta1", "localqueues", "LocalQueue"),
    ),
    "WorkloadPriorityClass": (
        Resource("kueue.x-k8s.io/v1beta2", "workloadpriorityclasses", "WorkloadPriorityClass", False),
        Resource("kueue.x-k8s.io/v1beta1", "workloadpriorityclasses", "WorkloadPriorityClass", False),
    ),
    "PriorityClass": (Resource("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", False),),
    "RuntimeClass": (Resource("node.k8s.io/v1", "runtimeclasses", "RuntimeClass", False),),
}
_MEANS: Final = {
    "ClusterTrainingRuntime": "kustomize build overlays/prod-multi-node | kubectl apply --server-side -f -",
    "LocalQueue": "create the LocalQueue, or change the label kueue.x-k8s.io/queue-name",
}


@dataclass(frozen=True, slots=True, order=True)
class Need:
    """A named object that a job uses; `namespace` is empty for cluster-wide kinds."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


def needs(job: emit.TrainJob, namespace: str) -> set[Need]:
    """What a TrainJob and its own runtime name. Optional references do not count."""
    out: set[Need] = set()
    for kind, name in _references(job):
        resource = _KINDS[kind][0]
        out.add(Need(kind, namespace if resource.namespaced else "", name))
    return out


def _references(job: emit.TrainJob) -> Iterator[tuple[str, str]]:
    ref = job.manifest["spec"]["runtimeRef"]
    if ref.get("kind") == "ClusterTrainingRuntime":
        yield "ClusterTrainingRuntime", ref["name"]
    labels = job.manifest.get("metadata", {}).get("labels") or {}
    if QUEUE_LABEL in labels:
        yield "LocalQueue", labels[QUEUE_LABEL]
    if _PRIORITY in labels:
        yield "WorkloadPriorityClass", labels[_PRIORITY]
    for part in (job.manifest["spec"], job.runtime["spec"] if job.runtime is not None else {}):
        yield from _in_pods(part)


def _in_pods(value: Any) -> Iterator[tuple[str, str]]:
    """References of pods, wherever a pod template stands."""
    if isinstance(value, list):
        for item in value:
            yield from _in_pods(item)
    if not isinstance(value, Mapping):
        return
    for key, item in value.items():
        if isinstance(item, Mapping) and item.get("optional") is not True:
            if key == "persistentVolumeClaim" and item.get("claimName"):
                yield "PersistentVolumeClaim", item["claimName"]
            elif key == "secret" and (item.get("secretName") or item.get("name")):
                yield "Secret", item.get("secretName") or item["name"]
            elif key in ("secretKeyRef", "secretRef") and item.get("name"):
                yield "Secret", item["name"]
            elif key in ("configMap", "configMapKeyRef", "configMapRef") and item.get("name"):
                yield "ConfigMap", item["name"]
        elif key == "imagePullSecrets" and isinstance(item, list):
            yield from (("Secret", s["name"]) for s in item if isinstance(s, Mapping) and s.get("name"))
        elif isinstance(item, str) and item:
            kind = {"serviceAccountName": "ServiceAccount", "priorityClassName": "PriorityClass",
                    "runtimeClassName": "RuntimeClass"}.get(key)  # fmt: skip
            if kind:
                yield kind, item
        yield from _in_pods(item)


@dataclass(slots=True)
class TargetState:
    """What the target cluster has. `trainer`: the generation of its CRDs; `have`: names by kind and namespace."""

    context: str
    trainer: Target | None = None
    release: str = ""
    served: bool = False
    have: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    quotas: dict[str, list[Obj]] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)
    missing: list[Need] = field(default_factory=list)


def look_at(reader: Reader, wanted: Iterable[Need], namespaces: Iterable[str]) -> TargetState:
    """Ask the target for everything that is wanted. What may not be read is noted, not guessed."""
    state = TargetState(reader.context)
    _versions(reader, state)
    spaces = sorted(set(namespaces))
    for name in spaces:
        try:
            if reader.one(_NAMESPACES, name) is None:
                state.missing.append(Need("Namespace", "", name))
        except ReadError:
            pass  # a user of one namespace may not read it; its objects answer for it
    for kind, namespace in sorted({(n.kind, n.namespace) for n in wanted}):
        names = _names(reader, kind, namespace, state)
        if names is not None:
            state.have[kind, namespace] = names
    for name in spaces:
        try:
            state.quotas[name] = list(reader.items(_QUOTAS, name))
        except ReadError as err:
            state.unread.append(f"{_QUOTAS.shown} in {name} ({err.reason})")
    state.missing += [
        n
        for n in sorted(wanted)
        if (n.kind, n.namespace) in state.have and n.name not in state.have[n.kind, n.namespace]
    ]
    return state


def _names(reader: Reader, kind: str, namespace: str, state: TargetState) -> set[str] | None:
    for resource in _KINDS[kind]:
        try:
            found = reader.items(resource, namespace or None, names_only=True)
            return {str((o.get("metadata") or {}).get("name")) for o in found}
        except ReadError as err:
            if err.status != 404:
                state.unread.append(f"{resource.shown}{f' in {namespace}' if namespace else ''} ({err.reason})")
                return None
    return set()  # the kind is not installed: nothing of it is there


def _versions(reader: Reader, state: TargetState) -> None:
    """The generation of Trainer's CRDs: the fields tell, since all versions are called v1alpha1."""
    try:
        job = reader.one(_CRDS, f"trainjobs.{targets.GROUP}")
        runtime = reader.one(_CRDS, f"trainingruntimes.{targets.GROUP}")
    except ReadError as err:
        state.unread.append(f"{_CRDS.shown} ({err.reason})")
        return
    if job is None:
        return
    state.served = any(v.get("served") for v in (job.get("spec") or {}).get("versions") or ())
    text, runtime_text = json.dumps(job), json.dumps(runtime or {})
    fits = [t for t in targets.TARGETS if f'"{t.patches}"' in text]
    if '"envInjection"' not in runtime_text:
        fits = [t for t in fits if not t.env_injection]
    state.trainer = fits[-1] if fits else None
    try:
        public = reader.one(Resource("v1", "configmaps", "ConfigMap"), "kubeflow-trainer-public", "kubeflow-system")
        state.release = str(((public or {}).get("data") or {}).get("kubeflow_trainer_version") or "")
    except ReadError:
        pass  # Trainer 2.0 and 2.1 have no such ConfigMap, and another namespace is possible


def check(
    state: TargetState, jobs: list[LiveJob], users: Mapping[Need, list[str]], target: Target
) -> Iterator[Finding]:
    """Findings about the target: versions, what is missing, quotas that are too small."""
    where = Location(f"context {state.context}")
    for what in state.unread:
        yield Finding(codes.CLUSTER_READ, Severity.WARNING, f"not looked at in the target: {what}", where,
                      "ask for the right to list it, or check it by hand")  # fmt: skip
    crds_read = not any(u.startswith(_CRDS.shown) for u in state.unread)
    if crds_read and state.trainer is None:
        yield Finding(codes.CLUSTER_VERSION, Severity.ERROR, "the target has no TrainJob CRD that is known", where,
                      "install Kubeflow Trainer 2.0 to 2.3")  # fmt: skip
    elif state.trainer is not None and state.trainer != target:
        yield Finding(
            codes.CLUSTER_VERSION, Severity.ERROR,
            f"the target runs Trainer {state.trainer.name}, and the jobs were written for {target.name}: same "
            "apiVersion, another shape", where, f"say --target {state.trainer.name}",
        )  # fmt: skip
    for need in state.missing:
        who = users.get(need, [])
        shown = ", ".join(who[:3]) + (f" and {len(who) - 3} more" if len(who) > 3 else "")
        yield Finding(codes.CLUSTER_MISSING, Severity.ERROR,
                      f"{need} is not in the target" + (f"; needed by {shown}" if shown else ""), where,
                      _MEANS.get(need.kind, f"create the {need.kind} before the job"))  # fmt: skip
    for job in jobs:
        yield from _quota(state, job, where)


def _quota(state: TargetState, job: LiveJob, where: Location) -> Iterator[Finding]:
    for quota in state.quotas.get(job.namespace, []):
        hard = (quota.get("spec") or {}).get("hard") or {}
        used = (quota.get("status") or {}).get("used") or {}
        for resource, count in job.accelerators.items():
            key = f"requests.{resource}"
            if key not in hard:
                continue
            limit = quantity.parse(hard[key])
            taken = quantity.parse(used.get(key, 0))
            name = str((quota.get("metadata") or {}).get("name"))
            if count > limit:
                yield Finding(
                    codes.CLUSTER_QUOTA, Severity.ERROR,
                    f"{job.namespace}/{job.name} asks for {count} {resource}, and ResourceQuota {name} allows "
                    f"{quantity.show(limit)} in all", where, "raise the quota, or make the job smaller",
                )  # fmt: skip
            elif count > limit - taken and not job.runs:
                yield Finding(
                    codes.CLUSTER_QUOTA, Severity.WARNING,
                    f"{job.namespace}/{job.name} asks for {count} {resource}; of {quantity.show(limit)} in the "
                    f"ResourceQuota {name} {quantity.show(taken)} are taken now", where, "wait for other jobs to end",
                )  # fmt: skip
