"""The offline validator and the real server judge the same objects alike."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.kube import Kubectl
from tests.e2e.test_admission import running_target
from tests.validate import broken_jobs, broken_patches, broken_runtimes, broken_schema
from tests.validate.broken import Broken
from tests.validate.objects import runtime, trainjob
from trainjob.findings import Severity
from trainjob.kube.yaml import dump_all
from trainjob.targets import DEFAULT
from trainjob.validate import BY_CODE

# Accepted at admission, and broken afterwards: the JobSet or the Job is refused, shown only as an
# Event, or the pods cannot do what they should. The validator is stricter here on purpose.
LATER = {
    "TJ513": "JobSet refuses the pod names",
    "TJ514": "JobSet refuses the name",
    "TJ516": "0 nodes complete at once, without running anything",
    "TJ517": "the framework cannot start so many processes",
    "TJ524": "spec.trainer has no effect",
    "TJ530": "the pod template is invalid",
    "TJ532": "the pod template is invalid",
    "TJ533": "the pod template is invalid",
    "TJ534": "the pod template is invalid",
    "TJ535": "the pod template is invalid",
    "TJ536": "the pod template is invalid",
    "TJ537": "the pod template is invalid",
    "TJ538": "the pod template is invalid",
    "TJ541": "Kueue adds a second entry of its own manager",
    "TJ542": "the JobSet gets a job that has no template",
    "TJ543": "the Job gets a container without an image",
    "TJ544": "the Job gets a container without an image",
    "TJ547": "what is patched twice is decided by order",
    "TJ552": "nothing trains",
    "TJ556": "rank 0 has another address than Trainer says",
    "TJ557": "the initializer is not found at admission of its TrainJob",
    "TJ558": "rank 0 has another address than Trainer says",
    "TJ561": "nobody reconciles the JobSet",
    "TJ562": "the Job is refused",
    "TJ563": "the Job is refused",
    "TJ564": "the JobSet is refused",
    "TJ566": "the JobSet is refused",
    "TJ567": "the JobSet is refused",
    "TJ568": "the JobSet is refused",
    "TJ575": "the target is missing when its TrainJob comes",
    "TJ576": "the launcher is multiplied",
    "TJ577": "the plug-in's own container is refused later",
    "TJ578": "the Job's name is refused",
    "TJ526": "the queue is checked when its TrainJob comes",
    "TJ522": "the initializer is checked when its TrainJob comes",
}

# Trainer's mutating webhook writes the object anew before the schema looks at it, so a TrainJob may
# say 0.5; a runtime may not. The validator asks for the quoted form in both.
REWRITTEN = {"float quantity"}


def verdict(kubectl: Kubectl, case: Broken, *, job: bool) -> str:
    """What the server says to a broken object; its runtime is created first, under its own name."""
    obj = copy.deepcopy(dict(case.obj))
    name = f"{kubectl.namespace}-rt"
    if job:
        base: dict[str, Any] = copy.deepcopy(dict(case.runtime or runtime(case.target)))
        said = ""
        if obj.get("spec", {}).get("runtimeRef", {}).get("name") == base["metadata"]["name"]:
            base["metadata"]["name"] = name
            said = kubectl.run(
                "apply", "--server-side", "--force-conflicts", "-f", "-", stdin=dump_all([base]), check=False
            )
            if "serverside-applied" not in said:
                return said.strip()
            obj["spec"]["runtimeRef"]["name"] = name
        obj.setdefault("metadata", {}).pop("namespace", None) if isinstance(obj.get("metadata"), dict) else None
    try:
        return kubectl.dry_run(dump_all([obj]))
    finally:
        if job:
            kubectl.run("delete", "clustertrainingruntime", name, "--ignore-not-found", check=False)


@pytest.mark.ci
@pytest.mark.matrix
def test_what_the_server_refuses_is_refused_offline(kubectl: Kubectl, seen: Callable[[str], None]) -> None:
    """Over 100 broken objects: each error of the validator is a refusal of the server, or a fault that
    shows only after admission (listed), and each warning is accepted."""
    target = running_target(kubectl)
    cases = [(c, True) for c in broken_schema.ALL + broken_jobs.ALL + broken_patches.ALL if c.target is target]
    cases += [(c, False) for c in broken_runtimes.ALL if c.target is target]
    refused, later, wrong = 0, {}, []
    for case, is_job in cases:
        said = verdict(kubectl, case, job=is_job)
        error = BY_CODE[case.code].severity is Severity.ERROR or any(
            BY_CODE[c].severity is Severity.ERROR for c in case.also
        )
        if said and not error:
            wrong.append(f"the server refuses what {case.code} {case.name} only warns of: {said[:200]}")
        elif said:
            refused += 1
        elif error and case.name in REWRITTEN:
            later.setdefault(case.code, []).append(case.name)
        elif error and case.code not in LATER:
            wrong.append(f"the server accepts {case.code} {case.name}")
        elif error:
            later.setdefault(case.code, []).append(case.name)
    assert wrong == []
    assert len(cases) > (90 if target is DEFAULT else 3)
    seen(f"{len(cases)} objects: {refused} refused by both, {sum(map(len, later.values()))} fail after admission")


@pytest.mark.ci
@pytest.mark.matrix
def test_valid_objects_are_accepted(kubectl: Kubectl) -> None:
    """The valid TrainJob and runtime of the validator's own tests pass the real webhooks."""
    target = running_target(kubectl)
    good = Broken("valid", trainjob(target), "TJ501", "", "", target)
    assert verdict(kubectl, good, job=True) == ""
