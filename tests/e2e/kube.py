"""kubectl on the test cluster, with waits that say what they saw when they give up."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainjob.kube.yaml import dump_all

MANAGERS = (
    "kubeflow-system/kubeflow-trainer-controller-manager",
    "kubeflow-system/jobset-controller-manager",
    "kueue-system/kueue-controller-manager",
    "kubeflow/training-operator",
)
NOT_YET = ("failed calling webhook", "connection refused", "no endpoints available", "conversion webhook")
TRAIN_IMAGE = "localhost/trainjob-cpu-stand-in:1"


Objects = list[dict[str, Any]]


class KubectlError(AssertionError):
    """kubectl ended with an error; the text is what it said."""


@dataclass
class Kubectl:
    """One cluster, one namespace."""

    program: str
    kubeconfig: Path
    namespace: str = "default"
    made: list[str] = field(default_factory=list)

    def run(self, *args: str, stdin: str | None = None, check: bool = True, timeout: float = 120) -> str:
        """stdout of a kubectl call. `check=False` returns stdout and stderr together.

        A webhook that does not answer yet is asked again for a minute: a manager may be Ready a
        moment before its Service leads there.
        """
        end = time.monotonic() + 60
        while True:
            done = subprocess.run(
                [self.program, "--kubeconfig", str(self.kubeconfig), "-n", self.namespace, *args],
                input=stdin, capture_output=True, text=True, timeout=timeout, check=False,
            )  # fmt: skip
            passing = done.returncode != 0 and any(text in done.stderr for text in NOT_YET)
            if not passing or time.monotonic() > end:
                break
            time.sleep(2)
        if check and done.returncode != 0:
            raise KubectlError(f"kubectl {' '.join(args)}: {done.stderr.strip()}")
        return done.stdout if check else done.stdout + done.stderr

    def apply(self, objects: Iterable[Mapping[str, Any]] | str, *extra: str) -> str:
        """Server-side apply with strict field validation."""
        text = objects if isinstance(objects, str) else dump_all([*objects])
        return self.run(
            "apply", "--server-side", "--force-conflicts", "--validate=strict", *extra, "-f", "-", stdin=text
        )

    def install(self, text: str) -> str:
        """Server-side apply of an overlay. Runtimes of an older checkout that cannot be changed are replaced."""
        command = ("apply", "--server-side", "--force-conflicts", "--validate=strict", "-f", "-")
        said = self.run(*command, stdin=text, check=False)
        if "Value is immutable" in said:
            self.run("delete", "clustertrainingruntimes", "-l", "trainjob.dev/topology", "--wait=true")
            said = self.run(*command, stdin=text)
        if "serverside-applied" not in said or "error" in said.lower():
            raise KubectlError(f"kubectl apply: {said.strip()}")
        return said

    def dry_run(self, text: str) -> str:
        """What the API server and the webhooks say; "" when they accept."""
        done = subprocess.run(
            [
                self.program, "--kubeconfig", str(self.kubeconfig), "-n", self.namespace,
                "create", "--dry-run=server", "--validate=strict", "-f", "-",
            ],
            input=text, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        return "" if done.returncode == 0 else done.stderr.strip() or "refused"

    def get(self, kind: str, name: str) -> dict[str, Any]:
        return json.loads(self.run("get", kind, name, "-o", "json"))  # type: ignore[no-any-return]

    def list(self, kind: str, selector: str = "") -> Objects:
        args = ["get", kind, "-o", "json"] + (["-l", selector] if selector else [])
        return json.loads(self.run(*args))["items"]  # type: ignore[no-any-return]

    def condition(self, kind: str, name: str, wanted: str) -> dict[str, Any] | None:
        """The condition of this type when it is true."""
        for condition in self.get(kind, name).get("status", {}).get("conditions", []):
            if condition["type"] == wanted and condition["status"] == "True":
                return condition  # type: ignore[no-any-return]
        return None

    def wait_for(self, what: str, check: Callable[[], Any], seconds: float = 180) -> Any:
        """The first true answer of `check`, or a failure that shows the namespace."""
        end = time.monotonic() + seconds
        while True:
            answer = check()
            if answer:
                return answer
            if time.monotonic() > end:
                raise AssertionError(f"not within {seconds:.0f} s: {what}\n{self.picture()}")
            time.sleep(1)

    def finished(self, name: str, kind: str = "trainjob", seconds: float = 240) -> str:
        """`Complete`, `Succeeded` or `Failed`, once the job has ended."""

        def done() -> str | None:
            for state in ("Complete", "Succeeded", "Failed"):
                if self.condition(kind, name, state):
                    return state
            return None

        return str(self.wait_for(f"{kind} {name} ends", done, seconds))

    def pods(self, job: str) -> Objects:
        return self.list("pods", f"jobset.sigs.k8s.io/jobset-name={job}")

    def logs(self, job: str, index: int = 0) -> str:
        """The log of the pod with this completion index."""
        pods = [
            p["metadata"]["name"]
            for p in self.pods(job)
            if p["metadata"]["annotations"].get("batch.kubernetes.io/job-completion-index") == str(index)
        ]
        return self.run("logs", sorted(pods)[-1], "-c", "node")

    def managers(self) -> str:
        """The last lines of each manager that speak of an error or of this namespace."""
        out = []
        for deployment in MANAGERS:
            namespace, name = deployment.split("/")
            log = self.run("logs", "-n", namespace, f"deployment/{name}", "--tail=400", check=False).splitlines()
            telling = [line for line in log if self.namespace in line or "error" in line.lower()][-8:]
            out += [f"--- {deployment}", *(line[:400] for line in telling)]
        return "\n".join(out)

    def picture(self) -> str:
        """Events, then pods: what a person would look at first, kept short."""
        events = self.run("get", "events", "--sort-by=.lastTimestamp", check=False).splitlines()[-25:]
        pods = self.run("get", "trainjobs,pytorchjobs,workloads,pods", "-o", "wide", check=False).splitlines()[-30:]
        return "\n".join(["--- events", *events, "--- objects", *pods])


def claim(name: str, mode: str = "ReadWriteMany", storage_class: str = "shared") -> dict[str, Any]:
    """A claim; as given, one that pods of both nodes can mount at once."""
    spec = {"accessModes": [mode], "storageClassName": storage_class, "resources": {"requests": {"storage": "1Gi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}
