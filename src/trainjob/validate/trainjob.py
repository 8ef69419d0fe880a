"""Checks of a TrainJob itself and against its runtime.

What the webhook of each Trainer version refuses (kubeflow/trainer v2.0.1 to v2.3.0
pkg/runtime/framework/plugins/*, pkg/webhooks/trainjob_webhook.go) and what it accepts although the
job cannot work or does something else than it says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from trainjob.catalog import TOPOLOGY
from trainjob.findings import Finding
from trainjob.kube import names, quantity
from trainjob.kube.schema import Path
from trainjob.targets import GROUP
from trainjob.validate.case import Case
from trainjob.validate.merge import launcher_is_node
from trainjob.validate.view import (
    DATASET,
    LAUNCHER,
    MODEL,
    NODE,
    TRAINER,
    count,
    dig,
    entries,
    jobs,
    listed,
    mapping,
    since,
    text,
)

RUNTIME_KINDS: Final = ("ClusterTrainingRuntime", "TrainingRuntime")
_REF: Final = ("spec", "runtimeRef")

# kubeflow/trainer v2.3.0 pkg/constants/constants.go and pkg/runtime/framework/plugins/jax/jax.go
TORCH_ENV: Final = frozenset(
    {"PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"}
)
RESERVED_ENV: Final[Mapping[str, frozenset[str]]] = {
    "torch": TORCH_ENV,
    "mpi": frozenset({
        "OMPI_MCA_orte_default_hostfile", "OMPI_MCA_plm_rsh_args", "OMPI_MCA_orte_keep_fqdn_hostnames",
        "OMPI_MCA_orte_set_default_slots",
    }),
    "xgboost": frozenset({"DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER"}),
    "jax": frozenset({"JAX_NUM_PROCESSES", "JAX_PROCESS_ID", "JAX_COORDINATOR_ADDRESS"}),
}  # fmt: skip


def runtime_ref(obj: Mapping[str, Any]) -> tuple[str, str, str]:
    """(group, kind, name) of the runtime of a TrainJob, with the defaults of the CRD."""
    ref = mapping(dig(obj, *_REF))
    group, kind = ref.get("apiGroup"), ref.get("kind")
    return (
        GROUP if group is None else text(group),
        RUNTIME_KINDS[0] if kind is None else text(kind),
        text(ref.get("name")),
    )


def check_runtime_ref(case: Case) -> Iterator[Finding]:
    """TJ510, TJ512."""
    group, kind, name = runtime_ref(case.obj)
    if group != GROUP or kind not in RUNTIME_KINDS:
        field = "apiGroup" if group != GROUP else "kind"
        wanted = GROUP if group != GROUP else " or ".join(RUNTIME_KINDS)
        yield case.find("TJ510", (*_REF, field), f"unsupported runtime: {kind}.{group}", f"use {wanted}")
    labels = mapping(dig(case.runtime, "metadata", "labels"))
    if labels.get(f"{GROUP}/support") == "deprecated" and since(case.target, "2.1"):
        better = text(mapping(dig(case.runtime, "metadata", "annotations")).get("trainjob.dev/replaced-by"))
        fix = f'use "{better}"' if better else ""
        yield case.find("TJ512", (*_REF, "name"), f'{kind} "{name}" is deprecated and will be removed', fix)


def check_name(case: Case) -> Iterator[Finding]:
    """TJ513, TJ514: JobSet makes `<trainjob>-<job>-<index>-<index>-<5 random>` of it, at most 63."""
    metadata = mapping(dig(case.obj, "metadata"))
    name, field = text(metadata.get("name")), "name"
    if not name and text(metadata.get("generateName")):
        name, field = text(metadata["generateName"])[:58] + "xxxxx", "generateName"
    if not name:
        return
    path: Path = ("metadata", field)
    if not since(case.target, "2.1") and names.is_subdomain(name) and not names.is_label(name):
        yield case.find(
            "TJ514", path, "JobSet makes a Service of this name, which must be an RFC 1035 label",
            "use at most 63 lower case letters, digits and '-', beginning with a letter",
        )  # fmt: skip
    parts = [(m.name, m.job.replicas, m.pods) for m in case.merged if m.name]
    if not parts:
        parts = [(NODE, 1, count(case.trainer.get("numNodes")) or 1)]
    tails = [f"-{job}-{max(replicas - 1, 0)}-{max(pods - 1, 0)}-abcde" for job, replicas, pods in parts]
    tail = max(tails, key=len)
    budget = names.MAX_NAME - len(tail)
    if len(name) > budget:
        longest = tail.removesuffix("-abcde").lstrip("-")
        yield case.find(
            "TJ513", path,
            f"the name has {len(name)} characters, at most {budget} fit: pods are called "
            f"<name>-{longest}-<5 random>, with 63 characters at most",
            f"shorten the name to {budget} characters",
        )  # fmt: skip


def check_topology(case: Case) -> Iterator[Finding]:
    """TJ528: the admission lock (overlays/components/multi-node-gate) refuses it where it is installed."""
    nodes = count(case.trainer.get("numNodes")) or 1
    metadata = mapping(dig(case.runtime, "metadata"))
    if nodes > 1 and mapping(metadata.get("labels")).get(TOPOLOGY) == "single-node":
        yield case.find(
            "TJ528", ("spec", "trainer", "numNodes"),
            f"{nodes} nodes on {text(metadata.get('name'))}, a runtime for one: the gate refuses the job",
            f"keep the tune on one node until it does not fit; then use a runtime with {TOPOLOGY}: multi-node",
        )  # fmt: skip


_SETS: Final[Mapping[str, str]] = {"jax": "JAX_*", "xgboost": "DMLC_*", "flux": "FLUX_*"}


def check_trainer_present(case: Case) -> Iterator[Finding]:
    """TJ515: kubeflow/trainer#4076. The MPI and PlainML plug-ins do not depend on spec.trainer."""
    if dig(case.obj, "spec", "trainer") is None and not (case.runtime is not None and case.policy in ("", "mpi")):
        yield case.find(
            "TJ515", ("spec", "trainer"),
            f"without spec.trainer Trainer sets no {_SETS.get(case.policy, 'PET_*')} variables and no port",
            "add `trainer: {numNodes: 1}`",
        )  # fmt: skip


