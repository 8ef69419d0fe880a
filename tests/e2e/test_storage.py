"""Checkpoints and caches that outlive pods: claims of one node and of several, S3, a shared model cache."""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest

from tests.cluster import objectstore
from tests.e2e.kube import TRAIN_IMAGE, Kubectl, claim
from tests.e2e.test_story import queue
from trainjob import kustomize
from trainjob.builder import BuildError, train_job
from trainjob.catalog import Runtime
from trainjob.emit import FRAMEWORK_LABEL, STEP_LABEL
from trainjob.kube.yaml import load
from trainjob.targets import DEFAULT
from trainjob.validate import check_documents

__all__ = ["queue"]

ROOT = Path(__file__).parents[2]
JOBSET = "jobset.sigs.k8s.io/jobset-name"
CPU, TWO_NODES = "torch-fsdp-cpu", "torch-fsdp-multinode"
SIZE = {"cpu": "1", "memory": "2Gi", "ephemeral-storage": "1Gi"}
RESTRICTED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
POD_SECURITY = {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}

pytestmark = [pytest.mark.storage, pytest.mark.usefixtures("runtimes", "programs")]
Seen = Callable[[str], None]


@cache
def stand_in(name: str) -> Runtime:
    """A runtime of overlays/kind-multi-node, for one namespace and without GPUs."""
    for doc in load(kustomize.build(ROOT / "overlays/kind-multi-node").decode()):
        if doc.data["metadata"]["name"] == name:
            runtime = Runtime(name, "TrainingRuntime", {**doc.data, "kind": "TrainingRuntime"}, ROOT / "overlays")
            container = cast(dict[str, Any], runtime.container)
            container["resources"] = {"requests": {**SIZE, "cpu": "100m"}, "limits": dict(SIZE)}
            return runtime
    raise LookupError(name)


@pytest.fixture
def runtimes(kubectl: Kubectl) -> None:
    """The two runtimes of these tests in the test's own namespace, open for several nodes should the gate be there."""
    kubectl.run("label", "namespace", kubectl.namespace, "trainjob.dev/multi-node=allowed")
    kubectl.apply([stand_in(CPU).manifest, stand_in(TWO_NODES).manifest])


