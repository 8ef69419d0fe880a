"""JAXJob, XGBoostJob and MPIJob as TrainJobs on the real cluster: accepted, and run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.kube import TRAIN_IMAGE, Kubectl
from trainjob.kube.yaml import dump, dump_all, load
from trainjob.migrate import migrate_text

CASES = Path(__file__).parents[2] / "migration" / "cases"
ACCEPTED = [p for p in sorted(CASES.glob("*/after.yaml")) if "55" <= p.parent.name[:2] <= "69"]
PROGRAM = ["python", "/programs/coordinator.py"]


def container(name: str, *words: str, env: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """The training container of a job that runs the probe with these variables."""
    mount = [{"name": "programs", "mountPath": "/programs"}]
    out: dict[str, Any] = {"name": name, "image": TRAIN_IMAGE, "command": [*PROGRAM, *words], "volumeMounts": mount}
    return {**out, "env": env} if env else out


def replica(pods: int, *containers: dict[str, Any]) -> dict[str, Any]:
    volumes = [{"name": "programs", "configMap": {"name": "programs"}}]
    template = {"spec": {"containers": list(containers), "volumes": volumes}}
    return {"replicas": pods, "restartPolicy": "Never", "template": template}


def job(kind: str, specs: str, roles: dict[str, Any], metadata: dict[str, Any]) -> str:
    return dump({"apiVersion": "kubeflow.org/v1", "kind": kind, "metadata": metadata, "spec": {specs: roles}})


def migrated(text: str) -> list[Any]:
    """The objects of one job, which must be converted."""
    result = migrate_text(text)
    assert (result.converted, result.refused) == (1, 0), [f.text() for f in result.findings]
    return list(result.jobs[0].objects())


def answers(kubectl: Kubectl, name: str, pods: int) -> list[dict[str, Any]]:
    """What each rank printed, by rank."""
    found = []
    for index in range(pods):
        (line,) = [x for x in kubectl.logs(name, index).splitlines() if x.startswith("joined ")]
        found.append(json.loads(line.removeprefix("joined ")))
    return sorted(found, key=lambda a: int(a["rank"]))


@pytest.mark.ci
@pytest.mark.usefixtures("programs")
def test_a_jaxjob_finds_its_coordinator_by_v1_names(kubectl: Kubectl, seen: Callable[[str], None]) -> None:
    """Two Workers connect to COORDINATOR_ADDRESS:COORDINATOR_PORT; Trainer's JAX_* say the same."""
    own = ("JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID", "PYTHONUNBUFFERED")
    words = ("COORDINATOR_ADDRESS", "COORDINATOR_PORT", "NUM_PROCESSES", "PROCESS_ID", *own)
    text = job("JAXJob", "jaxReplicaSpecs", {"Worker": replica(2, container("jax", *words))}, {"name": "jx"})
    kubectl.apply(migrated(text))
    assert kubectl.finished("jx", seconds=360) == "Complete"
    for rank, found in enumerate(answers(kubectl, "jx", 2)):
        assert (found["rank"], found["size"], found["ranks"]) == (rank, 2, [0, 1])
        assert found["host"] == "jx-node-0-0.jx"
        assert found["JAX_COORDINATOR_ADDRESS"] == f"{found['host']}:{found['port']}"
        assert (found["JAX_NUM_PROCESSES"], found["JAX_PROCESS_ID"]) == ("2", str(rank))
        assert found["PYTHONUNBUFFERED"] == "1"
    seen("2 pods, both names of each variable agree")


@pytest.mark.full
@pytest.mark.usefixtures("programs")
def test_a_jaxjob_without_a_name_and_with_own_variables(kubectl: Kubectl, seen: Callable[[str], None]) -> None:
    """generateName: the address comes from a label of the pod. A JAX_* of the job wins over Trainer's."""
    env = [{"name": "JAX_NUM_PROCESSES", "value": "77"}]
    words = ("COORDINATOR_ADDRESS", "COORDINATOR_PORT", "NUM_PROCESSES", "PROCESS_ID", "JAX_NUM_PROCESSES")
    roles = {"Worker": replica(2, container("jax", *words, env=env))}
    runtime, made = migrated(job("JAXJob", "jaxReplicaSpecs", roles, {"generateName": "jx-"}))
    kubectl.apply([runtime])
    created = kubectl.run("create", "-f", "-", "-o", "json", stdin=dump(dict(made)))
    name = json.loads(created)["metadata"]["name"]
    assert kubectl.finished(name, seconds=360) == "Complete"
    for found in answers(kubectl, name, 2):
        assert found["host"] == f"{name}-node-0-0.{name}"
        assert found["JAX_NUM_PROCESSES"] == "77"
    seen(f"{name}: rank 0 found by the label, JAX_NUM_PROCESSES 77 kept")


