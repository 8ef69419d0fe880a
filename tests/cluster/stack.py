"""The controllers on the cluster: Trainer with JobSet, Kueue, the v1 Training Operator."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from . import container, kind, manifests
from .context import Context
from .images import Source
from .problems import ClusterError
from .shell import tail
from .versions import KUEUE_MANAGER, OPERATOR_MANAGER, STORAGE_MANAGER, Manager, Trainer

# What is installed is written down in the cluster itself, so that it is gone when the cluster is.
_RECORD: Final = "trainjob-cluster"
_READY_SECONDS: Final = 300
_NAMESPACE: Final = "default"
# Part of every cluster: namespace and deployment of the name service and the storage provisioner.
_BELOW: Final = (("kube-system", "coredns"), (STORAGE_MANAGER.namespace, STORAGE_MANAGER.deployment))
_POD: Final[dict[str, Any]] = {"containers": [{"name": "probe", "image": "probe:1"}], "restartPolicy": "Never"}


@dataclass(frozen=True, slots=True)
class Part:
    """One thing to install: its managers, how its manifests are made, and a probe for its webhook."""

    name: str
    managers: tuple[Manager, ...]
    render: Callable[[Context, Path], str]
    probes: tuple[dict[str, Any], ...]

    @property
    def recipe(self) -> str:
        """Names everything that the manifests are made from."""
        how = container.recipe(Path(manifests.__file__).read_text(), *self.managers)
        return " ".join([*(manager.program.module.at for manager in self.managers), how])


def parts(trainer: Trainer) -> list[Part]:
    """The stack with this Trainer."""
    jobset = trainer.jobset_manager
    return [
        Part(
            "trainer",
            (trainer.manager, jobset),
            lambda ctx, kubectl: manifests.trainer(ctx, kubectl, trainer.manager, jobset),
            (_PROBE_RUNTIME, _PROBE_JOBSET),
        ),
        Part(
            "training-operator",
            (OPERATOR_MANAGER,),
            lambda ctx, kubectl: manifests.operator(ctx, kubectl, OPERATOR_MANAGER),
            (_PROBE_PYTORCHJOB,),
        ),
        # Last: it has a say in every Deployment, and until it is ready none gets through.
        Part(
            "kueue",
            (KUEUE_MANAGER,),
            lambda ctx, kubectl: manifests.kueue(ctx, kubectl, KUEUE_MANAGER),
            (_PROBE_QUEUE,),
        ),
    ]


def install(ctx: Context, source: Source, kubectl: Path, trainer: Trainer) -> None:
    """Installs what is missing or changed, then waits until every webhook answers."""
    stack = parts(trainer)
    installed = record(ctx, kubectl)
    todo = [part for part in stack if installed.get(part.name) != part.recipe]
    if todo:
        with ctx.progress.step("images of the managers"):
            for here, there in source.managers([manager for part in todo for manager in part.managers]).items():
                kind.load(ctx, here, there)
        for part in todo:
            with ctx.progress.step(f"install {part.name}"):
                _apply(ctx, kubectl, part)
        _write_record(ctx, kubectl, {**installed, **{part.name: part.recipe for part in todo}})
    with ctx.progress.step("managers ready"):
        wait(ctx, kubectl, trainer)


def wait(ctx: Context, kubectl: Path, trainer: Trainer) -> None:
    """Waits until every manager is available and its webhook answers."""
    deadline = time.monotonic() + _READY_SECONDS
    for part in parts(trainer):
        for manager in part.managers:
            where = (manager.namespace, manager.deployment)
            _until(ctx, kubectl, deadline, where, partial(_available, ctx, kubectl, where))
        for probe in part.probes:
            where = (part.managers[0].namespace, part.managers[0].deployment)
            _until(ctx, kubectl, deadline, where, partial(_answers, ctx, kubectl, probe))
    for where in _BELOW:
        _until(ctx, kubectl, deadline, where, partial(_available, ctx, kubectl, where))
    _until(ctx, kubectl, deadline, ("kube-system", "kube-apiserver"), partial(_discovers, ctx, kubectl))


def record(ctx: Context, kubectl: Path) -> dict[str, str]:
    """Part -> recipe of what was installed."""
    got = ctx.sh.run(
        kubectl, "get", "configmap", _RECORD, "--namespace=kube-system", "--ignore-not-found", "--output=json",
        timeout=30,
    ).out  # fmt: skip
    data: dict[str, str] = json.loads(got).get("data", {}) if got.strip() else {}
    return data


def webhook_answered(printed: str) -> bool:
    """Whether a dry run was answered by the webhook, be it with a refusal, and not by its absence."""
    signs = ("failed calling webhook", "connection refused", "no endpoints available", "no matches for kind", "x509")
    return not any(sign in printed for sign in (*signs, "service unavailable", "i/o timeout", "Unable to connect"))


def is_rolled_out(deployment: dict[str, Any]) -> bool:
    """Whether all pods of a deployment are of its latest form, and available."""
    status = deployment.get("status", {})
    counts = {status.get(key, 0) for key in ("replicas", "updatedReplicas", "availableReplicas")}
    return status.get("observedGeneration", 0) >= deployment["metadata"]["generation"] and counts == {
        deployment["spec"].get("replicas", 1)
    }


def namespaces(trainer: Trainer) -> set[str]:
    """Where the pods of the cluster itself are."""
    return {manager.namespace for part in parts(trainer) for manager in part.managers} | {where for where, _ in _BELOW}


def _apply(ctx: Context, kubectl: Path, part: Part) -> None:
    rendered = part.render(ctx, kubectl)
    (ctx.folder / f"{part.name}.yaml").write_text(rendered)
    deadline = time.monotonic() + 120
    while True:
        command = (kubectl, "apply", "--server-side", "--force-conflicts", "--filename=-")
        applied = ctx.sh.run(*command, stdin=rendered, timeout=180, check=False)
        if applied.ok:
            return
        # A new kind is served a moment after its definition was accepted, a webhook when its manager is ready.
        if time.monotonic() > deadline or webhook_answered(applied.err):
            raise ClusterError(
                f"cannot install {part.name}", f"see {ctx.folder / part.name}.yaml and {ctx.sh.log}", tail(applied.err)
            )
        time.sleep(2)


def _write_record(ctx: Context, kubectl: Path, recipes: dict[str, str]) -> None:
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": _RECORD, "namespace": "kube-system"},
        "data": recipes,
    }
    ctx.sh.run(kubectl, "apply", "--server-side", "--force-conflicts", "--filename=-", stdin=json.dumps(config))


def _until(ctx: Context, kubectl: Path, deadline: float, where: tuple[str, str], ready: Callable[[], bool]) -> None:
    while not ready():
        if time.monotonic() > deadline:
            raise ClusterError(
                f"{where[1]} is not ready after {_READY_SECONDS} s",
                "run the same command again if the machine is busy; else the lines above tell why",
                _why(ctx, kubectl, where),
            )
        time.sleep(1)


def _available(ctx: Context, kubectl: Path, where: tuple[str, str]) -> bool:
    got = ctx.sh.run(
        kubectl, "get", "deployment", where[1], f"--namespace={where[0]}", "--output=json",
        timeout=20, check=False,
    )  # fmt: skip
    if not got.ok:
        return False
    return is_rolled_out(json.loads(got.out))


def _discovers(ctx: Context, kubectl: Path) -> bool:
    """Whether every API can be listed. As long as one cannot, no namespace can be deleted."""
    return ctx.sh.run(kubectl, "api-resources", "--cached=false", timeout=30, check=False).ok


def _answers(ctx: Context, kubectl: Path, probe: dict[str, Any]) -> bool:
    asked = ctx.sh.run(
        kubectl, "create", "--dry-run=server", "--filename=-", stdin=json.dumps(probe), timeout=30, check=False
    )
    return webhook_answered(asked.err)


def _why(ctx: Context, kubectl: Path, where: tuple[str, str]) -> str:
    """Events, pods and the manager's last words, in that order, short."""
    space = f"--namespace={where[0]}"
    events = ctx.sh.run(kubectl, "get", "events", space, "--sort-by=.lastTimestamp", check=False).out
    pods = ctx.sh.run(kubectl, "get", "pods", space, check=False).out
    logs = ctx.sh.run(kubectl, "logs", space, f"deployment/{where[1]}", "--tail=8", check=False)
    return "\n".join([tail(events, 8), pods.strip(), tail(logs.out or logs.err, 8)])