def built(name: str, runtime: str, *command: str, **options: Any) -> dict[str, Any]:
    """A TrainJob from the builder, with the programs mounted beside what the builder mounts."""
    if runtime == TWO_NODES:
        options |= {"nodes": 2, "allow_multi_node": "the test of several nodes"}
    job = train_job(name=name, runtime=stand_in(runtime), command=list(command), **options).to_dict()
    empty = {
        "manager": "trainjob.dev/e2e",
        "trainingRuntimeSpec": {
            "template": {
                "spec": {
                    "replicatedJobs": [
                        {
                            "name": "node",
                            "template": {"spec": {"template": {"spec": {"containers": [{"name": "node"}]}}}},
                        }
                    ]
                }
            }
        },
    }
    (patch,) = job["spec"].setdefault("runtimePatches", [empty])
    (replicated,) = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    pod = replicated["template"]["spec"]["template"]["spec"]
    pod.setdefault("volumes", []).append({"name": "programs", "configMap": {"name": "programs"}})
    mounts = pod["containers"][0].setdefault("volumeMounts", [])
    mounts.append({"name": "programs", "mountPath": "/programs"})
    if runtime == TWO_NODES:  # as pods that fill a node each
        apart = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {JOBSET: name}}}
        pod["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    return job


def trained(kubectl: Kubectl, name: str) -> list[str]:
    """The log of rank 0 of a job that ended well."""
    state = kubectl.finished(name, seconds=420)
    log = kubectl.logs(name)
    assert state == "Complete", log
    return log.splitlines()


def last_loss(log: list[str]) -> str:
    return [line.split()[-1] for line in log if line.startswith("step 20 ")][-1]


def nodes_of(kubectl: Kubectl, name: str) -> set[str]:
    return {pod["spec"]["nodeName"] for pod in kubectl.pods(name)}


def restarts(kubectl: Kubectl, name: str) -> int:
    return int(kubectl.get("jobset", name).get("status", {}).get("restarts", 0))


def run_pod(kubectl: Kubectl, name: str, code: str, env: list[dict[str, Any]]) -> str:
    """What a line of Python prints in a pod."""
    container = {
        "name": "main",
        "image": TRAIN_IMAGE,
        "command": ["python", "-c", code],
        "env": env,
        "securityContext": RESTRICTED,
    }
    spec = {"restartPolicy": "Never", "securityContext": POD_SECURITY, "containers": [container]}
    kubectl.apply([{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}])

    def ended() -> str:
        phase = kubectl.get("pod", name)["status"].get("phase", "")
        return phase if phase in ("Succeeded", "Failed") else ""

    phase = kubectl.wait_for(f"pod {name} ends", ended, 120)
    log = kubectl.run("logs", name)
    assert phase == "Succeeded", log
    return log


@pytest.mark.ci
def test_two_nodes_save_to_one_claim(kubectl: Kubectl, seen: Seen) -> None:
    """Two pods on two nodes save shards to one ReadWriteMany claim, each run in a folder of its own; one is killed
    inside a save; the restart passes the half-written checkpoint over and ends with the loss of an undisturbed run."""
    kubectl.apply([claim("shared")])
    logs = {}
    for name, die in (("calm", 0), ("hurt", 10)):
        job = built(
            name, TWO_NODES, "torchrun", "/programs/s3.py", procs_per_node=1,
            checkpoints=f"shared/{name}:rwx", env={"DIE_IN_SAVE": str(die)},
        )  # fmt: skip
        kubectl.apply([job])
        logs[name] = trained(kubectl, name)
        assert len(nodes_of(kubectl, name)) == 2
    assert any(line.startswith("starts at 0 of 20, world 2, /checkpoints/calm") for line in logs["calm"])
    assert "passed over step-10: no .metadata" in logs["hurt"]
    assert any(line.startswith("starts at 5 of 20, world 2, /checkpoints/hurt") for line in logs["hurt"])
    assert restarts(kubectl, "hurt") == 1
    assert last_loss(logs["hurt"]) == last_loss(logs["calm"])
    seen(f"2 nodes, resumed at step 5, last loss {last_loss(logs['hurt'])} in both runs")


@pytest.mark.full
def test_claim_of_one_node_under_two_nodes(kubectl: Kubectl, seen: Seen) -> None:
    """A ReadWriteOnce claim under two nodes: the second pod never starts; the builder refuses the job, and validate
    finds it from the same two manifests."""
    once = claim("once", "ReadWriteOnce", "standard")
    with pytest.raises(BuildError, match="ReadWriteOnce: a volume of one node"):
        built("two", TWO_NODES, "true", checkpoints="once:rwo")
    # What one gets who does not say the mode.
    job = built("two", TWO_NODES, "torchrun", "/programs/s3.py", checkpoints="once", procs_per_node=1)
    (finding,) = check_documents([stand_in(TWO_NODES).manifest, once, job], DEFAULT)
    assert finding.code == "TJ581"
    kubectl.apply([once, job])

    def refused() -> str:
        for event in kubectl.list("events"):
            if event["reason"] == "FailedScheduling" and "PersistentVolume's node affinity" in event["message"]:
                return str(event["message"])
        return ""

    said = kubectl.wait_for("the scheduler says why a pod waits", refused, 120)
    time.sleep(10)
    waiting = [pod for pod in kubectl.pods("two") if not pod["spec"].get("nodeName")]
    assert len(waiting) == 1
    assert kubectl.condition("trainjob", "two", "Complete") is None
    seen(f"TJ581; the scheduler: {said.partition('. ')[0]}")


@pytest.mark.full
def test_restart_with_and_without_a_claim(kubectl: Kubectl, seen: Seen) -> None:
    """One node: on a ReadWriteOnce claim the restart goes on at step 5; in the runtime's own folder, of which TJ580
    warns, it begins at step 0."""
    kubectl.apply([claim("once", "ReadWriteOnce", "standard")])
    command = ("torchrun", "/programs/s3.py")
    warned: list[str] = []
    kept = built(
        "kept", CPU, *command, procs_per_node=2, checkpoints="once:rwo", env={"DIE_IN_SAVE": "10"},
        on_warning=lambda f: warned.append(f.code),
    )  # fmt: skip
    assert warned == []
    lost = built(
        "lost", CPU, *command, procs_per_node=2, env={"DIE_IN_SAVE": "10"}, on_warning=lambda f: warned.append(f.code)
    )
    assert warned == ["TJ580"]
    kubectl.apply([kept])
    assert "starts at 5 of 20, world 2, /checkpoints" in trained(kubectl, "kept")
    kubectl.apply([lost])

    def second_life() -> str:
        if restarts(kubectl, "lost") == 0 or not kubectl.pods("lost"):
            return ""
        found = re.search(
            r"starts at \d+ of 20", kubectl.run("logs", kubectl.pods("lost")[0]["metadata"]["name"], check=False)
        )
        return found[0] if found else ""

    said = kubectl.wait_for("the restarted pod says where it starts", second_life, 180)
    assert said == "starts at 0 of 20"
    seen("claim: restart at 5 of 20; none: restart at 0 of 20")


@pytest.fixture
def data_connection(kubectl: Kubectl) -> str:
    """An S3 server in the cluster with an empty bucket, and a Secret with the keys of a data connection; its name."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.cluster", "load", "s3"], cwd=ROOT, env={**os.environ}, check=False
    )
    assert done.returncode == 0
    values = {
        "AWS_ACCESS_KEY_ID": "e2e", "AWS_SECRET_ACCESS_KEY": os.urandom(12).hex(), "AWS_S3_BUCKET": "training",
        "AWS_S3_ENDPOINT": f"http://s3.{kubectl.namespace}.svc:{objectstore.PORT}", "AWS_DEFAULT_REGION": "us-east-1",
    }  # fmt: skip
    secret = {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "aws-connection-team"}, "stringData": values,
    }  # fmt: skip
    server = {
        "name": "s3",
        "image": objectstore.IMAGE,
        "args": ["--port", f":{objectstore.PORT}", "posix", "--sidecar", "/meta", "/objects"],
        "env": [
            {"name": mine, "valueFrom": {"secretKeyRef": {"name": "aws-connection-team", "key": key}}}
            for mine, key in (("ROOT_ACCESS_KEY", "AWS_ACCESS_KEY_ID"), ("ROOT_SECRET_KEY", "AWS_SECRET_ACCESS_KEY"))
        ],
        "readinessProbe": {"tcpSocket": {"port": objectstore.PORT}, "periodSeconds": 1},
        "securityContext": RESTRICTED,
        "volumeMounts": [{"name": "objects", "mountPath": "/objects"}, {"name": "meta", "mountPath": "/meta"}],
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "s3", "labels": {"app": "s3"}},
        "spec": {
            "securityContext": {**POD_SECURITY, "runAsUser": 65532},
            "containers": [server],
            "volumes": [{"name": "objects", "emptyDir": {}}, {"name": "meta", "emptyDir": {}}],
        },
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s3"},
        "spec": {"selector": {"app": "s3"}, "ports": [{"port": objectstore.PORT}]},
    }
    kubectl.apply([secret, pod, service])
    kubectl.run("wait", "--for=condition=Ready", "pod/s3", "--timeout=60s")
    run_pod(kubectl, "make-bucket", "import s3fs; s3fs.S3FileSystem().mkdir('training')", env_of())
    return "aws-connection-team"


def env_of() -> list[dict[str, Any]]:
    """The variables as the builder writes them."""
    job = train_job(name="x", runtime=CPU, checkpoints="s3://training/x", s3_secret="aws-connection-team").to_dict()
    return [e for e in job["spec"]["trainer"]["env"] if e["name"].startswith("AWS_")]


@pytest.mark.full
def test_two_pods_save_to_s3(kubectl: Kubectl, data_connection: str, seen: Seen) -> None:
    """Two pods save FSDP shards to a real S3 server with the credentials of a data connection and no claim; one is
    killed inside a save; the restart passes the half-written checkpoint over and ends with the undisturbed loss."""
    logs = {}
    for name, die in (("calm", 0), ("hurt", 10)):
        job = built(
            name, TWO_NODES, "torchrun", "/programs/s3.py", procs_per_node=1,
            checkpoints=f"s3://$(AWS_S3_BUCKET)/{name}", s3_secret=data_connection, env={"DIE_IN_SAVE": str(die)},
        )  # fmt: skip
        kubectl.apply([job])
        logs[name] = trained(kubectl, name)
    assert "passed over step-10: no .metadata" in logs["hurt"]
    assert any(line.startswith("starts at 5 of 20, world 2, s3://training/hurt") for line in logs["hurt"])
    assert restarts(kubectl, "hurt") == 1
    assert last_loss(logs["hurt"]) == last_loss(logs["calm"])
    code = "import s3fs; print(*s3fs.S3FileSystem().find('training/hurt'), sep='\\n')"
    objects = run_pod(kubectl, "list", code, env_of()).split()
    for step in (5, 10, 15, 20):
        at = f"training/hurt/step-{step}"
        assert {f"{at}/.metadata", f"{at}/__0_0.distcp", f"{at}/__1_0.distcp"} <= set(objects)
    secret = base64.b64decode(kubectl.get("secret", data_connection)["data"]["AWS_SECRET_ACCESS_KEY"]).decode()
    for kind in ("trainjobs", "jobsets", "jobs", "pods", "configmaps"):
        assert secret not in kubectl.run("get", kind, "-o", "yaml"), kind
    seen(f"{len(objects)} objects, resumed at step 5, last loss {last_loss(logs['hurt'])} in both runs")


@pytest.mark.ci
def test_second_job_finds_the_model_of_the_first(kubectl: Kubectl, seen: Seen) -> None:
    """The job of trainjobs/fill-model-cache puts a model into a shared claim; a TrainJob that mounts it read-only
    loads the same weights by the model's name, offline, and writes its other caches elsewhere."""
    (doc,) = load((ROOT / "trainjobs/fill-model-cache/fill-model-cache.yaml").read_text(encoding="utf-8"))
    fill = doc.data
    pod = fill["spec"]["template"]["spec"]
    # No hub here: the model is made on the spot. The image has no other reason to be changed.
    (container,) = pod["containers"]
    container |= {"image": TRAIN_IMAGE, "command": ["python", "/programs/cache.py", "fill"], "args": []}
    container["resources"] = {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"memory": "2Gi"}}
    container["volumeMounts"].append({"name": "programs", "mountPath": "/programs"})
    pod["volumes"].append({"name": "programs", "configMap": {"name": "programs"}})
    fill["metadata"] = {"name": "fill", "labels": fill["metadata"]["labels"]}
    kubectl.apply([claim("model-cache-rwx"), fill])
    assert kubectl.finished("fill", kind="job") == "Complete"
    made = re.search(r"weights (\S+)", kubectl.run("logs", "job/fill"))
    assert made

    job = built("use", CPU, "python", "/programs/cache.py", "use", cache="model-cache-rwx:rwx,ro", checkpoints=None)
    kubectl.apply([job])
    log = "\n".join(trained(kubectl, "use"))
    assert f"weights {made[1]}" in log
    assert "cache cannot be written: Read-only file system" in log
    seen("same weights, by name, HF_HUB_OFFLINE=1, mounted read-only")


