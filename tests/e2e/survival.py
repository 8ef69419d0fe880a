"""Jobs that are disturbed: forms of runtimes to compare, faults, and what the training log tells."""

from __future__ import annotations

import copy
import functools
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cluster.context import Context
from tests.e2e.kube import TRAIN_IMAGE, Kubectl, claim
from trainjob import kustomize
from trainjob.kube.yaml import dump, load

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"
PEERS = ROOT / "tools" / "peers.json"
LAUNCHER = ROOT / "src" / "trainjob" / "launch"
CLAIM = "checkpoints"
CHECKPOINT_EVERY = 5  # steps, the default of programs/resume.py
RESOURCES = {"cpu": "1", "memory": "2Gi", "ephemeral-storage": "1Gi"}


@dataclass(frozen=True)
class Form:
    """One way to run the same program: a runtime and a launcher."""

    name: str
    runtime: dict[str, Any]
    launcher: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()


def launch_env() -> tuple[tuple[str, str], ...]:
    """The launcher lies beside the program until an image holds it."""
    return (("PYTHONPATH", "/opt/launcher"), ("TRAINJOB_COLLECTIVE_TIMEOUT", "15"))


LAUNCH = ("python", "-m", "trainjob.launch")
# An installed package without bytecode: what an installer that does not compile leaves, run by a user who
# cannot write beside it. Python then compiles every module anew in every process.
PLAIN_IMAGE = (("PYTHONPYCACHEPREFIX", "/proc/no-such-folder"),)


@functools.cache
def _rendered() -> str:
    return kustomize.build(ROOT / "overlays/kind-multi-node").decode()


def ours(name: str = "torch-fsdp-multinode") -> dict[str, Any]:
    """A runtime as overlays/kind-multi-node installs it."""
    for doc in load(_rendered()):
        if doc.data and doc.data["metadata"]["name"] == name:
            return copy.deepcopy(doc.data)
    raise LookupError(name)


def stock() -> dict[str, Any]:
    """Trainer 2.3's own torch-distributed: an image, nothing else. The facts are those of docs/comparison.md."""
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "stock", "labels": {"trainer.kubeflow.org/framework": "torch"}},
        "spec": copy.deepcopy(json.loads(PEERS.read_text(encoding="utf-8"))["Trainer 2.3"]["spec"]),
    }


def namespaced(runtime: dict[str, Any]) -> dict[str, Any]:
    """The same runtime for one namespace, without GPUs, so that the pods of a test fit anywhere."""
    made = copy.deepcopy(runtime)
    made["kind"] = "TrainingRuntime"
    container = pod_of(made)["containers"][0]
    container["image"] = TRAIN_IMAGE
    container["resources"] = {"requests": {**RESOURCES, "cpu": "100m"}, "limits": {**RESOURCES}}
    return made


def job_of(runtime: dict[str, Any]) -> dict[str, Any]:
    return runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]  # type: ignore[no-any-return]


def pod_of(runtime: dict[str, Any]) -> dict[str, Any]:
    return job_of(runtime)["template"]["spec"]  # type: ignore[no-any-return]


class Disturbed:
    """What can be done to the pods of a job."""

    kubectl: Kubectl
    name: str

    def pod(self, index: int) -> str:
        for pod in self.kubectl.pods(self.name):
            if pod["metadata"].get("deletionTimestamp") or pod["status"]["phase"] != "Running":
                continue
            if pod["metadata"]["annotations"].get("batch.kubernetes.io/job-completion-index") == str(index):
                return str(pod["metadata"]["name"])
        raise LookupError(f"no running pod {index} of {self.name}")

    def delete_pod(self, index: int) -> float:
        when = time.time()
        self.kubectl.run("delete", "pod", self.pod(index), "--wait=false")
        return when

    def restarts(self) -> int:
        return int(self.kubectl.get("jobset", self.name).get("status", {}).get("restarts", 0))


