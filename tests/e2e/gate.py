"""The admission lock of several nodes on the test cluster: taking it off, closing a namespace, shapes to count."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.e2e.kube import TRAIN_IMAGE, Kubectl
from trainjob import kustomize
from trainjob.kube.yaml import dump_all, load
from trainjob.targets import API_VERSION

ROOT = Path(__file__).parents[2]
BINDING = "ValidatingAdmissionPolicyBinding"
LABEL, LIMIT = "trainjob.dev/multi-node", "trainjob.dev/max-nodes"
STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
MULTI = "torch-fsdp-multinode"
GATED = (MULTI, "torch-v1-compat-multinode")
# What every refusal of the gate says: what to do first, and where to read on.
ADVICE = ("Plan first: ", "docs/howto/gate.md")


def overlay(name: str) -> list[dict[str, Any]]:
    """The objects of one of our overlays."""
    return [doc.data for doc in load(kustomize.build(ROOT / "overlays" / name).decode())]


def is_gate(obj: dict[str, Any]) -> bool:
    return str(obj["kind"]).startswith("ValidatingAdmissionPolicy")


def install(cluster: Kubectl) -> None:
    """Everything of overlays/kind-multi-node, once the gate answers."""
    cluster.install(dump_all(overlay("kind-multi-node")))
    probe = dump_all([job("probe", MULTI)])
    cluster.wait_for("the gate answers", lambda: ADVICE[1] in cluster.dry_run(probe), 60)


@contextmanager
def without_gate(cluster: Kubectl) -> Iterator[None]:
    """The admission lock taken off: its bindings deleted, and put back afterwards."""
    bindings = [obj["metadata"]["name"] for obj in overlay("kind-multi-node") if obj["kind"] == BINDING]
    assert bindings
    cluster.run("delete", BINDING, *bindings)
    try:
        probe = dump_all([job("probe", MULTI)])
        cluster.wait_for("the gate is off", lambda: not cluster.dry_run(probe), 60)
        yield
    finally:
        install(cluster)


def close(kubectl: Kubectl) -> None:
    """Takes the opt-in away from the test's namespace; returns when the API server knows."""
    kubectl.run("label", "namespace", kubectl.namespace, f"{LABEL}-", f"{LIMIT}-")
    kubectl.wait_for("the namespace is closed", lambda: kubectl.dry_run(dump_all([job("probe", MULTI)])), 30)


def open_up(kubectl: Kubectl, limit: str | None = None) -> None:
    """Opens the test's namespace for several nodes, as the one who runs the cluster would."""
    labels = [f"{LABEL}=allowed", f"{LIMIT}={limit}" if limit is not None else f"{LIMIT}-"]
    kubectl.run("label", "namespace", kubectl.namespace, "--overwrite", *labels)
    largest = int(limit) if limit and limit.isdigit() else 1 if limit else 1000
    fits, above = dump_all([job("probe", MULTI, largest)]), dump_all([job("probe", MULTI, largest + 1)])
    kubectl.wait_for(
        "the namespace is open",
        lambda: not kubectl.dry_run(fits) and (limit is None or kubectl.dry_run(above)),
        30,
    )


def job(name: str, runtime: str, nodes: int | None = None, *, kind: str = "ClusterTrainingRuntime", **spec: Any) -> Any:
    """A TrainJob in the form that every Trainer version accepts."""
    return {
        "apiVersion": API_VERSION,
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {
            "runtimeRef": {"kind": kind, "name": runtime},
            "trainer": {"image": TRAIN_IMAGE, **({} if nodes is None else {"numNodes": nodes})},
            **spec,
        },
    }


def part(name: str = "node", step: str | None = "trainer", container: str = "node", **numbers: int) -> dict[str, Any]:
    """One replicatedJob; `replicas` and `parallelism` are its numbers."""
    template: dict[str, Any] = {
        "spec": {"template": {"spec": {"containers": [{"name": container, "image": TRAIN_IMAGE}]}}}
    }
    if step:
        template["metadata"] = {"labels": {STEP: step}}
    if "parallelism" in numbers:
        template["spec"]["parallelism"] = numbers["parallelism"]
    out = {"name": name, "template": template}
    return {**out, "replicas": numbers["replicas"]} if "replicas" in numbers else out