@pytest.mark.full
def test_what_an_initializer_costs(kubectl: Kubectl, queue: str, seen: Seen) -> None:
    """Why there is no runtime with an initializer: Kueue counts it together with the training pods, and a restart of
    the JobSet runs a finished initializer again."""
    say = "import os, time; f = open('/workspace/model/runs', 'a'); f.write(f'{time.time():.0f}\\n')"
    train = (
        "import os, sys; n = len(open('/workspace/model/runs').readlines()); print('initialized', n); sys.exit(n < 3)"
    )
    kubectl.apply([claim("model"), with_initializer(say, train)])
    job = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "init", "labels": {"kueue.x-k8s.io/queue-name": queue}},
        "spec": {
            "runtimeRef": {"kind": "TrainingRuntime", "name": "with-initializer"},
            "initializer": {"model": {"storageUri": "hf://team/tiny"}},
            "trainer": {"numNodes": 1},
        },
    }
    kubectl.apply([job])
    assert "initialized 3" in trained(kubectl, "init")
    assert restarts(kubectl, "init") == 2
    (workload,) = kubectl.list("workloads.kueue.x-k8s.io")
    usage = {a["name"]: a["resourceUsage"] for a in workload["status"]["admission"]["podSetAssignments"]}
    assert usage["model-initializer"]["cpu"] == "500m"
    assert usage["node"]["cpu"] == "300m"
    seen(f"3 runs of the initializer for 2 restarts; counted at once: {', '.join(sorted(usage))}")


