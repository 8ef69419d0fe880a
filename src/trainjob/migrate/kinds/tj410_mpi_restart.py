"""What happens to an MPIJob when its launcher or a Worker fails.

What it does: the launcher's restartPolicy becomes that of the job `launcher`, the Workers' that of the job `node`;
Never, the default of both, fails the TrainJob at the first failed pod.
Why it matters: v1 failed the MPIJob when the launcher's pod failed or a Worker was evicted. ExitCode restarted
nothing in an MPIJob: its pods got Never and the controller makes no new launcher (v1.9.4 mpijob_controller.go).
"""

from __future__ import annotations

from collections.abc import Iterator

from trainjob.emit import LARGE_BACKOFF
from trainjob.findings import Finding
from trainjob.intent import Failure
from trainjob.migrate.rule import POD, REPLICA, Claim, Draft, Outcome, Rule, Say
from trainjob.v1.pytorchjob import PyTorchJob

_KNOWN = ("OnFailure", "Never", "ExitCode", "Always")


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    say = Say("TJ410", job)
    for role in draft.roles:
        replica = role.replica
        at = (*replica.path, "restartPolicy")
        policy = replica.data.get("restartPolicy") or job.kind.restart_policy
        if policy not in _KNOWN:
            raise say.refuse(at, f"v1 knows no restartPolicy {policy!r}", f"use one of {', '.join(_KNOWN)}")
        own = replica.pod.get("restartPolicy")
        if own and own != policy:
            yield say.note(
                (*replica.pod_path, "restartPolicy"),
                f"the pod template's restartPolicy {own} is ignored, as in v1: the replica's {policy} holds",
            )
        role.failure = Failure.NEVER if policy in ("Never", "ExitCode") else Failure.RUNTIME
        if policy == "ExitCode":
            yield say.note(at, "restartPolicy ExitCode becomes Never: in an MPIJob it restarted nothing")
        elif policy == "Always":
            yield say.warning(
                at,
                "restartPolicy Always becomes OnFailure: in v1 a pod that ended with 0 was started again; now the job "
                "will finish",
            )
        if role.failure is Failure.RUNTIME and job.run_policy.get("backoffLimit") is None:
            yield say.note(at, f"restarts: v1 had no limit, the generated runtime allows {LARGE_BACKOFF}")
    launcher, worker = draft.roles
    draft.failure = launcher.failure or Failure.RUNTIME
    if worker.failure is Failure.NEVER:
        yield say.note(
            (*worker.replica.path, "restartPolicy"),
            "a Worker's pod that fails now fails the TrainJob; v1 saw it only through mpirun, or when it was evicted",
        )


RULE = Rule(
    "TJ410",
    "mpi-restart",
    (
        Claim(f"{REPLICA}.restartPolicy", Outcome.TRANSLATED, "TrainingRuntime restartPolicy, backoffLimit"),
        Claim(f"{POD}.restartPolicy", Outcome.DROPPED),
    ),
    _apply,
)