def _probe(api: str, what: str, spec: dict[str, Any], namespaced: bool = True) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": "trainjob-cluster-probe"}
    if namespaced:
        metadata["namespace"] = _NAMESPACE
    return {"apiVersion": api, "kind": what, "metadata": metadata, "spec": spec}


_REPLICATED_JOB: Final[dict[str, Any]] = {"name": "node", "template": {"spec": {"template": {"spec": _POD}}}}
_PROBE_JOBSET: Final = _probe("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": [_REPLICATED_JOB]})
_PROBE_RUNTIME: Final = _probe(
    "trainer.kubeflow.org/v1alpha1",
    "ClusterTrainingRuntime",
    {"template": {"spec": {"replicatedJobs": [_REPLICATED_JOB]}}},
    namespaced=False,
)
_PROBE_QUEUE: Final = _probe("kueue.x-k8s.io/v1beta2", "ClusterQueue", {"namespaceSelector": {}}, namespaced=False)
_PROBE_PYTORCHJOB: Final = _probe(
    "kubeflow.org/v1",
    "PyTorchJob",
    {
        "pytorchReplicaSpecs": {
            "Master": {"replicas": 1, "template": {"spec": {"containers": [{"name": "pytorch", "image": "probe:1"}]}}}
        }
    },
)
