"""Shapes that show what becomes of a job: ends, retries, clean-up, deadlines, suspension, queues."""

from __future__ import annotations

from typing import Any, Final

from tests.e2e.differential.jobs import both, job, role
from tests.e2e.differential.shape import Act, Object, Shape, Until
from tests.e2e.differential.staging import stage

_RUN: Final[Object] = {"command": ["python", "train.py"]}
_GRACE: Final = {"terminationGracePeriodSeconds": 1}


def _job(
    plan: str, policy: str = "OnFailure", workers: int = 1, *, run: Object | None = None, meta: Object | None = None,
    **container: Any,
) -> Object:  # fmt: skip
    """A job whose ranks end by plan."""
    env = [{"name": "PROBE_PLAN", "value": plan}]
    master, worker = both(workers, policy, _GRACE, env=env, **_RUN, **container)
    return job(master, worker if workers else None, run_policy=run, meta=meta)


def _unlike(plan: str) -> Object:
    """A job whose roles differ in a variable, so that each becomes a job of the runtime."""
    master, worker = (
        role(pod=_GRACE, env=[{"name": "PROBE_PLAN", "value": plan}, {"name": "WHO", "value": who}], **_RUN)
        for who in ("lead", "crew")
    )
    return job(master, worker)


def behaviour() -> tuple[Shape, ...]:
    queue = {"labels": {"kueue.x-k8s.io/queue-name": "team"}}
    urgent = {"labels": {"kueue.x-k8s.io/queue-name": "team", "kueue.x-k8s.io/priority-class": "conformance-urgent"}}
    gpus: Object = {"resources": {"limits": {"nvidia.com/gpu": 1}, "requests": {"cpu": "20m", "memory": "32Mi"}}}
    small: Object = {"resources": {"requests": {"cpu": "20m"}, "limits": {"memory": "48Mi"}}}
    made: list[tuple[str, Object, dict[str, Any]]] = [
        ("clean-up-none", _job("1:sleep=6", run={"cleanPodPolicy": "None"}), {}),
        ("clean-up-running", _job("1:sleep=6", run={"cleanPodPolicy": "Running"}), {}),
        ("clean-up-all", _job("*:exit=0", run={"cleanPodPolicy": "All"}), {}),
        ("exit-1-backoff-1", _job("0:exit=1", run={"backoffLimit": 1}), {"state": True}),
        ("exit-1-never", _job("0:exit=1", "Never"), {"ci": True}),
        ("exit-1-exit-code", _job("0:exit=1", "ExitCode"), {}),
        ("worker-exit-1-never", _job("0:sleep=20;1:exit=1", "Never"), {}),
        ("worker-exit-1-on-failure", _job("0:sleep=12;1:exit=1"), {"seconds": 50, "state": True}),
        ("retried-137-exit-code", _job("0:once=137", "ExitCode"), {"state": True}),
        ("retried-143-exit-code", _job("1:once=143", "ExitCode"), {"state": True}),
        ("retried-3-on-failure", _job("1:once=3"), {"state": True}),
        ("out-of-memory-never", _job("0:oom", "Never", **small), {}),
        ("deadline", _job("*:sleep=100", run={"activeDeadlineSeconds": 20}), {}),
        ("time-to-live", _job("*:exit=0", run={"ttlSecondsAfterFinished": 2}), {"act": Act.WATCH_END}),
        ("roles-differ-worker-goes-on", _unlike("1:sleep=15"), {}),
        ("always", _job("*:exit=0", "Always", 0), {"seconds": 40}),
        ("suspended", _job("*:exit=0", run={"suspend": True}), {"until": Until.SUSPENDED, "seconds": 30}),
        ("suspend-and-resume", _job("*:sleep=9"), {"act": Act.SUSPEND, "ci": True}),
        ("queue", _job("*:exit=0", workers=2, meta=queue, **gpus), {}),
        ("queue-priority", _job("*:exit=0", meta=urgent, **gpus), {"ci": True}),
        ("queue-suspended", _job("*:exit=0", meta=queue, run={"suspend": True}, **gpus), {}),
    ]
    out = []
    for name, document, options in made:
        if options.pop("state", False):
            _keep_state(document)
        staged = stage([document])
        out.append(Shape(f"end/{name}", tuple(staged.documents), tuple(staged.objects), **options))
    return tuple(out)


def _keep_state(document: Object) -> None:
    """Adds the claim in which the probe counts its tries."""
    for replica in document["spec"]["pytorchReplicaSpecs"].values():
        pod = replica["template"]["spec"]
        pod["volumes"] = [{"name": "state", "persistentVolumeClaim": {"claimName": "state"}}]
        main = pod["containers"][0]
        main["volumeMounts"] = [{"name": "state", "mountPath": "/state"}]
        main["env"].append({"name": "PROBE_STATE", "value": "/state"})