def with_initializer(initialize: str, train: str) -> dict[str, Any]:
    """A runtime with the jobs that Trainer wants (2.3: a mount called `initializer`), and a stand-in program."""

    def job(name: str, step: str, container: str, code: str, cpu: str, **more: Any) -> dict[str, Any]:
        body = {
            "name": container,
            "image": TRAIN_IMAGE,
            "command": ["python", "-c", code],
            "resources": {
                kind: {"cpu": cpu, "memory": "256Mi", "ephemeral-storage": "100Mi", "nvidia.com/gpu": "0"}
                for kind in ("requests", "limits")
            },
            "volumeMounts": [{"name": "initializer", "mountPath": "/workspace/model"}],
        }
        volume = {"name": "initializer", "persistentVolumeClaim": {"claimName": "model"}}
        pod = {"restartPolicy": "Never", "containers": [body], "volumes": [volume]}
        template = {
            "metadata": {"labels": {STEP_LABEL: step}},
            "spec": {"backoffLimit": 0, "template": {"spec": pod}},
        }
        return {"name": name, "template": template, **more}

    first = job("model-initializer", "model-initializer", "model-initializer", initialize, "500m")
    depends = [{"name": "model-initializer", "status": "Complete"}]
    second = job("node", "trainer", "node", train, "300m", dependsOn=depends)
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainingRuntime",
        "metadata": {"name": "with-initializer", "labels": {FRAMEWORK_LABEL: "torch"}},
        "spec": {
            "mlPolicy": {"numNodes": 1, "torch": {}},
            "template": {
                "spec": {
                    "failurePolicy": {"maxRestarts": 3, "restartStrategy": "BlockingRecreate"},
                    "replicatedJobs": [first, second],
                }
            },
        },
    }
