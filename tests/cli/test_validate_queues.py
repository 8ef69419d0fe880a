"""`trainjob validate --queues` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.validate.queue.objects import cluster_queue, flavor, local_queue, quotas
from trainjob.cli import command
from trainjob.kube.yaml import dump, dump_all
from trainjob.migrate import migrate_text

AMOUNTS = {"cpu": "64", "memory": "512Gi", "ephemeral-storage": "500Gi", "nvidia.com/gpu": "4"}


def trainjob(*args: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(command, [str(a) for a in args], input=stdin, prog_name="trainjob")


@pytest.fixture
def queues(tmp_path: Path) -> Path:
    file = tmp_path / "queues.yaml"
    objects = [flavor(), cluster_queue("nlp", quotas(AMOUNTS)), local_queue("nlp-queue", "nlp", "nlp")]
    file.write_text(dump_all(objects), encoding="utf-8")
    return file


def built(runtime: str) -> str:
    options = ("--name", "tune", "--runtime", runtime, "-n", "nlp", "--queue", "nlp-queue", "--checkpoints", "kept")
    return trainjob("build", *options).stdout


def test_a_job_that_fits(queues: Path) -> None:
    result = trainjob("validate", "-", "--queues", queues, stdin=built("torch-fsdp-4gpu"))
    assert result.exit_code == 0, result.stderr
    assert "tune asks queue nlp-queue for 4 nvidia.com/gpu, 32 cpu" in result.stderr
    assert "ClusterQueue nlp can give that" in result.stderr


def test_a_job_of_the_wrong_size_is_refused_with_numbers(queues: Path) -> None:
    result = trainjob("validate", "-", "--queues", queues.parent, stdin=built("torch-fsdp-8gpu"))
    assert result.exit_code == 1
    assert (
        "error[TJ601] <stdin>:7:5: queue nlp-queue: this job asks 8 nvidia.com/gpu, the most that ClusterQueue nlp "
        "can ever give is 4 (nominal 4, borrowing 0): it would stay Suspended"
    ) in result.stderr
    assert "fix: " in result.stderr


def test_the_three_pods_of_a_v1_job(queues: Path) -> None:
    """Master 1 + Worker 2 at 2 GPUs, migrated: the job that lay Suspended for eight hours."""
    role = {
        "template": {
            "spec": {
                "containers": [
                    {
                        "name": "pytorch",
                        "image": "registry.example.com/t:1",
                        "command": ["python", "t.py"],
                        "resources": {"limits": {"nvidia.com/gpu": 2, "cpu": 4, "memory": "8Gi"}},
                    }
                ]
            }
        }
    }
    v1 = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "sft", "namespace": "nlp", "labels": {"kueue.x-k8s.io/queue-name": "nlp-queue"}},
        "spec": {"pytorchReplicaSpecs": {"Master": {"replicas": 1, **role}, "Worker": {"replicas": 2, **role}}},
    }
    result = trainjob("validate", "-", "--queues", queues, stdin=migrate_text(dump(v1)).text)
    assert "asks 3 x 2 = 6 nvidia.com/gpu, the most that ClusterQueue nlp can ever give is 4" in result.stderr
    assert "set spec.trainer.numNodes to 2, which fits" in result.stderr


def test_json(queues: Path) -> None:
    result = trainjob("validate", "-", "--queues", queues, "--format", "json", stdin=built("torch-fsdp-8gpu"))
    body = json.loads(result.stdout)
    (verdict,) = body["queues"]
    assert verdict["canBeAdmitted"] is False
    assert verdict["clusterQueue"] == "nlp"
    assert verdict["total"]["nvidia.com/gpu"] == "8"
    assert [f["code"] for f in body["findings"]] == ["TJ601"]
    assert "queues" not in json.loads(
        trainjob("validate", "-", "--format", "json", stdin=built("torch-lora-1gpu")).stdout
    )


def test_namespace_option(queues: Path) -> None:
    text = built("torch-lora-1gpu").replace("  namespace: nlp\n", "")
    assert trainjob("validate", "-", "--queues", queues, "-n", "lab", stdin=text).exit_code == 1
    assert trainjob("validate", "-", "--queues", queues, "-n", "nlp", stdin=text).exit_code == 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("kind: Service\n", "there is no ClusterQueue and no LocalQueue in it"),
        (dump(cluster_queue("c", quotas({"cpu": "lots"}))), "nominalQuota: 'lots' is not a quantity"),
        ("a: [", "YAML error"),
    ],
)
def test_queues_that_cannot_be_read(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "q.yaml"
    file.write_text(text, encoding="utf-8")
    result = trainjob("validate", "-", "--queues", file, stdin=built("torch-lora-1gpu"))
    assert result.exit_code == 2
    assert says in result.stderr
    assert "q.yaml" in result.stderr


def test_queues_that_are_not_there(tmp_path: Path) -> None:
    result = trainjob("validate", "-", "--queues", tmp_path / "none.yaml", stdin=built("torch-lora-1gpu"))
    assert result.exit_code == 2
    assert "none.yaml" in result.stderr


def test_help_teaches_where_queues_come_from() -> None:
    text = trainjob("validate", "--help").output
    assert "kubectl get clusterqueues,localqueues,cohorts,resourceflavors" in text