@pytest.mark.full
@pytest.mark.usefixtures("programs")
def test_an_xgboostjob_finds_its_master_by_v1_names(kubectl: Kubectl, seen: Callable[[str], None]) -> None:
    """Master and Workers with v1's ranks; DMLC_* are Trainer's and name the same host and port."""
    own = ("WORKER_ADDRS", "WORKER_PORT", "DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER")
    program = container("xgboost", "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", *own)
    roles = {"Master": replica(1, program), "Worker": replica(2, program)}
    kubectl.apply(migrated(job("XGBoostJob", "xgbReplicaSpecs", roles, {"name": "xg"})))
    assert kubectl.finished("xg", seconds=360) == "Complete"
    for rank, found in enumerate(answers(kubectl, "xg", 3)):
        assert (found["rank"], found["size"], found["ranks"]) == (rank, 3, [0, 1, 2])
        assert found["host"] == found["DMLC_TRACKER_URI"] == "xg-node-0-0.xg"
        assert found["port"] == found["DMLC_TRACKER_PORT"] == found["WORKER_PORT"]
        assert found["WORKER_ADDRS"] == "xg-node-0-1.xg,xg-node-0-2.xg"
        assert (found["DMLC_TASK_ID"], found["DMLC_NUM_WORKER"]) == (str(rank), "3")
    seen("3 pods, ranks 0 to 2, DMLC_* agree")


@pytest.mark.full
@pytest.mark.usefixtures("programs")
def test_an_xgboostjob_of_unlike_roles(kubectl: Kubectl, seen: Callable[[str], None]) -> None:
    """Two jobs without a policy: ranks go on across them, and the Master's end completes the TrainJob."""
    words = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "WORKER_ADDRS")
    master, worker = container("xgboost", *words), container("xgboost", *words)
    worker["resources"] = {"requests": {"cpu": "10m"}}
    roles = {"Master": replica(1, master), "Worker": replica(2, worker)}
    kubectl.apply(migrated(job("XGBoostJob", "xgbReplicaSpecs", roles, {"name": "un"})))
    assert kubectl.finished("un", seconds=360) == "Complete"
    pods = kubectl.list("pods", "jobset.sigs.k8s.io/jobset-name=un,jobset.sigs.k8s.io/replicatedjob-name=node")
    (line,) = [x for x in kubectl.run("logs", pods[0]["metadata"]["name"]).splitlines() if x.startswith("joined ")]
    found = json.loads(line.removeprefix("joined "))
    assert (found["rank"], found["ranks"], found["host"]) == (0, [0, 1, 2], "un-node-0-0.un")
    assert found["WORKER_ADDRS"] == "un-worker-0-0.un,un-worker-1-0.un"
    seen("1 + 2 pods in two jobs, ranks 0 to 2")


KINDS = {
    "JAXJob": (
        "jaxjob", "jaxReplicaSpecs", "jax", {"worker": 2},
        "COORDINATOR_ADDRESS COORDINATOR_PORT NUM_PROCESSES PROCESS_ID",
    ),
    "XGBoostJob": (
        "xgboostjob", "xgbReplicaSpecs", "xgboost", {"master": 1, "worker": 2},
        "MASTER_ADDR MASTER_PORT WORLD_SIZE RANK WORKER_ADDRS WORKER_PORT",
    ),
}  # fmt: skip