def runtime(name: str, policy: dict[str, Any] | None, *parts: dict[str, Any]) -> dict[str, Any]:
    """A TrainingRuntime of a team."""
    spec: dict[str, Any] = {"template": {"spec": {"replicatedJobs": [*parts] or [part()]}}}
    if policy is not None:
        spec["mlPolicy"] = policy
    return {"apiVersion": API_VERSION, "kind": "TrainingRuntime", "metadata": {"name": name}, "spec": spec}


INITIALIZER = part("model-initializer", "model-initializer", "model-initializer")
LAUNCHER, MPI_NODE = part("launcher"), part("node", None)
# What a person can write to get several pods, as (runtime, numNodes of its jobs).
SHAPES: tuple[tuple[dict[str, Any], int | None], ...] = (
    (runtime("one", {"torch": {}}), None),
    (runtime("one-asked", {"torch": {}}), 3),
    (runtime("of-runtime", {"numNodes": 3, "torch": {}}), None),
    (runtime("less-than-runtime", {"numNodes": 3, "torch": {}}), 2),
    (runtime("less-is-one", {"numNodes": 3, "torch": {}}), 1),
    (runtime("overwritten", {"torch": {}}, part(parallelism=4)), None),
    (runtime("plain", None, part(parallelism=2)), None),
    (runtime("plain-asked", None, part(parallelism=2)), 3),
    (runtime("replicas", {"torch": {}}, part(), part("worker", None, replicas=2)), 1),
    (runtime("parallelism", {"torch": {}}, part(), part("worker", None, parallelism=3)), 2),
    (runtime("both", {"torch": {}}, part(), part("worker", None, replicas=2, parallelism=2)), None),
    (runtime("below-zero", {"torch": {}}, part(), part("worker", None, replicas=2, parallelism=-1)), 1),
    (runtime("initializer", {"torch": {}}, INITIALIZER, part()), None),
    (runtime("initializer-asked", {"torch": {}}, INITIALIZER, part()), 2),
    (runtime("disguised", {"torch": {}}, {**INITIALIZER, "template": {**INITIALIZER["template"], "spec": {
        **INITIALIZER["template"]["spec"], "parallelism": 3}}}, part()), 1),
    (runtime("two-trainers", {"numNodes": 2, "torch": {}}, part(), part("other")), 3),
    (runtime("mpi", {"mpi": {"runLauncherAsNode": True}}, MPI_NODE, LAUNCHER), None),
    (runtime("mpi-asked", {"mpi": {"runLauncherAsNode": True}}, MPI_NODE, LAUNCHER), 4),
    (runtime("mpi-launcher", {"mpi": {"runLauncherAsNode": False}}, MPI_NODE, LAUNCHER), None),
    (runtime("mpi-launcher-asked", {"mpi": {"runLauncherAsNode": False}}, MPI_NODE, LAUNCHER), 3),
)  # fmt: skip


def counted(said: str) -> int:
    """The number of nodes in what the gate said; 1 when it said nothing."""
    found = re.search(r"asks for (-?\d+) node", said)
    assert found or not said, said
    return int(found[1]) if found else 1


def training_pods(jobset: dict[str, Any], team: dict[str, Any]) -> int:
    """The pods that a JobSet makes, without one of each initializer and of a launcher that only launches."""
    mpi = team["spec"].get("mlPolicy", {}).get("mpi")
    total = 0
    for each in jobset["spec"]["replicatedJobs"]:
        pods = each["replicas"] * each["template"]["spec"]["parallelism"]
        step = each["template"].get("metadata", {}).get("labels", {}).get(STEP, "")
        only_launches = each["name"] == "launcher" and mpi is not None and not mpi["runLauncherAsNode"]
        total += pods - (step.endswith("-initializer") or only_launches)
    return total
