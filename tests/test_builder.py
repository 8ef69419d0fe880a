"""A TrainJob from a few keywords, checked before it is returned."""

from __future__ import annotations

from typing import Any

import pytest

import trainjob
from trainjob.builder import BuildError, train_job
from trainjob.catalog import CatalogError, catalog
from trainjob.emit import for_target
from trainjob.findings import Severity
from trainjob.kube import yaml
from trainjob.storage import Claim
from trainjob.targets import TARGETS, Target, target
from trainjob.validate import check_documents


def build(**more: Any) -> Any:
    return train_job(**{"name": "tune", "runtime": "torch-fsdp-1gpu", **more})


def spec(**more: Any) -> Any:
    return build(**more).to_dict()["spec"]


def pod(**more: Any) -> Any:
    (patch,) = spec(**more)["runtimePatches"]
    (job,) = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    return job["template"]["spec"]["template"]["spec"]


@pytest.mark.parametrize("each", TARGETS, ids=str)
@pytest.mark.parametrize("name", [n for n, r in catalog().items() if r.topology == "single-node"])
def test_every_runtime_for_every_target(name: str, each: Target) -> None:
    """The smallest call gives a valid job with the runtime's own resources."""
    job = train_job(name="tune", runtime=name, target=each, checkpoints=None)
    assert job.runtime is None
    assert check_documents([job.to_dict()], each, {name: for_target(catalog()[name].manifest, each)}) == []
    trainer = job.manifest["spec"]["trainer"]
    assert trainer["numNodes"] == 1
    assert trainer.get("resourcesPerNode", {}) == catalog()[name].resources


