"""Checks of the JobSet inside a runtime: what JobSet and the Job API refuse once a TrainJob runs.

A TrainJob shows such a refusal only as an Event. kubernetes-sigs/jobset v0.12.0
pkg/webhooks/jobset_webhook.go; kubernetes v1.34 pkg/apis/batch/validation/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from trainjob.findings import Finding
from trainjob.kube.names import is_subdomain
from trainjob.kube.schema import Path
from trainjob.validate.case import Case
from trainjob.validate.view import JOBS_PATH, dig, entries, listed, mapping, text

_JOBSET: Final = ("spec", "template", "spec")
_RULE_NAME: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?\Z")
_REASONS: Final = (
    "BackoffLimitExceeded", "DeadlineExceeded", "FailedIndexes", "MaxFailedIndexesExceeded",
    "PodFailurePolicy",
)  # fmt: skip
_GATED_ACTIONS: Final = ("RestartJob", "RestartJobAndIgnoreMaxRestarts")


def check_restart(case: Case) -> Iterator[Finding]:
    """TJ562, TJ563: JobSet fills in OnFailure where restartPolicy is missing."""
    for job in case.jobs:
        policy = job.pod.get("restartPolicy")
        if policy not in (None, "", "OnFailure", "Never"):
            yield case.find(
                "TJ562", (*job.pod_path, "restartPolicy"),
                f"a Job allows restartPolicy OnFailure or Never, not {policy}",
            )  # fmt: skip
        elif job.spec.get("podFailurePolicy") is not None and policy != "Never":
            yield case.find(
                "TJ563", (*job.spec_path, "podFailurePolicy"),
                "podFailurePolicy needs restartPolicy Never, and JobSet's default is OnFailure",
                "set restartPolicy: Never in the pod template",
            )  # fmt: skip


def check_failure_policy(case: Case) -> Iterator[Finding]:
    """TJ564, TJ565, TJ567."""
    policy = mapping(dig(case.obj, *_JOBSET, "failurePolicy"))
    path: Path = (*_JOBSET, "failurePolicy")
    names = {job.name for job in case.jobs}
    if policy.get("restartStrategy") == "InPlaceRestart":
        yield case.find(
            "TJ565", (*path, "restartStrategy"), "InPlaceRestart needs the JobSet feature gate of that name"
        )
    seen: dict[str, int] = {}
    for index, rule in entries(policy, "rules"):
        at: Path = (*path, "rules", index)
        name = text(rule.get("name"))
        if (name and not _RULE_NAME.match(name)) or len(name) > 128:
            yield case.find(
                "TJ564", (*at, "name"), f'invalid failure policy rule name "{name[:40]}"',
                "use at most 128 letters, digits, '_', ',' or ':' (no hyphens), beginning with a letter",
            )  # fmt: skip
        if name and seen.setdefault(name, index) != index:
            told = f'rule names are not unique: rule {seen[name]} is "{name}" too'
            yield case.find("TJ564", (*at, "name"), told)
        for number, reason in enumerate(listed(rule.get("onJobFailureReasons"))):
            if reason not in _REASONS:
                yield case.find(
                    "TJ564", (*at, "onJobFailureReasons", number),
                    f"invalid job failure reason '{reason}'", f"use one of {', '.join(_REASONS)}",
                )  # fmt: skip
        if rule.get("action") in _GATED_ACTIONS:
            yield case.find("TJ565", (*at, "action"), f"{rule['action']} needs the JobSet feature gate RestartJob")
        yield from _targets(case, rule, at, names)


def check_success_policy(case: Case) -> Iterator[Finding]:
    """TJ567: also of the coordinator."""
    names = {job.name for job in case.jobs}
    policy = mapping(dig(case.obj, *_JOBSET, "successPolicy"))
    yield from _targets(case, policy, (*_JOBSET, "successPolicy"), names)
    coordinator = dig(case.obj, *_JOBSET, "coordinator", "replicatedJob")
    if isinstance(coordinator, str) and coordinator not in names:
        path: Path = (*_JOBSET, "coordinator", "replicatedJob")
        yield case.find("TJ567", path, f"coordinator replicatedJob {coordinator} does not exist")


def _targets(case: Case, rule: Mapping[str, Any], path: Path, names: set[str]) -> Iterator[Finding]:
    for index, name in enumerate(listed(rule.get("targetReplicatedJobs"))):
        if not isinstance(name, str) or name not in names:
            yield case.find(
                "TJ567", (*path, "targetReplicatedJobs", index),
                f"invalid replicatedJob name '{name}' does not appear in .spec.ReplicatedJobs",
                f"the runtime has: {', '.join(sorted(names)) or 'no job'}",
            )  # fmt: skip


def check_depends_on(case: Case) -> Iterator[Finding]:
    """TJ566."""
    before: set[str] = set()
    for number, job in entries(case.obj, *_JOBSET, "replicatedJobs"):
        name = text(job.get("name"))
        path: Path = (*JOBS_PATH, number, "dependsOn")
        if number == 0 and job.get("dependsOn") is not None:
            yield case.find("TJ566", path, "DependsOn can't be set for the first ReplicatedJob")
        else:
            for index, on in entries(job, "dependsOn"):
                other = text(on.get("name"))
                if other == name:
                    yield case.find("TJ566", (*path, index, "name"), f"job {name} waits for itself")
                elif other not in before:
                    yield case.find(
                        "TJ566", (*path, index, "name"),
                        f"replicatedJob: {name} cannot depend on replicatedJob: {other}",
                        "a job can depend only on jobs that stand before it",
                    )  # fmt: skip
        before.add(name)


def check_volume_claims(case: Case) -> Iterator[Finding]:
    """TJ568."""
    all_jobs = case.jobs
    mounted = {
        text(mount.get("name"))
        for job in all_jobs
        for part in ("initContainers", "containers")
        for _, container in entries(job.pod, part)
        for _, mount in entries(container, "volumeMounts")
    }
    seen: set[str] = set()
    for index, entry in entries(case.obj, *_JOBSET, "volumeClaimPolicies"):
        for number, template in entries(entry, "templates"):
            name = text(dig(template, "metadata", "name"))
            path: Path = (*_JOBSET, "volumeClaimPolicies", index, "templates", number, "metadata", "name")
            if not is_subdomain(name):
                yield case.find("TJ568", path, "a volume claim template needs a valid name")
                continue
            if name in seen:
                yield case.find("TJ568", path, "names must be unique for VolumeClaimPolicies template")
            seen.add(name)
            if name not in mounted:
                yield case.find(
                    "TJ568", path,
                    "replicatedJob containers don't have a matching volumeMount: "
                    f"{name} from VolumeClaimPolicies",
                )  # fmt: skip
            for job in all_jobs:
                for place, volume in entries(job.pod, "volumes"):
                    if volume.get("name") == name:
                        yield case.find(
                            "TJ568", (*job.pod_path, "volumes", place, "name"),
                            f"volume name conflicts with VolumeClaimPolicy template name: {name}",
                        )  # fmt: skip
