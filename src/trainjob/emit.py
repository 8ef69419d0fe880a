"""The only place that writes TrainJobs: `build(intent, runtime)`.

What a TrainJob can say goes into it; what only a runtime can carry leads to a namespaced
TrainingRuntime, derived from the one asked for and named by its content. Field facts per
version: kubeflow/trainer pkg/apis/trainer/v1alpha1/{trainjob,trainingruntime}_types.go.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from trainjob.catalog import Runtime
from trainjob.intent import Failure, Lifetime, PodParts, Policy, Role, TrainingIntent
from trainjob.kube import names
from trainjob.kube.names import QUEUE_LABEL
from trainjob.kube.prune import prune
from trainjob.kube.yaml import dump_all
from trainjob.targets import API_VERSION, DEFAULT, Target

NODE: Final = "node"
WORKER: Final = "worker"
LAUNCHER: Final = "launcher"
STEP_LABEL: Final = "trainer.kubeflow.org/trainjob-ancestor-step"
FRAMEWORK_LABEL: Final = "trainer.kubeflow.org/framework"
RANK_ANNOTATION: Final = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
GLOBAL_INDEX: Final = "metadata.annotations['jobset.sigs.k8s.io/job-global-index']"
MASTER_PORT: Final = 29500
# Where and under which name Trainer mounts the ssh key of an MPI job (kubeflow/trainer pkg/constants/constants.go). The
# folder is our choice: the default is root's home, which not every image's user has.
SSH_AUTH_PATH: Final = "/etc/mpi-ssh"
SSH_AUTH_VOLUME: Final = "mpi-ssh-auth"
MANAGER: Final = "trainjob.dev/builder"
# v1 had no limit by default. With kubelet's back-off of at most 5 minutes this is days of retries.
LARGE_BACKOFF: Final = 1000


@dataclass(frozen=True, slots=True)
class TrainJob:
    """A TrainJob and, where it needs one of its own, the TrainingRuntime to apply before it."""

    manifest: Mapping[str, Any]
    runtime: Mapping[str, Any] | None = None
    # (field, why) for everything that only a runtime can carry.
    reasons: tuple[tuple[str, str], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The TrainJob alone, as plain data."""
        return copy.deepcopy(dict(self.manifest))

    def objects(self) -> list[Mapping[str, Any]]:
        """Everything to apply, in order."""
        return [self.runtime, self.manifest] if self.runtime is not None else [self.manifest]

    def to_yaml(self) -> str:
        """All objects as one YAML stream."""
        return dump_all(self.objects())


def build(intent: TrainingIntent, runtime: Runtime, target: Target = DEFAULT, *, manager: str = MANAGER) -> TrainJob:
    """Objects for `intent` on `runtime`, in the shape of `target`. Pure and deterministic."""
    reasons = tuple(runtime_reasons(intent, target))
    derived = derive_runtime(intent, runtime, target) if reasons else None
    name, kind = (derived["metadata"]["name"], "TrainingRuntime") if derived else (runtime.name, runtime.kind)
    spec: dict[str, Any] = {
        "runtimeRef": {"apiGroup": API_VERSION.split("/")[0], "kind": kind, "name": name},
        "trainer": _trainer(intent),
    }
    if derived is None:
        patch = _patch(intent.role.pod, target, manager)
        if patch:
            spec[target.patches] = [patch]
    life = intent.lifetime
    spec["suspend"] = life.suspend
    if target.active_deadline:
        spec["activeDeadlineSeconds"] = life.active_deadline_seconds
    spec["managedBy"] = life.managed_by
    metadata = {
        "name": intent.name,
        "generateName": intent.generate_name,
        "namespace": intent.namespace,
        "labels": dict(intent.labels),
        "annotations": dict(intent.annotations),
    }
    manifest = prune({"apiVersion": API_VERSION, "kind": "TrainJob", "metadata": metadata, "spec": spec})
    return TrainJob(manifest, derived, reasons)


def _trainer(intent: TrainingIntent) -> dict[str, Any]:
    """`spec.trainer`. numNodes is always there: without `trainer` no PET_* is set (trainer#4076)."""
    nodes = intent.role.pods
    if intent.worker is not None:
        if intent.policy is not Policy.MPI:
            return {"numNodes": 1}
        nodes = intent.worker.pods  # `trainer` is the launcher; its numNodes sizes the job `node` (mpi.go)
    program = intent.role.program
    return {
        "numNodes": nodes,
        "numProcPerNode": intent.procs_per_node,
        "image": program.image,
        "command": _list(program.command),
        "args": _list(program.args),
        "env": copy.deepcopy(_list(program.env)),
        "resourcesPerNode": copy.deepcopy(dict(program.resources)),
    }


def _list(values: Sequence[Any] | None) -> list[Any] | None:
    return None if values is None else list(values)