def check_numbers(case: Case) -> Iterator[Finding]:
    """TJ516, TJ517: numNodes and numProcPerNode."""
    nodes = count(case.trainer.get("numNodes"))
    if nodes is not None and nodes < 1:
        yield case.find(
            "TJ516", ("spec", "trainer", "numNodes"),
            f"must be >= 1, not {nodes}" + (": the job is complete without running" if nodes == 0 else ""),
        )  # fmt: skip
    processes = case.trainer.get("numProcPerNode")
    path: Path = ("spec", "trainer", "numProcPerNode")
    if isinstance(processes, str) and case.target.torch_nproc_in_runtime:
        if case.policy == "mpi":
            yield case.find("TJ517", path, "must have an int value for MPI TrainJob")
        elif processes not in ("auto", "cpu", "gpu") and (case.runtime is None or case.policy == "torch"):
            yield case.find("TJ517", path, f'must have an int value or [auto cpu gpu], not "{processes}"')
    elif (number := count(processes)) is not None and number < 1:
        what = f"must be greater than or equal to 1, not {number}"
        yield case.find("TJ517", path, what + (" for Flux TrainJob" if case.policy == "flux" else ""))


def check_processes(case: Case) -> Iterator[Finding]:
    """TJ518, TJ527: PET_NPROC_PER_NODE comes from spec.trainer.resourcesPerNode alone when that is set,
    and only names with "gpu" count as GPUs (pkg/runtime/framework/plugins/torch/torch.go, trainer#3974)."""
    merged = next((m for m in case.merged if m.job.step == TRAINER), None)
    if merged is None or not case.trainer:
        return
    asked = case.trainer.get("resourcesPerNode")
    before = _node_resources(merged.job.pod)
    path: Path = ("spec", "trainer", "resourcesPerNode")
    try:
        devices = quantity.accelerators(_node_resources(merged.pod))
        dropped = [d for d in quantity.accelerators(before) if d not in devices]
        counted = quantity.names_gpu(mapping(asked) if asked is not None else before)
    except (ValueError, AttributeError):  # no quantities, reported by the schema
        return
    if dropped:
        yield case.find(
            "TJ527", path,
            f"Trainer {case.target} replaces the resources of the runtime: {', '.join(dropped)} is lost",
            "repeat every resource of the runtime in resourcesPerNode",
        )  # fmt: skip
    if not devices or counted or not _processes_are_guessed(case):
        return
    listed_ = ", ".join(devices)
    fix = f"set numProcPerNode to {int(sum(devices.values()))}"
    if "gpu" in listed_.lower():
        message = f"resourcesPerNode does not repeat {listed_} of the runtime, so a process per CPU starts"
        fix = f"repeat {listed_} in resourcesPerNode, or {fix}"
    else:
        message = f"Trainer does not count {listed_} as GPUs, so a process per CPU starts"
    yield case.find("TJ518", path if asked is not None else ("spec", "trainer"), message, fix)


