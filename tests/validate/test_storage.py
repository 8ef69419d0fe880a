"""Checkpoints that a restart loses, and claims that pods cannot share, on every target."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.validate.objects import Obj, patch, pod_path, trainjob
from trainjob.catalog import catalog
from trainjob.emit import derive_runtime, for_target
from trainjob.findings import Severity
from trainjob.intent import PodParts, Program, Role, TrainingIntent
from trainjob.kube import yaml
from trainjob.targets import DEFAULT, TARGETS, Target
from trainjob.validate import STORAGE_CHECKS, check_documents, claims_of

ONE, MANY = "torch-fsdp-1gpu", "torch-fsdp-multinode"
every_target = pytest.mark.parametrize("t", TARGETS, ids=str)


def runtimes(t: Target) -> dict[str, Any]:
    return {name: for_target(catalog()[name].manifest, t) for name in catalog()}


def pvc(*modes: str, name: str = "ckpt", namespace: str = "") -> Obj:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    spec = {"accessModes": list(modes)}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def mounting(claim: str, path: str = "/checkpoints", **mount: Any) -> Obj:
    return {
        "volumes": [{"name": "c", "persistentVolumeClaim": {"claimName": claim}}],
        "containers": [{"name": "node", "volumeMounts": [{"name": "c", "mountPath": path, **mount}]}],
    }


def job(t: Target, runtime: str, pod: Obj | None = None, nodes: int = 1, **metadata: Any) -> Obj:
    """A TrainJob on a runtime of the catalogue, with one patch or none."""
    resources = copy.deepcopy(dict(catalog()[runtime].resources))
    out = trainjob(t, *([patch(t, pod)] if pod else [{}]), numNodes=nodes, resourcesPerNode=resources)
    out["metadata"] |= metadata
    out["spec"]["runtimeRef"] = {"name": runtime}
    if not pod:
        del out["spec"][t.patches]
    return out


def found(t: Target, *docs: Any, **more: Any) -> list[tuple[str, str]]:
    listed = check_documents(docs, t, runtimes(t), **more)
    return [(f.code, f.where.path if f.where else "") for f in listed]


def codes(t: Target, *docs: Any) -> list[str]:
    return [code for code, _ in found(t, *docs)]


@every_target
def test_a_forgotten_claim(t: Target) -> None:
    assert found(t, job(t, ONE)) == [("TJ580", "spec.runtimeRef.name")]
    assert codes(t, job(t, ONE, mounting("models", "/cache"))) == ["TJ580"]
    assert codes(t, job(t, ONE, mounting("ckpt"))) == []


@every_target
def test_whoever_knows_is_not_told(t: Target) -> None:
    """The annotation, S3, a volume of the job's own, a runtime without the folder."""
    assert codes(t, job(t, ONE, annotations={"trainjob.dev/checkpoints": "none"})) == []
    assert codes(t, job(t, ONE, annotations={"trainjob.dev/checkpoints": "yes"})) == ["TJ580"]
    s3 = job(t, ONE)
    s3["spec"]["trainer"]["env"] = [{"name": "TRAINJOB_CHECKPOINT_URL", "value": "s3://b/run"}]
    assert codes(t, s3) == []
    s3["spec"]["trainer"]["env"][0]["value"] = "/checkpoints/run"
    assert codes(t, s3) == ["TJ580"]
    own = mounting("ckpt")
    own["volumes"] = [{"name": "c", "emptyDir": {}}]
    assert codes(t, job(t, ONE, own)) == []
    compat = job(t, "torch-v1-compat")
    del compat["spec"]["trainer"]["resourcesPerNode"]
    assert codes(t, compat) == []


def test_a_derived_runtime_that_mounts_the_claim() -> None:
    parts = PodParts(
        spec={"volumes": [{"name": "c", "persistentVolumeClaim": {"claimName": "ckpt"}}]},
        container={"volumeMounts": [{"name": "c", "mountPath": "/checkpoints"}]},
    )
    intent = TrainingIntent(Role(1, Program(), parts), name="demo")
    runtime = derive_runtime(intent, catalog()[ONE])
    one = job(DEFAULT, ONE)
    one["spec"]["runtimeRef"] = {"kind": "TrainingRuntime", "name": runtime["metadata"]["name"]}
    assert codes(DEFAULT, runtime, one) == []
    one["spec"]["trainer"]["numNodes"] = 2
    assert found(DEFAULT, runtime, one, pvc("ReadWriteOnce")) == [("TJ581", "spec.runtimeRef.name")]