@pytest.mark.full
@pytest.mark.differential
@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("kind", KINDS)
def test_the_v1_operator_gave_the_same_ranks(kubectl: Kubectl, kind: str, seen: Callable[[str], None]) -> None:
    """One manifest under the v1 operator and migrated: each pod has the rank, the size and the peers that it had."""
    resource, specs, name, roles, words = KINDS[kind]
    program = container(name, *words.split())
    text = job(kind, specs, {r.capitalize(): replica(n, program) for r, n in roles.items()}, {"name": "both"})
    kubectl.apply(text)
    assert kubectl.finished("both", resource, seconds=360) == "Succeeded"
    before = []
    for role, count in roles.items():
        for i in range(count):
            log = kubectl.run("logs", f"both-{role}-{i}", "-c", name)
            (line,) = [x for x in log.splitlines() if x.startswith("joined ")]
            before.append(json.loads(line.removeprefix("joined ")))
    kubectl.apply(migrated(text))
    assert kubectl.finished("both", seconds=360) == "Complete"
    after = answers(kubectl, "both", sum(roles.values()))
    for old, new in zip(before, after, strict=True):
        assert [old[k] for k in ("rank", "size", "ranks")] == [new[k] for k in ("rank", "size", "ranks")]
        # Another name of the same pod, and as many Workers to name.
        assert old["host"] == f"both-{next(iter(roles))}-0"
        assert new["host"] == "both-node-0-0.both"
        for addresses in ("WORKER_ADDRS",) if kind == "XGBoostJob" else ():
            assert [len(x[addresses].split(",")) for x in (old, new)] == [2, 2]
    seen(f"{len(before)} ranks, equal")


@pytest.mark.full
def test_cases_are_accepted(kubectl: Kubectl, seen: Callable[[str], None]) -> None:
    """The output of each case of another kind passes the API server and the webhooks."""
    refused, count = {}, 0
    for file in ACCEPTED:
        for doc in load(file.read_text(encoding="utf-8")):
            data = doc.data
            if data.get("kind") not in ("TrainJob", "TrainingRuntime"):
                continue
            data["metadata"]["namespace"] = kubectl.namespace
            if data["kind"] == "TrainingRuntime":
                kubectl.apply([data])
            elif data["spec"]["runtimeRef"]["kind"] == "TrainingRuntime":
                count += 1
                if said := kubectl.dry_run(dump_all([data])):
                    refused[file.parent.name] = said
    assert refused == {}
    assert count >= 10
    seen(f"{count} TrainJobs accepted")


@pytest.mark.full
def test_what_trainer_makes_of_an_mpijob(kubectl: Kubectl, seen: Callable[[str], None]) -> None:
    """numNodes sizes the Workers, the hostfile lists them with their slots, and the launcher waits for their sshd.

    The pods stay suspended: no image here holds sshd.
    """
    text = (
        (CASES / "63-mpi-benchmarks" / "before.yaml").read_text(encoding="utf-8").replace("ml-demo", kubectl.namespace)
    )
    runtime, made = migrated(text)
    made = {**made, "spec": {**made["spec"], "suspend": True}}
    kubectl.apply([runtime, made])
    name = "tensorflow-benchmarks"
    kubectl.wait_for("its JobSet", lambda: name in kubectl.run("get", "jobsets", check=False), 60)
    jobset = kubectl.get("jobset", name)["spec"]
    node, launcher = jobset["replicatedJobs"]
    assert (node["name"], node["template"]["spec"]["parallelism"], node["template"]["spec"]["completions"]) == (
        "node",
        2,
        2,
    )
    assert (launcher["name"], launcher["template"]["spec"]["parallelism"]) == ("launcher", 1)
    assert launcher["dependsOn"] == [{"name": "node", "status": "Ready"}]
    assert jobset["successPolicy"] == {"operator": "All", "targetReplicatedJobs": ["launcher"]}
    hosts = kubectl.get("configmap", f"{name}-mpi-hostfile")["data"]["hostfile"].splitlines()
    assert hosts == [f"{name}-node-0-{i}.{name} slots=2" for i in range(2)]
    pod = launcher["template"]["spec"]["template"]["spec"]
    mounts = {m["name"]: m["mountPath"] for m in pod["containers"][0]["volumeMounts"]}
    assert mounts == {"mpi-ssh-key": "/etc/mpi-ssh-key", "mpi-ssh-auth": "/etc/mpi-ssh", "mpi-hostfile": "/etc/mpi"}
    assert {v["name"] for v in pod["volumes"]} == set(mounts)
    command = pod["containers"][0]["command"]
    assert command[:2] == ["mpirun", "--allow-run-as-root"]
    assert pod["containers"][0]["resources"]["limits"] == {"cpu": "1", "memory": "2Gi"}
    workers = node["template"]["spec"]["template"]["spec"]["containers"][0]
    assert workers["resources"]["limits"]["nvidia.com/gpu"] == "2"
    seen("2 hosts x 2 slots, launcher after nodes")