def test_the_whole_of_it() -> None:
    """Every keyword at its place."""
    job = build(
        image="reg.io/i:1", command=["python"], args=("t.py",), namespace="ns", labels={"a": "b"},
        annotations={"c": "d"}, queue="q", priority="p", procs_per_node=1, suspend=True,
        active_deadline_seconds=60, env={"A": "1", "B": {"secretKeyRef": {"name": "s", "key": "k"}}},
    ).to_dict()  # fmt: skip
    assert job["metadata"] == {
        "name": "tune",
        "namespace": "ns",
        "labels": {"a": "b", "kueue.x-k8s.io/queue-name": "q", "kueue.x-k8s.io/priority-class": "p"},
        "annotations": {"c": "d"},
    }
    trainer = job["spec"]["trainer"]
    assert (trainer["image"], trainer["command"], trainer["args"]) == ("reg.io/i:1", ["python"], ["t.py"])
    assert trainer["numProcPerNode"] == 1
    assert trainer["env"] == [
        {"name": "A", "value": "1"},
        {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
    ]
    assert (job["spec"]["suspend"], job["spec"]["activeDeadlineSeconds"]) == (True, 60)
    assert pod(service_account="sa", image_pull_secrets=["x"], node_selector={"n": "1"}) == {
        "nodeSelector": {"n": "1"},
        "serviceAccountName": "sa",
        "imagePullSecrets": [{"name": "x"}],
    }


def test_resources_are_complete_and_equal() -> None:
    """The caller's over the runtime's, as request and limit; `gpu` is short for NVIDIA's."""
    resources = spec(resources={"cpu": "16", "gpu": "1"})["trainer"]["resourcesPerNode"]
    assert resources["requests"] == resources["limits"]
    assert resources["limits"]["cpu"] == "16"
    assert str(resources["limits"]["nvidia.com/gpu"]) == "1"
    assert "gpu" not in resources["limits"]
    assert "memory" in resources["limits"]
    assert build().manifest["spec"]["trainer"]["resourcesPerNode"] == catalog()["torch-fsdp-1gpu"].resources


def test_claims_are_mounted() -> None:
    """One volume per claim, under a legal name."""
    parts = pod(checkpoints="ckpt", claims={"/data": "my.data.claim"})
    assert parts["volumes"] == [
        {"name": "my-data-claim", "persistentVolumeClaim": {"claimName": "my.data.claim"}},
        {"name": "ckpt", "persistentVolumeClaim": {"claimName": "ckpt"}},
    ]
    assert parts["containers"] == [
        {
            "name": "node",
            "volumeMounts": [
                {"name": "my-data-claim", "mountPath": "/data"},
                {"name": "ckpt", "mountPath": "/checkpoints"},
            ],
        }
    ]


def test_claims_with_names_that_no_volume_may_have() -> None:
    """Long ones, and those that a runtime's own volume might have."""
    parts = pod(claims={"/a": "x" * 70, "/b": "runtime-cache"})
    assert [v["name"] for v in parts["volumes"]] == ["claim-0", "claim-1"]


@pytest.mark.parametrize("each", TARGETS, ids=str)
def test_storage_on_every_target(each: Target) -> None:
    """S3 and a read-only cache are variables and a mount; nothing needs a runtime of its own."""
    job = build(
        checkpoints="s3://training/run", s3_secret="data", cache="models:rwx,ro", env={"TRITON_CACHE_DIR": "/tmp/t"},
        target=each,
    )  # fmt: skip
    assert job.runtime is None
    env = {e["name"]: e.get("value", e.get("valueFrom")) for e in job.manifest["spec"]["trainer"]["env"]}
    assert env["TRAINJOB_CHECKPOINT_URL"] == "s3://training/run"
    assert env["AWS_ENDPOINT_URL"] == {"secretKeyRef": {"name": "data", "key": "AWS_S3_ENDPOINT", "optional": True}}
    assert (env["HF_HUB_OFFLINE"], env["TRITON_CACHE_DIR"]) == ("1", "/tmp/t")
    (entry,) = job.manifest["spec"][each.patches]
    assert {"name": "models", "mountPath": "/cache", "readOnly": True} in deep(entry, "volumeMounts")


def deep(value: Any, key: str) -> list[Any]:
    """Every list under this key, at any depth, joined."""
    if isinstance(value, dict):
        return [item for k, v in value.items() for item in (v if k == key else deep(v, key))]
    return [item for v in value for item in deep(v, key)] if isinstance(value, list) else []


def warned(**more: Any) -> list[str]:
    """Codes of the warnings of a call."""
    codes: list[str] = []
    build(on_warning=lambda f: codes.append(f.code), **more)
    return codes


def test_forgotten_checkpoints(caplog: pytest.LogCaptureFixture) -> None:
    """A warning, by default on stderr through `logging`; None says that it is known."""
    assert warned() == ["TJ580"]
    assert warned(cache="models", claims={"/data": "data"}) == ["TJ580"]
    for kept in ("ckpt", Claim("ckpt", "rwo", folder="run"), "s3://training/run", None):
        assert warned(checkpoints=kept) == [], kept
    assert warned(runtime="torch-v1-compat") == []
    assert build(checkpoints=None).manifest["metadata"]["annotations"] == {"trainjob.dev/checkpoints": "none"}
    assert "annotations" not in build(checkpoints="ckpt").manifest["metadata"]
    caplog.clear()
    build()
    assert "warning[TJ580] TrainJob/tune: nothing lasting is mounted at /checkpoints" in caplog.text


def test_claims_of_several_nodes() -> None:
    """Of one node or one pod: refused. Unknown: a warning. A reason for each, and the fix."""
    several = {"runtime": "torch-fsdp-multinode", "nodes": 2, "allow_multi_node": "because"}
    for given in (
        {"checkpoints": "c:rwo"},
        {"cache": "c:rwo", "checkpoints": None},
        {"claims": {"/d": Claim("c", "rwo")}},
    ):
        with pytest.raises(BuildError, match='2 pods mount the claim "c", which is ReadWriteOnce') as caught:
            build(**several, **given)
        assert [f.code for f in caught.value.findings if f.severity is Severity.ERROR] == ["TJ581"]
        assert "ReadWriteMany" in caught.value.findings[0].fix
    with pytest.raises(BuildError, match="which is ReadWriteOncePod: a volume of a single pod"):
        build(**several, checkpoints="c:rwop")
    assert warned(**several, checkpoints="c") == ["TJ584"]
    assert warned(**several, checkpoints="c:rwx", cache="m:rox") == []
    assert warned(checkpoints="c:rwo", cache="m:rwop") == []


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"checkpoints": "c:rox"}, "read-only, so nothing can be saved there"),
        ({"checkpoints": "c:ro"}, "read-only, so nothing can be saved there"),
        ({"checkpoints": "s3://training"}, "name a folder of this run"),
        ({"checkpoints": "c", "claims": {"/checkpoints": "d"}}, "two claims for /checkpoints"),
        ({"env": {"AWS_SECRET_ACCESS_KEY": "x"}}, "put it into a Secret"),
        ({"cache": "Not Legal"}, "no name of a PersistentVolumeClaim"),
    ],
)
def test_storage_that_cannot_be_meant(wrong: dict[str, Any], text: str) -> None:
    with pytest.raises(BuildError, match=text):
        build(**wrong)


