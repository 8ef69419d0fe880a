"""Parts of the generated shapes: v1 jobs whose every pod runs the probe."""

from __future__ import annotations

import copy
from typing import Any, Final

from tests.e2e.differential.image import IMAGE, PROBE
from tests.e2e.differential.shape import Object
from tests.e2e.kube import TRAIN_IMAGE

SMALL: Final = {"requests": {"cpu": "20m", "memory": "32Mi"}}
NAME: Final = "demo"


def role(replicas: int = 1, policy: str = "OnFailure", pod: Object | None = None, **container: Any) -> Object:
    """A replica whose container has these fields."""
    main = {"name": "pytorch", "image": IMAGE, "resources": copy.deepcopy(SMALL), **container}
    parts = copy.deepcopy(pod or {})
    template = {key: parts.pop(key) for key in ("metadata",) if key in parts}
    containers = [main, *parts.pop("containers", [])]
    template["spec"] = {**parts, "containers": containers}
    return {"replicas": replicas, "restartPolicy": policy, "template": template}


def job(
    master: Object | None, worker: Object | None, *, run_policy: Object | None = None, meta: Object | None = None,
    **spec: Any,
) -> Object:  # fmt: skip
    """A PyTorchJob called `demo`."""
    roles = {name: copy.deepcopy(r) for name, r in (("Master", master), ("Worker", worker)) if r is not None}
    body: Object = {**spec, "pytorchReplicaSpecs": roles}
    if run_policy:
        body["runPolicy"] = run_policy
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": NAME, **copy.deepcopy(meta or {})},
        "spec": body,
    }


def both(workers: int, policy: str = "OnFailure", pod: Object | None = None, **container: Any) -> tuple[Object, Object]:
    """A Master and equal Workers."""
    return role(1, policy, pod, **container), role(workers, policy, pod, **container)


def with_torch(command: list[str]) -> Object:
    """Container fields and volumes that run a command with the real torch; the probe is /probe/probe.py."""
    return {
        "image": TRAIN_IMAGE,
        "command": command,
        "env": [{"name": "OMP_NUM_THREADS", "value": "1"}],
        "volumeMounts": [{"name": "probe", "mountPath": "/probe"}],
        "resources": {"requests": {"cpu": "50m", "memory": "256Mi"}},
        "pod": {"volumes": [{"name": "probe", "configMap": {"name": "probe"}}]},
    }


def probe_map() -> Object:
    """The ConfigMap that `with_torch` mounts."""
    data = {"probe.py": PROBE.read_text(encoding="utf-8")}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "probe"}, "data": data}
