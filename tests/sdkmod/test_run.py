"""Rewritten scripts, run with the real SDK against an API server of the tests: what they create, and that they end."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.examples.fake_api import GROUP, FakeApi, Step, running
from tests.sdkmod.scripts import CASES, migrate_case
from trainjob.catalog import catalog

FOLDER = CASES[0].parent
DONE = Step(("Succeeded", "Succeeded"), "Complete")


@pytest.fixture
def api(sdk: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeApi]:
    """A server in which every job is complete at once, as the default of the kubeconfig."""
    assert sdk is not None
    with running(FakeApi(steps=(DONE,))) as server:
        for runtime in catalog().values():
            server.add(runtime.manifest)
        stock = catalog()["torch-v1-compat"].manifest
        server.add({**stock, "metadata": {**stock["metadata"], "name": "torch-distributed"}})
        config = server.kubeconfig(tmp_path, namespace="default-space")
        text = config.read_text(encoding="utf-8").replace('"fake"', '"prod"')
        config.write_text(text, encoding="utf-8")
        monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(config))
        yield server


def run(case: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(migrate_case(FOLDER / case).text, encoding="utf-8")
    runpy.run_path(str(script), run_name="__main__")


def created(api: FakeApi) -> list[tuple[str, dict[str, Any]]]:
    """Namespace and body of each TrainJob that a script created."""
    posts = api.called("POST", under=f"{GROUP}/namespaces")
    return [(r.path.split("/")[-2], r.body) for r in posts if r.path.endswith("/trainjobs")]


# case -> namespace, name, runtime, nodes, limits. Nodes and limits are what v1 asked for, pod by pod.
EXPECTED = {
    "01-quickstart": (
        "default-space", "fashion-mnist", "torch-distributed", 2, {"nvidia.com/gpu": 1, "cpu": 8, "memory": "32Gi"},
    ),
    "03-sdk-1.7": ("default-space", "mnist-v17", "torch-distributed", 3, {}),
    "04-image": ("nlp", "bert", "torch-v1-compat-multinode", 4, {"nvidia.com/gpu": 1, "memory": "64Gi"}),
    "06-model-objects": (
        "team-a", "pytorch-dist-mnist-gloo", "torch-v1-compat-multinode", 3, {"nvidia.com/gpu": "1"},
    ),
    "09-volumes": ("vision", "imagenet", "torch-distributed", 2, {"nvidia.com/gpu": 8}),
    "10-aliases": ("team-a", "alias", "torch-distributed", 3, {"nvidia.com/gpu": 1}),
}  # fmt: skip


@pytest.mark.parametrize("case", EXPECTED)
def test_what_a_script_creates(case: str, api: FakeApi, tmp_path: Path) -> None:
    run(case, tmp_path)
    namespace, name, runtime, nodes, limits = EXPECTED[case]
    [(where, job)] = created(api)
    spec = job["spec"]
    assert (where, job["metadata"]["name"], spec["runtimeRef"]["name"]) == (namespace, name, runtime)
    assert spec["trainer"]["numNodes"] == nodes
    assert spec["trainer"].get("resourcesPerNode", {}).get("limits", {}) == limits


def test_the_function_gets_its_parameters_as_v1_handed_them_over(api: FakeApi, tmp_path: Path) -> None:
    run("01-quickstart", tmp_path)
    [(_, job)] = created(api)
    script = job["spec"]["trainer"]["command"][-1]
    assert "train_pytorch_model(**{'parameters': {'lr': 0.01, 'epochs': 3}})" in script
    source = script[script.index("def train_pytorch_model") : script.index("\ntrain_pytorch_model(")]
    names: dict[str, Any] = {}
    exec(source.split("    import os")[0] + "    return parameters", names)
    func_args = {"parameters": {"lr": 0.01}}
    assert names["train_pytorch_model"](**func_args) == {"lr": 0.01}


def test_logs_are_printed_and_jobs_deleted(api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("01-quickstart", tmp_path)
    assert "epoch 2 loss 1.5" in capsys.readouterr().out
    assert [r.path.rsplit("/", 1)[1] for r in api.called("DELETE")] == ["fashion-mnist"]


def test_volumes_reach_the_pod(api: FakeApi, tmp_path: Path) -> None:
    run("09-volumes", tmp_path)
    [(_, job)] = created(api)
    [patch] = job["spec"]["runtimePatches"]
    [replicated] = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    pod = replicated["template"]["spec"]["template"]["spec"]
    assert replicated["name"] == "node"
    assert pod["volumes"] == [{"name": "data", "persistentVolumeClaim": {"claimName": "datasets"}}]
    [container] = pod["containers"]
    assert container["name"] == "node"
    assert container["volumeMounts"] == [{"name": "data", "mountPath": "/data", "readOnly": True}]


def test_labels_queue_and_env(api: FakeApi, tmp_path: Path) -> None:
    run("04-image", tmp_path)
    [(_, job)] = created(api)
    assert job["metadata"]["labels"] == {"team": "nlp", "kueue.x-k8s.io/queue-name": "nlp-queue"}
    assert job["metadata"]["annotations"] == {"example.com/owner": "jane"}
    env = {e["name"]: e["value"] for e in job["spec"]["trainer"]["env"]}
    assert env == {"NCCL_DEBUG": "INFO", "HF_HOME": "/cache"}


def test_a_service_asks_each_namespace(api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": "mnist"},
        "spec": {"runtimeRef": {"name": "torch-v1-compat"}, "trainer": {"numNodes": 1}},
    }  # fmt: skip
    api.add(job, "team-a")
    api.add({**job, "metadata": {"name": "other"}}, "team-b")
    run("05-namespaces", tmp_path)
    assert capsys.readouterr().out.split("\n")[:2] == ["['other']", "done"]


def test_a_migrated_object_is_valid_under_strict_validation(api: FakeApi, tmp_path: Path) -> None:
    """The server of the tests checks the CRD; the object has v1's variables, with the job's name in them."""
    run("06-model-objects", tmp_path)
    [(_, job)] = created(api)
    env = {e["name"]: e.get("value") for e in job["spec"]["trainer"]["env"]}
    assert env["MASTER_ADDR"] == "pytorch-dist-mnist-gloo-node-0-0.pytorch-dist-mnist-gloo"
    assert env["WORLD_SIZE"] == "3"
    assert job["spec"]["trainer"]["image"] == "registry.example.com/mnist:1.0"
