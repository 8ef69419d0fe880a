"""TJ401: what a failed process means."""

from __future__ import annotations

from typing import Any

import pytest

from tests.migrate.rules.support import MASTER, POD, alone, chain, refusal, v1
from trainjob.intent import Failure
from trainjob.migrate.rules import tj401_restart_policy
from trainjob.targets import TARGETS, Target

RULE = tj401_restart_policy.RULE
AT = f"{MASTER}.restartPolicy"


@pytest.mark.parametrize("role", [{}, {"restartPolicy": "OnFailure"}])
def test_noop_for_the_default_but_for_the_limit(role: Any) -> None:
    """OnFailure is what the runtime does; that there is a limit now is told once."""
    data = v1(role=role)
    ran = alone(RULE, data)
    ran.says("note", "restarts: v1 had no limit, the runtime torch-v1-compat allows 1000", at=AT)
    assert ran.draft.failure is Failure.RUNTIME
    assert chain(data).runtime is None


def test_a_limit_of_the_jobs_own_says_enough() -> None:
    """No note beside backoffLimit."""
    assert alone(RULE, v1(spec={"runPolicy": {"backoffLimit": 3}})).findings == []


def test_always_ends_now() -> None:
    """A v1 job with it never succeeded."""
    ran = alone(RULE, v1(role={"restartPolicy": "Always"}))
    ran.says("warning", "Always becomes OnFailure.*the job will finish", at=AT)
    assert ran.draft.failure is Failure.RUNTIME


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_never_needs_a_runtime(target: Target) -> None:
    """Pods are not restarted, and the first failed one fails the job."""
    data = v1(role={"restartPolicy": "Never"})
    alone(RULE, data).says(
        "note", "restartPolicy Never: a generated runtime fails the job at the first failed pod", at=AT
    )
    batch = chain(data, target).batch()
    assert batch["backoffLimit"] == 0
    assert batch["template"]["spec"]["restartPolicy"] == "Never"


@pytest.mark.parametrize(("limit", "expected"), [(None, 1000), (4, 4)])
def test_exit_code_needs_a_runtime(limit: int | None, expected: int) -> None:
    """Codes 1 to 127 fail the job, others start the pod again, up to the limit."""
    run_policy = {} if limit is None else {"backoffLimit": limit}
    data = v1(role={"restartPolicy": "ExitCode"}, spec={"runPolicy": run_policy})
    alone(RULE, data).says("note", "restartPolicy ExitCode: .* exit codes 1 to 127", at=AT)
    batch = chain(data).batch()
    (rule,) = batch["podFailurePolicy"]["rules"]
    assert rule["onExitCodes"] == {"containerName": "node", "operator": "In", "values": list(range(1, 128))}
    assert rule["action"] == "FailJob"
    assert (batch["backoffLimit"], batch["template"]["spec"]["restartPolicy"]) == (expected, "Never")


def test_an_unknown_policy_is_refused() -> None:
    """v1 has four."""
    assert "v1 knows no restartPolicy 'Sometimes'" in refusal(RULE, v1(role={"restartPolicy": "Sometimes"})).message


def test_two_policies_are_refused() -> None:
    """But a role without replicas has no say."""
    data = v1(
        workers=1, role={"restartPolicy": "Never"}, worker={"role": {"replicas": 1, "restartPolicy": "OnFailure"}}
    )
    assert "Master restarts Never, Worker OnFailure" in refusal(RULE, data).message
    data["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = 0
    assert alone(RULE, data).draft.failure is Failure.NEVER


@pytest.mark.parametrize(("own", "told"), [("Always", True), ("OnFailure", False)])
def test_the_pod_templates_own_policy_is_ignored(own: str, told: bool) -> None:
    """v1 overwrote it; told where it says something else."""
    ran = alone(RULE, v1(pod={"restartPolicy": own}))
    found = [f.where.path for f in ran.findings if f.where and "is ignored, as in v1" in f.message]
    assert found == ([f"{POD}.restartPolicy"] if told else [])
    assert chain(v1(pod={"restartPolicy": own})).runtime is None
