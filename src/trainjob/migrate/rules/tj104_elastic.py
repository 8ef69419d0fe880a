"""elasticPolicy: the rendezvous is kept, growing and shrinking is not.

What it does: backend, endpoint, id, conf and maxRestarts become PET_RDZV_* and PET_MAX_RESTARTS in
`trainer.env`; the number of nodes is what v1 started with.
Why it matters: Trainer 2.0 to 2.3 have no elastic jobs; `PET_NNODES` is reserved, and TrainJob has no
scale subresource that an HPA could drive (kubeflow/trainer#2903).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trainjob.emit import NODE
from trainjob.findings import Finding
from trainjob.migrate.rule import Claim, Draft, Outcome, Rule, Say
from trainjob.v1.pytorchjob import DEFAULT_PORT, PORT_NAME, PyTorchJob
from trainjob.v1.traced import derived

# torchrun's own default for c10d (torch, torch/distributed/elastic/rendezvous/c10d_rendezvous_backend.py).
_C10D_PORT = 29400
_AT = ("spec", "elasticPolicy")


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    elastic = job.elastic
    if elastic is None:
        return
    say = Say("TJ104", job)
    if "Worker" not in job.roles:
        raise say.refuse(
            _AT, "elasticPolicy without a Worker is refused by v1", "add a Worker, or remove elasticPolicy"
        )
    workers = job.roles["Worker"].replicas
    low, high = elastic.get("minReplicas"), elastic.get("maxReplicas")
    low, high = (high if low is None else low), (low if high is None else high)
    bounds = f"{workers if low is None else low} to {workers if high is None else high}"
    yield say.warning(
        _AT,
        f"the job is fixed at {draft.nodes} node{'s' if draft.nodes != 1 else ''}; v1 allowed {bounds} Workers. "
        "A TrainJob does not grow or shrink",
        "torchrun's own --nnodes=min:max on the command line tolerates missing nodes while the Job retries",
    )
    if elastic.get("metrics"):
        yield say.warning(
            (*_AT, "metrics"), "the HorizontalPodAutoscaler is dropped: a TrainJob has no scale subresource"
        )
    if "Master" not in job.roles:
        yield say.warning(
            _AT,
            "success: in v1 the job had succeeded when any Worker had; now every pod must end with 0",
            "make sure that no process waits for a peer that has finished",
        )
    draft.rendezvous = list(_env(job, draft, elastic))
    if elastic.get("maxRestarts") is not None:
        yield say.note(
            (*_AT, "maxRestarts"),
            "PET_MAX_RESTARTS is carried: torchrun restarts its own processes so often, apart from the pod's restarts",
            "a restart inside torchrun with a static rendezvous can hang; c10d is the safer backend",
        )


def _env(job: PyTorchJob, draft: Draft, elastic: Any) -> Iterator[dict[str, Any]]:
    backend = elastic.get("rdzvBackend") or "c10d"
    yield {"name": "PET_RDZV_BACKEND", "value": backend}
    host, port, own = elastic.get("rdzvHost"), elastic.get("rdzvPort"), None
    if not host or host == f"{job.name}-worker-0":
        host = f"{draft.name}-{NODE}-0-0.{draft.name}" if draft.name else "$(PET_MASTER_ADDR)"
        port, own = port or _C10D_PORT, draft.name
    elif port is None:
        port = _named_port(job)
    yield {"name": "PET_RDZV_ENDPOINT", "value": derived(f"{host}:{port}", elastic.get("rdzvHost"), own, port)}
    if elastic.get("rdzvId"):
        yield {"name": "PET_RDZV_ID", "value": derived(str(elastic["rdzvId"]), elastic["rdzvId"])}
    conf = [f"{c.get('key')}={c.get('value')}" for c in elastic.get("rdzvConf") or ()]
    if conf:
        yield {"name": "PET_RDZV_CONF", "value": derived(",".join(conf), elastic["rdzvConf"])}
    if elastic.get("maxRestarts") is not None:
        yield {"name": "PET_MAX_RESTARTS", "value": derived(str(elastic["maxRestarts"]), elastic["maxRestarts"])}
    if elastic.get("standalone"):
        yield {"name": "PET_STANDALONE", "value": derived("1", elastic["standalone"])}


def _named_port(job: PyTorchJob) -> int:
    for role in job.roles.values():
        index = role.main()
        for port in (role.containers[index].get("ports") or ()) if index is not None else ():
            if port.get("name") == PORT_NAME:
                number: int = port.get("containerPort") or DEFAULT_PORT
                return number
    return DEFAULT_PORT


_FIELDS = ("minReplicas", "maxReplicas", "metrics")
_CARRIED = ("rdzvBackend", "rdzvHost", "rdzvPort", "rdzvId", "rdzvConf", "maxRestarts", "standalone")
RULE = Rule(
    "TJ104",
    "elastic-policy",
    (
        *(Claim(f"spec.elasticPolicy.{f}", Outcome.DROPPED) for f in _FIELDS),
        *(Claim(f"spec.elasticPolicy.{f}", Outcome.TRANSLATED, "spec.trainer.env PET_*") for f in _CARRIED),
    ),
    _apply,
)