def _processes_are_guessed(case: Case) -> bool:
    """Whether Trainer works out PET_NPROC_PER_NODE from resources."""
    if case.policy != "torch" or case.trainer.get("numProcPerNode") is not None:
        return False
    if not since(case.target, "2.1") and case.trainer.get("resourcesPerNode") is None:
        return False  # 2.0 passes `auto` on
    default = dig(case.runtime, "spec", "mlPolicy", "torch", "numProcPerNode")
    return not case.target.torch_nproc_in_runtime or default in (None, "auto")


def _node_resources(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    for _, container in entries(pod, "containers"):
        if container.get("name") == NODE:
            return mapping(container.get("resources"))
    return {}


def check_env(case: Case) -> Iterator[Finding]:
    """TJ519, TJ520. Without a runtime the names of torch count."""
    reserved = RESERVED_ENV.get(case.policy or ("" if case.runtime is not None else "torch"), frozenset())
    refused = _refuses_env(case)
    for index, env in entries(case.trainer, "env"):
        name = text(env.get("name"))
        path: Path = ("spec", "trainer", "env", index, "name")
        if name in reserved and refused:
            told = f"must not have reserved envs, invalid envs configured: [{name}]"
            if case.policy == "xgboost":
                told = f"{name} is reserved for the XGBoost runtime"
            yield case.find("TJ519", path, told, "remove the variable: Trainer sets it")
        elif name in reserved:
            yield case.find(
                "TJ520", path, f"Trainer overwrites {name}",
                "remove it; numNodes and numProcPerNode are the way to change it",
            )  # fmt: skip


def _refuses_env(case: Case) -> bool:
    """Since when a webhook refuses the reserved names, by framework.

    Up to Trainer 2.1 the torch check is reached only with numProcPerNode (plugins/torch/torch.go:56-84).
    """
    if case.policy == "mpi":
        return since(case.target, "2.3")
    if case.policy == "jax":
        return False
    return not case.target.torch_nproc_in_runtime or case.trainer.get("numProcPerNode") is not None


def check_initializers(case: Case) -> Iterator[Finding]:
    """TJ522: plugins/jobset/jobset.go; the mount named `initializer` is asked for since 2.3."""
    if case.runtime is None:
        return
    by_name = {job.name: job for job in case.jobs}
    for field, config, name in (("dataset", "datasetConfig", DATASET), ("model", "modelConfig", MODEL)):
        if dig(case.obj, "spec", "initializer", field) is None:
            continue
        path: Path = ("spec", "initializer", field)
        job = by_name.get(name)
        fix = "use a runtime with this initializer, or remove the field"
        if job is None:
            message = f"must have {name} job when trainJob is configured with input {config}"
            yield case.find("TJ522", path, message, fix)
        elif name not in job.containers() | job.containers("initContainers"):
            yield case.find("TJ522", path, f"must have container with name - {name} in the {name} job", fix)
        elif since(case.target, "2.3") and not any(
            mount.get("name") == "initializer"
            for _, container in entries(job.pod, "containers")
            if container.get("name") == name
            for _, mount in entries(container, "volumeMounts")
        ):
            message = f"must have volumeMount with name - initializer in container {name} of the {name} job"
            yield case.find("TJ522", path, message, fix)


def check_trainer_reaches(case: Case) -> Iterator[Finding]:
    """TJ524, TJ525: what of spec.trainer arrives nowhere."""
    if not case.trainer:
        return
    path: Path = ("spec", "trainer")
    if case.runtime is not None and not any(job.step == TRAINER for job in case.jobs):
        yield case.find(
            "TJ524", path, "the runtime has no job labelled as trainer, so spec.trainer has no effect",
            f"label a job of the runtime with {GROUP}/trainjob-ancestor-step: trainer",
        )  # fmt: skip
    resources = mapping(case.trainer.get("resourcesPerNode"))
    at = (*path, "resourcesPerNode")
    if resources.get("claims"):
        fix = "put the claims into a runtime and leave resourcesPerNode out"
        yield case.find("TJ525", (*at, "claims"), "Trainer drops device claims of a TrainJob", fix)
    if (
        resources
        and case.runtime is not None
        and since(case.target, "2.3")
        and dig(case.runtime, "spec", "mlPolicy") is None
    ):
        fix = "add an mlPolicy to the runtime, or set the resources there"
        yield case.find("TJ525", at, "the runtime has no mlPolicy, so resourcesPerNode is ignored", fix)


def check_frameworks(case: Case) -> Iterator[Finding]:
    """TJ526, TJ575 to TJ577: what the plug-ins check of the runtime when a TrainJob comes."""
    runtime = case.runtime
    if runtime is None:
        return
    by_name = {job.name: job for job in case.jobs}
    several = (count(case.trainer.get("numNodes")) or 1) >= 2
    both = {LAUNCHER, NODE} <= by_name.keys()
    if several and case.policy == "mpi" and launcher_is_node(runtime) and not both:
        yield case.find(
            "TJ576", ("spec", "trainer", "numNodes"),
            "must have 1 when MPI trainingRuntime with enabled runLauncherAsNode does not have either "
            "launcher and node",
        )  # fmt: skip
    if case.target.env_injection:
        for _, job, container in missing_injections(runtime):
            yield case.find(
                "TJ575", _REF,
                f'envInjection target podSet "{job}" container "{container}" not found in runtime template',
            )  # fmt: skip
    node = by_name.get(NODE)
    if case.policy == "flux" and node is not None and "flux-installer" in node.containers("initContainers"):
        yield case.find("TJ577", _REF, "InitContainer 'flux-installer' is reserved")
    if dig(runtime, "spec", "podGroupPolicy", "volcano") is not None:
        for path, annotations in _jobset_annotations(case):
            if annotations.get(QUEUE) == "":
                yield case.find("TJ526", (*path, QUEUE), "Volcano queue name must not be empty")


QUEUE: Final = "scheduling.volcano.sh/queue-name"


def _jobset_annotations(case: Case) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    if case.target.patches == "runtimePatches":
        for index, patch in entries(case.obj, "spec", "runtimePatches"):
            at: Path = ("trainingRuntimeSpec", "template", "metadata", "annotations")
            yield (
                ("spec", "runtimePatches", index, *at),
                mapping(dig(patch, "trainingRuntimeSpec", "template", "metadata", "annotations")),
            )
    else:
        yield ("spec", "annotations"), mapping(dig(case.obj, "spec", "annotations"))


def missing_injections(runtime: Mapping[str, Any]) -> Iterator[tuple[int, str, str]]:
    """(index of the target, job, container) of envInjection targets that the runtime does not have."""
    containers = {job.name: job.containers() | job.containers("initContainers") for job in jobs(runtime)}
    for index, target in entries(runtime, "spec", "mlPolicy", "torch", "envInjection", "targets"):
        job = text(target.get("jobName"))
        for name in map(text, listed(target.get("containerNames"))):
            if name not in containers.get(job, ()):
                yield index, job, name
