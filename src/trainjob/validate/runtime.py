"""Checks of a TrainingRuntime or ClusterTrainingRuntime: what Trainer and its SDK expect of one.

The webhook looks at replicas and container names of labelled jobs alone (kubeflow/trainer v2.3.0
pkg/webhooks/trainingruntime_webhook.go); everything else fails only when a TrainJob runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from trainjob.findings import Finding
from trainjob.kube.schema import Path
from trainjob.targets import GROUP
from trainjob.validate.case import Case
from trainjob.validate.merge import launcher_is_node
from trainjob.validate.trainjob import RESERVED_ENV, TORCH_ENV, missing_injections
from trainjob.validate.view import (
    CONTAINER_OF_STEP,
    DATASET,
    JOBS_PATH,
    LAUNCHER,
    MODEL,
    NODE,
    STEP_LABEL,
    TRAINER,
    count,
    dig,
    entries,
    mapping,
    text,
)

FRAMEWORK_LABEL: Final = f"{GROUP}/framework"
WEBHOOK_LABEL: Final = f"{GROUP}/webhook-validation"
_JOBSET: Final = ("spec", "template", "spec")
_NAME_PART: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")


def check_metadata(case: Case) -> Iterator[Finding]:
    """TJ550, TJ573, TJ574."""
    metadata = mapping(case.obj.get("metadata"))
    labels = mapping(metadata.get("labels"))
    path: Path = ("metadata", "labels")
    if not labels.get(FRAMEWORK_LABEL):
        framework = case.policy or "torch"
        yield case.find(
            "TJ550", path, "the Python SDK skips a runtime without a framework label",
            f"add the label {FRAMEWORK_LABEL}: {framework}",
        )  # fmt: skip
    if labels.get(WEBHOOK_LABEL) == "disabled":
        yield case.find(
            "TJ574", (*path, WEBHOOK_LABEL), "this label switches the runtime webhook off", "remove the label"
        )
    if case.kind == "ClusterTrainingRuntime" and metadata.get("namespace"):
        yield case.find("TJ573", ("metadata", "namespace"), "a ClusterTrainingRuntime is cluster-scoped", "remove it")


def check_policy(case: Case) -> Iterator[Finding]:
    """TJ516, TJ551, TJ575, TJ576."""
    ml = dig(case.obj, "spec", "mlPolicy")
    path: Path = ("spec", "mlPolicy")
    if ml is None:
        yield case.find(
            "TJ551", path, "without mlPolicy the Python SDK fails, and resourcesPerNode may be ignored",
            "add `mlPolicy: {numNodes: 1}`",
        )  # fmt: skip
    nodes = count(dig(ml, "numNodes"))
    if nodes is not None and nodes < 1:
        yield case.find("TJ516", (*path, "numNodes"), f"numNodes is {nodes}: must be >= 1")
    if case.target.env_injection:
        for index, job, container in missing_injections(case.obj):
            yield case.find(
                "TJ575", (*path, "torch", "envInjection", "targets", index),
                f'envInjection target podSet "{job}" container "{container}" not found in runtime template',
            )  # fmt: skip
    names = {job.name for job in case.jobs}
    if case.policy == "mpi" and launcher_is_node(case.obj) and not {LAUNCHER, NODE} <= names:
        yield case.find(
            "TJ576", (*path, "mpi", "runLauncherAsNode"),
            "runLauncherAsNode needs both jobs, launcher and node; without them only one node can be used",
        )  # fmt: skip


def check_steps(case: Case) -> Iterator[Finding]:
    """TJ552 to TJ557, TJ577, TJ578: labels, names and containers of the jobs."""
    all_jobs = case.jobs
    framework = case.policy
    if not any(job.step == TRAINER for job in all_jobs):
        yield case.find(
            "TJ552", JOBS_PATH, "no job is labelled as trainer, so spec.trainer of a TrainJob has no effect",
            f"add the label {STEP_LABEL}: trainer to the Job template",
        )  # fmt: skip
    for job in all_jobs:
        if not _NAME_PART.match(job.name):
            yield case.find("TJ578", (*job.path, "name"), f'"{job.name}" cannot be part of a pod name')
        if not job.step:
            continue
        label: Path = (*job.path, "template", "metadata", "labels", STEP_LABEL)
        if job.step not in CONTAINER_OF_STEP:
            fix = f"use one of {', '.join(CONTAINER_OF_STEP)}"
            yield case.find("TJ553", label, f'"{job.step}" is no step that Trainer knows', fix)
            continue
        if job.replicas != 1:
            yield case.find("TJ554", (*job.path, "replicas"), f"always must be 1, not {job.replicas}")
        wanted = CONTAINER_OF_STEP[job.step]
        if wanted not in job.containers():
            yield case.find(
                "TJ555", (*job.pod_path, "containers"),
                f"must contain the required container for the ancestor: {job.step}",
                f'call the container "{wanted}"',
            )  # fmt: skip
        if job.step == TRAINER and framework in ("torch", "jax", "xgboost") and job.name != NODE:
            yield case.find(
                "TJ556", (*job.path, "name"),
                f'the master address is <trainjob>-node-0-0, but this job is called "{job.name}"',
                'call the job "node"',
            )  # fmt: skip
        if job.step in (DATASET, MODEL) and job.name != job.step:
            yield case.find(
                "TJ557", (*job.path, "name"),
                f'Trainer looks for a job called "{job.step}", not "{job.name}"',
                f'call the job "{job.step}"',
            )  # fmt: skip
        if framework == "flux" and job.name == NODE and "flux-installer" in job.containers("initContainers"):
            path: Path = (*job.pod_path, "initContainers")
            yield case.find("TJ577", path, "InitContainer 'flux-installer' is reserved")


def check_overwritten(case: Case) -> Iterator[Finding]:
    """TJ520, TJ558 to TJ561: fields that Trainer sets itself, or that work against it."""
    spec = mapping(dig(case.obj, *_JOBSET))
    if spec.get("ttlSecondsAfterFinished") is not None:
        yield case.find(
            "TJ559", (*_JOBSET, "ttlSecondsAfterFinished"),
            "when the TTL deletes the JobSet, Trainer makes it again and the finished job runs again",
            "remove the TTL; delete finished TrainJobs instead",
        )  # fmt: skip
    if spec.get("suspend") is not None:
        fix = "remove it; a TrainJob has spec.suspend"
        yield case.find("TJ560", (*_JOBSET, "suspend"), "Trainer overwrites suspend with the TrainJob's", fix)
    if spec.get("managedBy") is not None:
        yield case.find(
            "TJ561", (*_JOBSET, "managedBy"), "JobSet ignores an object that another controller manages",
            "remove it; a TrainJob has spec.managedBy",
        )  # fmt: skip
    if dig(spec, "network", "subdomain"):
        yield case.find(
            "TJ558", (*_JOBSET, "network", "subdomain"),
            "the master address uses the TrainJob's name as subdomain, so a fixed one cannot be resolved",
            "remove the subdomain",
        )  # fmt: skip
    with_policy = dig(case.obj, "spec", "mlPolicy") is not None
    for job in case.jobs:
        for field in ("parallelism", "completions"):
            value = job.spec.get(field)
            if job.step == TRAINER and with_policy and value is not None:
                yield case.find(
                    "TJ560", (*job.spec_path, field), f"Trainer overwrites {field} with numNodes", "remove it"
                )
        if job.spec.get("ttlSecondsAfterFinished") is not None:
            yield case.find(
                "TJ559", (*job.spec_path, "ttlSecondsAfterFinished"),
                "when the TTL deletes a finished Job, JobSet runs it again", "remove the TTL",
            )  # fmt: skip
        yield from _overwritten_env(case, job.pod_path, job.pod, job.step)


def _overwritten_env(case: Case, pod_path: Path, pod: object, step: str) -> Iterator[Finding]:
    """A PET_* with a value is replaced; an empty one is a placeholder that fixes the order."""
    names = RESERVED_ENV.get(case.policy, frozenset())
    for number, container in entries(pod, "containers"):
        if step != TRAINER or container.get("name") != NODE:
            continue
        for index, env in entries(container, "env"):
            name = text(env.get("name"))
            if name in names and (env.get("value") or env.get("valueFrom") is not None):
                path = (*pod_path, "containers", number, "env", index)
                fix = "remove it, or leave the value empty to fix its place" if name in TORCH_ENV else "remove it"
                yield case.find("TJ520", path, f"Trainer overwrites {name}", fix)


def check_gang(case: Case) -> Iterator[Finding]:
    """TJ569, TJ570: pkg/runtime/framework/plugins/{coscheduling,volcano}."""
    group = mapping(dig(case.obj, "spec", "podGroupPolicy"))
    chosen = [name for name in ("coscheduling", "volcano") if group.get(name) is not None]
    if not chosen:
        return
    path: Path = ("spec", "podGroupPolicy", chosen[0])
    all_jobs = case.jobs
    if any(job.step in (DATASET, MODEL) for job in all_jobs):
        yield case.find(
            "TJ569", path,
            "the group counts the trainer pods, which do not exist until the initializers are done",
            "use Kueue instead of podGroupPolicy for runtimes with initializers",
        )  # fmt: skip
    for job in all_jobs:
        if not job.pod.get("schedulerName"):
            yield case.find(
                "TJ570", (*job.pod_path, "schedulerName"),
                f"{chosen[0]} needs its scheduler, and Trainer does not set schedulerName",
                "set schedulerName" + (": volcano" if chosen[0] == "volcano" else ""),
            )  # fmt: skip


# What the SDK looks for in the limits of `node` (kubeflow 0.5 trainer/backends/kubernetes/utils.py).
_SDK_DEVICES: Final = ("nvidia.com/gpu", "google.com/tpu", "huawei.com/Ascend910", "cpu")


def check_sdk(case: Case) -> Iterator[Finding]:
    """TJ571, TJ572: one runtime that the SDK cannot read makes list_runtimes() fail for every user."""
    for job in case.jobs:
        if job.step != TRAINER:
            continue
        for index, container in entries(job.pod, "containers"):
            if container.get("name") != NODE:
                continue
            path = (*job.pod_path, "containers", index, "resources", "limits")
            limits = mapping(dig(container, "resources", "limits"))
            slices = [key for key in limits if key.startswith("nvidia.com/mig-")]
            if limits and not slices and not any(key in limits for key in _SDK_DEVICES):
                yield case.find(
                    "TJ571", path, 'the Python SDK fails with "Unknown device type" on these limits',
                    "add a cpu limit, or remove the limits",
                )  # fmt: skip
            if len(slices) > 1:
                yield case.find("TJ571", path, "the Python SDK fails on two kinds of MIG slices")
            for key, value in limits.items():
                if isinstance(value, int | float) and not isinstance(value, bool):
                    yield case.find(
                        "TJ572", (*path, key), f"the Python SDK reads the number {value} as {float(value)}",
                        f'write "{value}" in quotes',
                    )  # fmt: skip