@dataclass
class Run(Disturbed):
    """One job of a form, in the namespace of `kubectl`, with a claim that all its pods share."""

    kubectl: Kubectl
    form: Form
    name: str
    nodes: int = 2
    env: dict[str, str] = field(default_factory=dict)
    processes: int = 1
    labels: dict[str, str] = field(default_factory=dict)
    submitted: float = 0.0
    program: str = "resume.py"

    @property
    def claim(self) -> str:
        return f"{self.name}-{CLAIM}"

    def submit(self) -> Run:
        files = {f"launch-{p.name}": p.read_text() for p in sorted(LAUNCHER.glob("*.py"))}
        self.kubectl.apply(
            [
                config("programs", {p.name: p.read_text() for p in sorted(PROGRAMS.glob("*.py"))}),
                config("launcher", {**files, "package": ""}),
                claim(self.claim),
                namespaced(self.form.runtime),
            ]
        )
        # Making the volume is not what is measured.
        self.kubectl.wait_for(
            "the claim is bound", lambda: self.kubectl.get("pvc", self.claim)["status"].get("phase") == "Bound"
        )
        self.submitted = time.time()
        self.kubectl.run("create", "-f", "-", stdin=dump(self.manifest()))
        return self

    def manifest(self) -> dict[str, Any]:
        items = [
            {"key": f"launch-{p.name}", "path": f"trainjob/launch/{p.name}"} for p in sorted(LAUNCHER.glob("*.py"))
        ]
        items.append({"key": "package", "path": "trainjob/__init__.py"})
        volumes = [
            {"name": "programs", "configMap": {"name": "programs"}},
            {"name": "launcher", "configMap": {"name": "launcher", "items": items}},
            {"name": "checkpoints", "persistentVolumeClaim": {"claimName": self.claim}},
        ]
        mounts = [
            {"name": "programs", "mountPath": "/programs"},
            {"name": "launcher", "mountPath": "/opt/launcher"},
            {"name": "checkpoints", "mountPath": "/checkpoints"},
        ]
        patch = {"volumes": volumes, "containers": [{"name": "node", "volumeMounts": mounts}]}
        runtime = self.form.runtime["metadata"]["name"]
        env = {**dict(self.form.env), **self.env}
        return {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": {"name": self.name, "labels": self.labels},
            "spec": {
                "runtimeRef": {"name": runtime, "kind": "TrainingRuntime", "apiGroup": "trainer.kubeflow.org"},
                "trainer": {
                    "numNodes": self.nodes,
                    "numProcPerNode": self.processes,
                    "command": [*self.form.launcher, f"/programs/{self.program}"],
                    "env": [{"name": k, "value": v} for k, v in env.items()],
                },
                "runtimePatches": [
                    {
                        "manager": "trainjob.dev/e2e",
                        "trainingRuntimeSpec": {
                            "template": {
                                "spec": {
                                    "replicatedJobs": [
                                        {"name": "node", "template": {"spec": {"template": {"spec": patch}}}}
                                    ]
                                }
                            }
                        },
                    }
                ],
            },
        }

    # What the program wrote down.

    @property
    def folder(self) -> Path:
        return folder_of(self.kubectl, self.claim)

    @property
    def cluster(self) -> str:
        return self.kubectl.kubeconfig.parent.name

    def events(self) -> list[Event]:
        try:
            lines = (self.folder / "log").read_text().splitlines()
        except (OSError, KeyError):
            return []
        return [Event.of(line) for line in lines if len(line.split()) >= 3]

    def wait_step(self, step: int, seconds: float = 240) -> Event:
        found = self.kubectl.wait_for(
            f"step {step} of {self.name}",
            lambda: next((e for e in self.events() if e.what == "step" and e.step >= step), None),
            seconds,
        )
        assert isinstance(found, Event)
        return found

    def first_step(self) -> float:
        """Seconds from submit to the end of the first training step."""
        return next(e.when for e in self.events() if e.what == "step") - self.submitted

    def after(self, fault: float) -> Event | None:
        """The first step after the resume that follows a fault."""
        events = self.events()
        again = next((i for i, e in enumerate(events) if e.when > fault and e.what in {"resume", "start"}), len(events))
        return next((e for e in events[again:] if e.what == "step"), None)

    def recovery(self, fault: float) -> float:
        """Seconds from the fault to the end of the first step after the resume that follows it."""
        step = self.after(fault)
        assert step is not None, f"{self.name} did not resume"
        return step.when - fault

    def lost_steps(self) -> int:
        """The most steps that were done twice after one restart."""
        worst, last = 0, -1
        for event in self.events():
            if event.what == "resume":
                worst = max(worst, last + 1 - event.step)
            elif event.what == "step":
                last = event.step
        return worst

    def loss(self) -> str:
        return next(e.rest for e in reversed(self.events()) if e.what == "done")

    # Faults.

    def signal(self, rank: int, number: str) -> float:
        """To the worker process of this rank."""
        pid = (self.folder / f"pid-{rank}").read_text()
        self.kubectl.run("exec", self.pod(rank // self.processes), "-c", "node", "--", "kill", f"-{number}", pid)
        return time.time()

    def evict(self, index: int) -> float:
        pod, when = self.pod(index), time.time()
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": self.kubectl.namespace},
        }
        path = f"/api/v1/namespaces/{self.kubectl.namespace}/pods/{pod}/eviction"
        self.kubectl.run("create", "--raw", path, "-f", "-", stdin=json.dumps(body))
        return when

    def drain(self, index: int) -> tuple[float, str]:
        """Cordons the node of a pod and evicts the job's pods from it; returns the time and the node."""
        node = self.kubectl.get("pod", self.pod(index))["spec"]["nodeName"]
        when = time.time()
        self.kubectl.run(
            "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=90s",
            f"--pod-selector=jobset.sigs.k8s.io/jobset-name={self.name}",
        )  # fmt: skip
        return when, node


@dataclass(frozen=True)
class Event:
    """A line of the training log."""

    when: float
    what: str
    step: int
    rest: str

    @classmethod
    def of(cls, line: str) -> Event:
        when, what, step, *rest = line.split()
        return cls(float(when), what, int(step), " ".join(rest))


def folder_of(kubectl: Kubectl, claim: str) -> Path:
    """Where this machine sees a claim of the class `shared`: the nodes mount a folder of it."""
    volume = kubectl.get("pvc", claim)["spec"]["volumeName"]
    spec = kubectl.get("pv", volume)["spec"]
    path = (spec.get("hostPath") or spec.get("local"))["path"]
    return Context(kubectl.kubeconfig.parent.name).shared / Path(path).relative_to("/shared")


def config(name: str, data: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
