"""Jobs of the other v1 kinds from a few keywords, and what becomes of them."""

from __future__ import annotations

import copy
from typing import Any

from tests.migrate.rules.support import Chain, chain, says
from trainjob.findings import Finding, Severity
from trainjob.kube import yaml
from trainjob.migrate import migrate_text
from trainjob.targets import DEFAULT, Target
from trainjob.v1.kinds import JAX, MPI, XGBOOST, Kind

Obj = dict[str, Any]


def role(
    kind: Kind, replicas: int | None = 1, container: Obj | None = None, pod: Obj | None = None, **more: Any
) -> Obj:
    """A replica spec with one training container."""
    main = {"name": kind.container, "image": "reg.io/img:1", "command": ["python", "train.py"], **(container or {})}
    main = {k: v for k, v in main.items() if v is not None}
    out: Obj = {"template": {"spec": {"containers": [main], **(pod or {})}}, **more}
    return out if replicas is None else {"replicas": replicas, **out}


def job(kind: Kind, roles: Obj, spec: Obj | None = None, metadata: Obj | None = None) -> Obj:
    """A job of a kind, called `demo`."""
    return copy.deepcopy(
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": kind.name,
            "metadata": {"name": "demo"} if metadata is None else metadata,
            "spec": {kind.specs: roles, **(spec or {})},
        }
    )


def jax(container: Obj | None = None, pod: Obj | None = None, *, replicas: int = 2, **more: Any) -> Obj:
    """A JAXJob of two Workers that restart OnFailure."""
    top = {k: more.pop(k) for k in ("spec", "metadata") if k in more}
    return job(JAX, {"Worker": role(JAX, replicas, container, pod, **{"restartPolicy": "OnFailure", **more})}, **top)


def xgboost(container: Obj | None = None, *, workers: int = 2, worker: Obj | None = None, **top: Any) -> Obj:
    """An XGBoostJob of a Master and Workers. `worker`: what the Workers' container has instead."""
    roles = {"Master": role(XGBOOST, 1, container, restartPolicy="OnFailure")}
    if workers:
        own = {**(container or {}), **(worker or {})}
        roles["Worker"] = role(XGBOOST, workers, own, restartPolicy="OnFailure")
    return job(XGBOOST, roles, **top)


def mpi(
    launcher: Obj | None = None,
    worker: Obj | None = None,
    *,
    workers: int | None = 2,
    launcher_pod: Obj | None = None,
    worker_pod: Obj | None = None,
    launcher_role: Obj | None = None,
    worker_role: Obj | None = None,
    **top: Any,
) -> Obj:
    """An MPIJob that starts `mpirun` on its Workers, which have no command."""
    program = {"command": ["mpirun", "-np", "2", "python", "train.py"], **(launcher or {})}
    roles = {"Launcher": role(MPI, 1, program, launcher_pod, **(launcher_role or {}))}
    if workers is not None:
        roles["Worker"] = role(MPI, workers, {"command": None, **(worker or {})}, worker_pod, **(worker_role or {}))
    return job(MPI, roles, **top)


def refused(data: Obj, code: str, pattern: str, target: Target = DEFAULT) -> Finding:
    """The only error; the job is not written."""
    result = migrate_text(yaml.dump(data), file="job.yaml", target=target)
    assert (result.converted, result.refused, result.text) == (0, 1, "")
    errors = [f for f in result.findings if f.severity is Severity.ERROR]
    assert [f.code for f in errors] == [code], [f.text() for f in errors]
    assert errors[0].fix
    return says(errors, "error", pattern)


def values(out: Chain) -> dict[str, str | None]:
    """Literal variables of the TrainJob's trainer; a field reference by its path."""
    return {
        name: e.get("value") or e.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
        for name, e in out.env.items()
    }


__all__ = ["Chain", "chain", "jax", "job", "mpi", "refused", "role", "says", "values", "xgboost"]