# --- what a TrainJob can patch -----------------------------------------------------------------


def patchable(target: Target) -> tuple[frozenset[str], frozenset[str]]:
    """PodSpec fields and container fields that a TrainJob of this target can patch."""
    pod = {"volumes", "nodeSelector", "tolerations", "serviceAccountName", "schedulingGates"}
    container = {"volumeMounts"}
    if target.patch_affinity:
        pod.add("affinity")
    if target.patch_pull_secrets:
        pod.add("imagePullSecrets")
    if target.patch_security_context:
        pod.add("securityContext")
        container.add("securityContext")
    if target.patch_grace_period:
        pod.add("terminationGracePeriodSeconds")
    return frozenset(pod), frozenset(container)


def runtime_reasons(intent: TrainingIntent, target: Target) -> Iterator[tuple[str, str]]:
    """(field, why) for each part of the intent that needs a runtime of its own."""
    if intent.policy is not Policy.TORCH:
        yield f"mlPolicy.{intent.policy}", "the catalogue has runtimes with the torch policy only"
    if intent.worker is not None and intent.policy is not Policy.MPI:
        yield "two roles", "rank 0 and the other pods differ, and a TrainJob has one pod template"
    life = intent.lifetime
    if life.failure is not Failure.RUNTIME:
        yield "restartPolicy", f"{life.failure.value}; only a runtime holds it"
    if life.backoff_limit is not None:
        yield "backoffLimit", "the number of retries stands in the runtime's Job"
    if life.active_deadline_seconds is not None and not target.active_deadline:
        yield "activeDeadlineSeconds", f"TrainJobs of Trainer {target} have no deadline"
    pod_fields, container_fields = patchable(target)
    parts = intent.role.pod
    for key in parts.spec:
        if key not in pod_fields:
            yield key, f"a TrainJob of Trainer {target} cannot patch this pod field"
        elif key == "terminationGracePeriodSeconds" and QUEUE_LABEL in intent.labels:
            # Kueue 0.17 writes patches with the types of Trainer 2.2. JobSet then refuses the changed pods.
            yield key, "Kueue up to 0.19 takes it out of a queued TrainJob's patch, and the job never starts"
    for key, value in parts.container.items():
        if key == "ports" and not any(port.get("hostPort") for port in value):
            continue  # informs only: written where a runtime is generated anyway
        if key not in container_fields:
            yield key, f"a TrainJob of Trainer {target} cannot patch this container field"
    if parts.init_containers:
        yield "initContainers", "a patch cannot add containers"
    if parts.sidecars:
        yield "containers", "a patch cannot add containers"
    mounts = [m["name"] for m in parts.container.get("volumeMounts", ())]
    if len(set(mounts)) < len(mounts):
        yield "volumeMounts", "a patch lists mounts by volume name, and one volume is mounted twice"
    if (parts.labels or parts.annotations) and not target.patch_metadata:
        yield "pod labels and annotations", f"a TrainJob of Trainer {target} cannot set them"
    if intent.role.program.resources.get("claims"):
        yield "resources.claims", "Trainer drops device claims from a TrainJob"


def _patch(parts: PodParts, target: Target, manager: str) -> dict[str, Any] | None:
    """One patch entry in the target's shape, or None when there is nothing to patch."""
    metadata = prune({"labels": dict(parts.labels), "annotations": dict(parts.annotations)})
    spec = dict(parts.spec)
    container = {k: v for k, v in parts.container.items() if k != "ports"}
    if container:
        spec["containers"] = [{"name": NODE, **container}]
    spec = prune(copy.deepcopy(spec))
    if not metadata and not spec:
        return None
    if target.patches == "podSpecOverrides":
        return {"targetJobs": [{"name": NODE}], **(spec or {})}
    if target.patches == "podTemplateOverrides":
        return {"targetJobs": [{"name": NODE}], "metadata": metadata, "spec": spec}
    job = {"name": NODE, "template": {"spec": {"template": {"metadata": metadata, "spec": spec}}}}
    return {
        "manager": manager,
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}},
    }


def for_target(manifest: Mapping[str, Any], target: Target) -> Mapping[str, Any]:
    """A catalogue runtime, written for the newest Trainer, in the shape that `target` accepts."""
    if target.torch_nproc_in_runtime and "torch" in manifest["spec"].get("mlPolicy", {}):
        policy = {**manifest["spec"]["mlPolicy"], "torch": _torch(target)}
        manifest = {**manifest, "spec": {**manifest["spec"], "mlPolicy": policy}}
    if not target.failure_message_patterns:
        manifest = _without_final_exits(manifest)
    return manifest


