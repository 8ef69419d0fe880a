"""restartPolicy: OnFailure is what the runtime does, Never and ExitCode need a runtime of their own.

What it does: OnFailure or unset stays; Always becomes OnFailure; Never becomes pod restartPolicy
Never with backoffLimit 0; ExitCode becomes Never with a podFailurePolicy on exit codes 1 to 127.
Why it matters: a wrong one either retries a broken program for hours or gives up at the first lost
pod. The pod template's own restartPolicy was overwritten by v1 and is ignored.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainjob.emit import LARGE_BACKOFF
from trainjob.findings import Finding
from trainjob.intent import Failure
from trainjob.migrate.rule import POD, REPLICA, Claim, Draft, Outcome, Rule, Say
from trainjob.v1.kinds import PYTORCH
from trainjob.v1.pytorchjob import PyTorchJob


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    say = Say("TJ401", job)
    policies = {
        role: replica.data.get("restartPolicy") or job.kind.restart_policy for role, replica in job.roles.items()
    }
    first = next(iter(job.roles.values()))
    for replica in job.roles.values():
        own = replica.pod.get("restartPolicy")
        if own and own != policies[replica.role]:
            yield say.note(
                (*replica.pod_path, "restartPolicy"),
                f"the pod template's restartPolicy {own} is ignored, as in v1: the replica's "
                f"{policies[replica.role]} holds",
            )
    if len(set(policies.values())) > 1:
        raise say.refuse(
            (*first.path, "restartPolicy"),
            f"Master restarts {policies['Master']}, Worker {policies['Worker']}; one runtime has one failure policy",
            "give both the same restartPolicy",
        )
    policy, at = policies[first.role], (*first.path, "restartPolicy")
    if policy == "Always":
        yield say.warning(
            at,
            "restartPolicy Always becomes OnFailure: in v1 a pod that ended with 0 was started again and the job "
            "never succeeded; now the job will finish",
        )
    elif policy == "Never":
        draft.failure = Failure.NEVER
        yield say.note(
            at, "restartPolicy Never: a generated runtime fails the job at the first failed pod (backoffLimit 0)"
        )
        return
    elif policy == "ExitCode":
        draft.failure = Failure.EXIT_CODE
        yield say.note(
            at,
            "restartPolicy ExitCode: a generated runtime fails the job on exit codes 1 to 127 and starts the pod "
            "again on others; peers are not restarted, as in v1",
        )
    elif policy != "OnFailure":
        raise say.refuse(at, f"v1 knows no restartPolicy {policy!r}", "use OnFailure, Never, ExitCode or Always")
    if job.run_policy.get("backoffLimit") is None and policy != "ExitCode":
        yield say.note(
            at,
            f"restarts: v1 had no limit, the {_runtime(job)} allows {LARGE_BACKOFF} for the whole job "
            "(a stock runtime 6, after which the pods and their logs are gone)",
        )


def _runtime(job: PyTorchJob) -> str:
    return "runtime torch-v1-compat" if job.kind is PYTORCH else "generated runtime"


RULE = Rule(
    "TJ401",
    "restart-policy",
    (
        Claim(f"{REPLICA}.restartPolicy", Outcome.TRANSLATED, "TrainingRuntime restartPolicy, backoffLimit"),
        Claim(f"{POD}.restartPolicy", Outcome.DROPPED),
    ),
    _apply,
)