@every_target
@pytest.mark.parametrize(
    ("modes", "code"),
    [
        (("ReadWriteOnce",), "TJ581"),
        (("ReadWriteOncePod",), "TJ582"),
        (("ReadWriteMany",), None),
        (("ReadWriteOnce", "ReadWriteMany"), None),
    ],
)
def test_several_nodes_on_one_claim(t: Target, modes: tuple[str, ...], code: str | None) -> None:
    two = job(t, MANY, mounting("ckpt"), nodes=2)
    expected = [(code, f"{pod_path(t)}.volumes[0].persistentVolumeClaim.claimName")] if code else []
    assert found(t, pvc(*modes), two) == expected
    assert found(t, two, pvc(*modes)) == expected
    assert found(t, {"kind": "List", "items": [pvc(*modes)]}, two) == expected
    assert found(t, two, claims=claims_of([pvc(*modes)])) == expected
    assert found(t, pvc(*modes), job(t, ONE, mounting("ckpt"))) == []


@every_target
def test_any_path_and_no_runtime(t: Target) -> None:
    """A claim at another place is as wrong; without the runtime the patches are looked at."""
    two = job(t, MANY, mounting("ckpt", "/data"), nodes=2, annotations={"trainjob.dev/checkpoints": "none"})
    assert codes(t, pvc("ReadWriteOnce"), two) == ["TJ581"]
    two["spec"]["runtimeRef"]["name"] = "not-here"
    assert codes(t, pvc("ReadWriteOnce"), two) == ["TJ581", "TJ511"]


def test_the_claim_of_another_namespace() -> None:
    two = job(DEFAULT, MANY, mounting("ckpt"), nodes=2, namespace="a")
    assert codes(DEFAULT, pvc("ReadWriteOnce", namespace="b"), two) == []
    assert codes(DEFAULT, pvc("ReadWriteOnce", namespace="a"), two) == ["TJ581"]
    assert codes(DEFAULT, pvc("ReadWriteOnce"), two) == ["TJ581"]
    assert codes(DEFAULT, pvc("ReadWriteOnce", name="other"), two) == []


@every_target
def test_checkpoints_that_cannot_be_written(t: Target) -> None:
    assert codes(t, job(t, ONE, mounting("ckpt", readOnly=True))) == ["TJ583"]
    assert codes(t, pvc("ReadOnlyMany"), job(t, ONE, mounting("ckpt"))) == ["TJ583"]
    assert codes(t, pvc("ReadOnlyMany"), job(t, ONE, mounting("ckpt", "/data", readOnly=True))) == ["TJ580"]


def test_the_message_names_both_places() -> None:
    """The claim's place is in the message, the job's in the location."""
    stream = yaml.load(yaml.dump_all([pvc("ReadWriteOnce"), job(DEFAULT, MANY, mounting("ckpt"), nodes=2)]), "all.yaml")
    (finding,) = check_documents(stream, DEFAULT, runtimes(DEFAULT))
    assert '2 pods mount the claim "ckpt" (all.yaml:1:1), which is ReadWriteOnce' in finding.message
    assert finding.where is not None
    assert finding.where.file == "all.yaml"
    assert finding.where.line > 10
    assert "ReadWriteMany" in finding.fix
    assert "S3" in finding.fix


@pytest.mark.parametrize(
    "claim",
    [
        {"kind": "PersistentVolumeClaim"},
        {"kind": "PersistentVolumeClaim", "metadata": [], "spec": 3},
        {"kind": "PersistentVolumeClaim", "metadata": {"name": "ckpt"}, "spec": {"accessModes": "ReadWriteOnce"}},
        {"kind": "PersistentVolumeClaim", "apiVersion": "other/v1", **pvc("ReadWriteOnce")["spec"]},
    ],
)
def test_claims_that_say_nothing(claim: Obj) -> None:
    assert claims_of([claim]) == ()


def test_every_code_is_in_the_table_once() -> None:
    assert [c.code for c in STORAGE_CHECKS] == [f"TJ58{n}" for n in range(5)]
    assert {c.severity for c in STORAGE_CHECKS} == {Severity.ERROR, Severity.WARNING}