def _without_final_exits(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """Without message patterns JobSet cannot tell exit codes that ask for no restart from disruptions.

    Such an exit then counts as any other failure. overlays/components/trainer-2.0 does the same.
    """
    jobset = manifest["spec"].get("template", {}).get("spec", {})
    rules = jobset.get("failurePolicy", {}).get("rules", [])
    kept = [rule for rule in rules if "onJobFailureMessagePatterns" not in rule]
    if kept == rules:
        return manifest
    out = copy.deepcopy(dict(manifest))
    spec = out["spec"]["template"]["spec"]
    spec["failurePolicy"]["rules"] = kept
    for job in spec["replicatedJobs"]:
        pods = job["template"]["spec"].get("podFailurePolicy", {})
        pods["rules"] = [rule for rule in pods.get("rules", []) if 64 not in _exit_codes(rule)]
    return out


def _exit_codes(rule: Mapping[str, Any]) -> list[int]:
    return rule.get("onExitCodes", {}).get("values", [])  # type: ignore[no-any-return]


# --- generated runtimes ------------------------------------------------------------------------


def derive_runtime(intent: TrainingIntent, runtime: Runtime, target: Target = DEFAULT) -> dict[str, Any]:
    """A namespaced TrainingRuntime: `runtime` with everything of the intent that it must carry.

    The same shape gives the same name, so 300 alike jobs share one runtime.
    """
    spec = copy.deepcopy(dict(runtime.manifest["spec"]))
    jobset = spec["template"]["spec"]
    job = next(j for j in jobset["replicatedJobs"] if j["name"] == NODE)
    spec["mlPolicy"] = _ml_policy(intent, target)
    if intent.policy is not Policy.TORCH:
        _training(job).pop("env", None)  # placeholders of the torch policy
    if intent.policy is Policy.MPI and intent.worker is not None:
        _mpi_jobs(jobset, job, intent.role, intent.worker, intent.lifetime)
    elif intent.worker is None:
        _fill_job(job, intent.role, intent.lifetime)
    else:
        other = copy.deepcopy(job)
        _fill_job(job, intent.role, intent.lifetime, whole=True)
        _fill_job(other, intent.worker, intent.lifetime, whole=True)
        del other["name"]
        other.pop("replicas", None)
        _not_the_trainer(other)
        jobset["replicatedJobs"].append({"name": WORKER, "replicas": intent.worker.pods, **other})
        # v1's rule: the job has succeeded when the Master has.
        jobset["successPolicy"] = {"operator": "All", "targetReplicatedJobs": [NODE]}
    if not target.active_deadline and intent.lifetime.active_deadline_seconds is not None:
        for each in jobset["replicatedJobs"]:
            each["template"]["spec"]["activeDeadlineSeconds"] = intent.lifetime.active_deadline_seconds
    torch = intent.policy is Policy.TORCH
    labels = {FRAMEWORK_LABEL: runtime.labels.get(FRAMEWORK_LABEL, "torch") if torch else intent.policy.value}
    stem = runtime.name.removesuffix("-multinode") if torch else f"{intent.policy}-v1-compat"
    name = f"{names.shorten(stem, 40)}-{names.content_hash([spec, target.name])}"
    metadata: dict[str, Any] = {"name": name}
    if intent.namespace:
        metadata["namespace"] = intent.namespace
    metadata["labels"] = labels
    if torch:
        metadata["annotations"] = {"trainjob.dev/derived-from": runtime.name}
    return {"apiVersion": API_VERSION, "kind": "TrainingRuntime", "metadata": metadata, "spec": spec}


def _training(job: Mapping[str, Any]) -> dict[str, Any]:
    """The training container of a replicatedJob."""
    containers = job["template"]["spec"]["template"]["spec"]["containers"]
    found: dict[str, Any] = next(c for c in containers if c["name"] == NODE)
    return found


def _not_the_trainer(job: dict[str, Any]) -> None:
    """Only rank 0, or the launcher, is what the TrainJob's `trainer` speaks of."""
    job["template"].get("metadata", {}).get("labels", {}).pop(STEP_LABEL, None)
    if not job["template"].get("metadata", {}).get("labels"):
        job["template"].pop("metadata", None)


def _mpi_jobs(jobset: dict[str, Any], base: dict[str, Any], launcher: Role, nodes: Role, life: Lifetime) -> None:
    """The jobs `node` and `launcher` of an MPI runtime, in the form of deepspeed-distributed (Trainer's manifests)."""
    job = copy.deepcopy(base)
    _fill_job(job, nodes, replace(life, failure=nodes.failure or life.failure), whole=True)
    _not_the_trainer(job)
    # Trainer overwrites both with numNodes; 2.0 and 2.1 only where the job says them.
    job["template"]["spec"] = {"parallelism": nodes.pods, "completions": nodes.pods, **job["template"]["spec"]}
    _fill_job(base, launcher, replace(life, failure=launcher.failure or life.failure))
    started = {"name": LAUNCHER, "dependsOn": [{"name": NODE, "status": "Ready"}]}
    jobset["replicatedJobs"] = [job, {**started, **{k: v for k, v in base.items() if k != "name"}}]
    jobset["successPolicy"] = {"operator": "All", "targetReplicatedJobs": [LAUNCHER]}


def _torch(target: Target) -> dict[str, Any]:
    """The torch policy of a runtime; Trainer 2.2 removed the field that 2.0 and 2.1 have."""
    return {"numProcPerNode": "auto"} if target.torch_nproc_in_runtime else {}


def _ml_policy(intent: TrainingIntent, target: Target) -> dict[str, Any]:
    if intent.policy is Policy.MPI:
        mpi = {"numProcPerNode": 1, "mpiImplementation": "OpenMPI", "sshAuthMountPath": SSH_AUTH_PATH}
        return {"numNodes": 1, "mpi": {**mpi, "runLauncherAsNode": False}}
    if intent.worker is not None:
        # Without the torch policy nothing counts the nodes of rank 0's job but this number.
        return {"numNodes": 1}
    if intent.policy is not Policy.TORCH:
        return {"numNodes": 1, intent.policy.value: {}}
    torch = _torch(target)
    if intent.env_targets and target.env_injection:
        names_ = list(intent.env_targets)
        torch["envInjection"] = {"targets": [{"jobName": NODE, "containerNames": names_}]}
    return {"numNodes": 1, "torch": torch}


def _fill_job(job: dict[str, Any], role: Role, life: Lifetime, *, whole: bool = False) -> None:
    """Write a role into a replicatedJob. `whole`: the program too, not only the pod around it."""
    batch = job["template"]["spec"]
    template = batch["template"]
    pod = template["spec"]
    base = next(c for c in pod["containers"] if c["name"] == NODE)
    parts = role.pod
    container: dict[str, Any] = {"name": NODE, "image": role.program.image or base.get("image")}
    if whole:
        container |= _drop_none(
            command=_list(role.program.command),
            args=_list(role.program.args),
            env=copy.deepcopy(_list(role.program.env)) or None,
            resources=copy.deepcopy(dict(role.program.resources)) or None,
        )
    elif base.get("env"):
        container["env"] = copy.deepcopy(base["env"])
    if not whole and role.program.resources.get("claims"):
        container["resources"] = copy.deepcopy(dict(role.program.resources))
    for key, value in base.items():
        # A whole program brings its own env; the placeholders of the base mean nothing without torch.
        if not (whole and key == "env"):
            container.setdefault(key, copy.deepcopy(value))
    _overlay(container, parts.container)
    pod["containers"] = [container, *(copy.deepcopy(dict(c)) for c in parts.sidecars)]
    if parts.init_containers:
        pod["initContainers"] = [copy.deepcopy(dict(c)) for c in parts.init_containers]
    _overlay(pod, parts.spec)
    metadata = template.setdefault("metadata", {})
    for key, extra in (("labels", parts.labels), ("annotations", parts.annotations)):
        if extra:
            metadata[key] = {**metadata.get(key, {}), **extra}
    del template["metadata"]
    if metadata:
        batch["template"] = {"metadata": metadata, **template}
    _lifetime(batch, pod, life)


# Lists that are merged by a key; every other list replaces the runtime's.
_MERGE_KEY: Final = {"volumes": "name", "imagePullSecrets": "name", "volumeMounts": "mountPath"}


def _overlay(base: dict[str, Any], extra: Mapping[str, Any]) -> None:
    for key, value in copy.deepcopy(dict(extra)).items():
        merge_key = _MERGE_KEY.get(key)
        if merge_key and key in base:
            mine = {item[merge_key] for item in value}
            base[key] = [item for item in base[key] if item[merge_key] not in mine] + value
        else:
            base[key] = value


def _lifetime(batch: dict[str, Any], pod: dict[str, Any], life: Lifetime) -> None:
    if life.failure is Failure.NEVER:
        pod["restartPolicy"] = "Never"
        batch["backoffLimit"] = 0
    elif life.failure is Failure.EXIT_CODE:
        pod["restartPolicy"] = "Never"
        batch["backoffLimit"] = LARGE_BACKOFF if life.backoff_limit is None else life.backoff_limit
        codes = {"containerName": NODE, "operator": "In", "values": list(range(1, 128))}
        batch["podFailurePolicy"] = {"rules": [{"action": "FailJob", "onExitCodes": codes}]}
    elif life.backoff_limit is not None:
        batch["backoffLimit"] = life.backoff_limit


def _drop_none(**values: Any) -> dict[str, Any]:
    return {k: v for k, v in values.items() if v is not None}
