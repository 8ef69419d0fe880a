"""`migrate --from-cluster` on the real cluster: what it sees, that it changes nothing, and with few rights."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.e2e.kube import Kubectl
from trainjob.cli.migrate import command
from trainjob.kube import yaml

pytestmark = [pytest.mark.full, pytest.mark.differential]
JOB = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: tune
  labels: {kueue.x-k8s.io/queue-name: no-such-queue}
spec:
  runPolicy: {suspend: true}
  pytorchReplicaSpecs:
    Master: &role
      replicas: 1
      restartPolicy: OnFailure
      template:
        spec:
          containers:
          - name: pytorch
            image: localhost/trainjob-cpu-stand-in:1
            command: [python, train.py]
            resources: {limits: {nvidia.com/gpu: 1}}
            volumeMounts: [{name: data, mountPath: /data}]
          volumes:
          - name: data
            persistentVolumeClaim: {claimName: no-such-claim}
    Worker: *role
"""
SCHEDULE = """\
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: "0 2 * * *"
  suspend: true
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
          - name: submit
            image: localhost/trainjob-cpu-stand-in:1
            command: [sh, -c, "pip install kubeflow-training==1.8.1 && python submit.py"]
"""
KINDS = "pytorchjobs,trainjobs,cronjobs,configmaps,secrets,serviceaccounts,resourcequotas,trainingruntimes"


def inventory(kubeconfig: Path, namespace: str) -> tuple[int, dict[str, Any]]:
    result = CliRunner().invoke(
        command, ["--from-cluster", "-n", namespace, "--kubeconfig", str(kubeconfig), "--format", "json"]
    )
    assert result.exit_code in (0, 1), result.stderr
    return result.exit_code, json.loads(result.stdout)


def state(kubectl: Kubectl) -> dict[str, str]:
    """Every object of the namespace with the version of its last change."""
    return {f"{o['kind']}/{o['metadata']['name']}": o["metadata"]["resourceVersion"] for o in kubectl.list(KINDS)}


def test_inventory_of_a_namespace(kubectl: Kubectl, seen: Callable[[str], None]) -> None:
    """--from-cluster finds a PyTorchJob, the CronJob that makes more, what the target lacks; it changes nothing."""
    kubectl.apply(JOB)
    kubectl.apply(SCHEDULE)
    kubectl.wait_for("the v1 operator has seen the job", lambda: kubectl.get("pytorchjob", "tune").get("status"))
    before = state(kubectl)
    code, report = inventory(kubectl.kubeconfig, kubectl.namespace)
    assert code == 1
    (job,) = report["jobs"]
    assert (job["name"], job["state"], job["pods"], job["accelerators"]) == (
        "tune", "Suspended", 2, {"nvidia.com/gpu": 2},
    )  # fmt: skip
    assert job["madeBy"] == "kubectl"
    (creator,) = report["creators"]
    assert (creator["name"], creator["schedule"], creator["sdk"]) == ("nightly", "0 2 * * *", "1.8.1")
    missing = {f"{m['kind']} {m['name']}" for m in report["target"]["missing"]}
    assert {"PersistentVolumeClaim no-such-claim", "LocalQueue no-such-queue"} <= missing
    assert report["target"]["trainer"] is not None
    assert report["source"]["versions"]["pytorchjobs.kubeflow.org"] == "v1"
    assert state(kubectl) == before
    seen(f"Trainer {report['target']['trainer']} recognised; {len(missing)} missing objects named")


def test_inventory_with_few_rights(kubectl: Kubectl, seen: Callable[[str], None], tmp_path: Path) -> None:
    """A user who may only list PyTorchJobs gets them, and hears what could not be looked at."""
    kubectl.apply(JOB)
    kubectl.run("create", "serviceaccount", "reader")
    kubectl.run("create", "role", "reader", "--verb=get,list", "--resource=pytorchjobs.kubeflow.org")
    kubectl.run("create", "rolebinding", "reader", "--role=reader", f"--serviceaccount={kubectl.namespace}:reader")
    config = json.loads(kubectl.run("config", "view", "--raw", "--minify", "-o", "json"))
    config["users"] = [{"name": "reader", "user": {"token": kubectl.run("create", "token", "reader").strip()}}]
    config["contexts"][0]["context"]["user"] = "reader"
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.dump(config), encoding="utf-8")
    code, report = inventory(kubeconfig, kubectl.namespace)
    assert code == 1
    assert [j["name"] for j in report["jobs"]] == ["tune"]
    unread = " ".join([*report["unread"], *report["target"]["unread"]])
    assert "cronjobs.batch" in unread
    assert "customresourcedefinitions" in unread
    assert "forbidden" in unread
    seen(f"{len(report['unread'])} lists of the source and {len(report['target']['unread'])} of the target named")