def test_one_claim_at_two_places_needs_a_runtime() -> None:
    """A patch lists mounts by volume name."""
    job = build(claims={"/a": "c", "/b": "c"})
    assert job.runtime is not None
    assert job.reasons == (("volumeMounts", job.reasons[0][1]),)
    assert [o["kind"] for o in job.objects()] == ["TrainingRuntime", "TrainJob"]
    assert [d.data["kind"] for d in yaml.load(job.to_yaml())] == ["TrainingRuntime", "TrainJob"]


def test_several_nodes_need_a_reason() -> None:
    """One node until it does not fit; the reason is kept."""
    with pytest.raises(BuildError, match="say why one node is not enough"):
        train_job(name="tune", runtime="torch-fsdp-multinode", nodes=2)
    with pytest.raises(BuildError, match="say why"):
        train_job(name="tune", runtime="torch-fsdp-multinode", nodes=2, allow_multi_node="  ")
    job = train_job(name="tune", runtime="torch-fsdp-multinode", nodes=4, allow_multi_node=" 70B does not fit ")
    assert job.manifest["spec"]["trainer"]["numNodes"] == 4
    assert job.manifest["metadata"]["annotations"] == {"trainjob.dev/allow-multi-node": "70B does not fit"}


def test_a_single_node_runtime_stays_on_one_node() -> None:
    """Whatever the reason."""
    with pytest.raises(BuildError, match="torch-fsdp-1gpu is a single-node runtime; 2 nodes need torch-fsdp-multinode"):
        build(nodes=2, allow_multi_node="because")


def test_the_runtimes_own_number_of_nodes() -> None:
    """When none is given."""
    job = train_job(name="tune", runtime="torch-fsdp-multinode", allow_multi_node="because")
    assert job.manifest["spec"]["trainer"]["numNodes"] == catalog()["torch-fsdp-multinode"].nodes


def test_a_deadline_before_trainer_2_2() -> None:
    """A runtime of its own carries it."""
    job = build(active_deadline_seconds=60, target=target("2.1"))
    assert job.runtime is not None
    assert "activeDeadlineSeconds" not in job.manifest["spec"]
    assert (
        job.runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["activeDeadlineSeconds"] == 60
    )


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"name": "Not_Legal"}, "metadata.name"),
        ({"name": "x" * 60}, "63 characters"),
        ({"env": {"PET_NNODES": "2"}}, "reserved"),
        ({"nodes": 0}, "numNodes"),
        ({"active_deadline_seconds": 0}, "activeDeadlineSeconds"),
        ({"labels": {"a b": "c"}}, "labels"),
        ({"resources": {"gpu": "0.5"}}, "nvidia.com/gpu"),
        ({"tolerations": [{"operator": 3}]}, "tolerations"),
    ],
)
def test_what_trainer_would_refuse_is_refused_here(wrong: dict[str, Any], text: str) -> None:
    """With every reason, as text and as findings."""
    with pytest.raises(BuildError, match=r"Trainer 2\.3 would refuse this TrainJob") as caught:
        build(**wrong)
    assert text in str(caught.value)
    assert caught.value.findings


def test_an_unknown_runtime() -> None:
    """The catalogue lists what exists; a Runtime object is taken as it is."""
    with pytest.raises(CatalogError, match="it has: "):
        build(runtime="nope")
    assert build(runtime=catalog()["torch-fsdp-8gpu"]).manifest["spec"]["runtimeRef"]["name"] == "torch-fsdp-8gpu"


def test_arguments_are_not_changed_and_not_shared() -> None:
    """The result can be edited; the catalogue stays what it is."""
    before = str(catalog()["torch-fsdp-1gpu"].manifest)
    tolerations = [{"operator": "Exists"}]
    job = build(tolerations=tolerations).to_dict()
    job["spec"]["trainer"]["resourcesPerNode"]["limits"]["cpu"] = "999"
    assert build(tolerations=tolerations).to_dict() != job
    assert tolerations == [{"operator": "Exists"}]
    assert str(catalog()["torch-fsdp-1gpu"].manifest) == before


def test_the_package_offers_it() -> None:
    """On first use; other names do not exist."""
    assert trainjob.train_job is train_job
    assert trainjob.BuildError is BuildError
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        _ = trainjob.nope
