"""Objects against the vendored CRDs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.validate.objects import keys, put, runtime, trainjob
from trainjob.kube import schema
from trainjob.kube.schema import KINDS, Violation, check, lookup, raw
from trainjob.targets import DEFAULT, TARGETS, Target, target

V1 = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "PyTorchJob",
    "metadata": {"name": "demo"},
    "spec": {
        "pytorchReplicaSpecs": {
            "Master": {"replicas": 1, "template": {"spec": {"containers": [{"name": "pytorch", "image": "a/b:1"}]}}}
        }
    },
}


def found(obj: Any, kind: str = "TrainJob", t: Target | None = DEFAULT) -> list[Violation]:
    return list(check(obj, kind, t))


def only(obj: Any, kind: str = "TrainJob", t: Target | None = DEFAULT) -> Violation:
    (violation,) = found(obj, kind, t)
    return violation


@pytest.mark.parametrize("t", TARGETS, ids=str)
def test_valid(t: Target) -> None:
    assert found(trainjob(t), "TrainJob", t) == []
    assert found(runtime(t), "ClusterTrainingRuntime", t) == []
    assert found(runtime(t, kind="TrainingRuntime"), "TrainingRuntime", t) == []


def test_valid_v1() -> None:
    assert found(V1, "PyTorchJob", None) == []
    bad = put(V1, "spec.pytorchReplicaSpecs.Master.template.spec.containers[0].imagee", "x")
    assert only(bad, "PyTorchJob", None).message == 'unknown field "imagee": did you mean "image"?'


def test_raw_is_shared_and_needs_a_target() -> None:
    assert raw("TrainJob", DEFAULT) is raw("TrainJob", DEFAULT)
    assert raw("TrainingRuntime", DEFAULT) is raw("ClusterTrainingRuntime", DEFAULT)
    assert raw("PyTorchJob") is raw("PyTorchJob", DEFAULT)
    with pytest.raises(ValueError, match="needs a target"):
        raw("TrainJob")
    with pytest.raises(KeyError):
        raw("TFJob", DEFAULT)


def test_lookup() -> None:
    whole = raw("TrainJob", DEFAULT)
    env = lookup(whole, ("spec", "trainer", "env", 3, "name"))
    assert env is not None
    assert env["type"] == "string"
    limits = lookup(whole, ("spec", "trainer", "resourcesPerNode", "limits", "nvidia.com/gpu"))
    assert limits is not None
    assert limits["x-kubernetes-int-or-string"] is True
    assert lookup(whole, ("spec", "nothing", "x")) is None
    assert lookup(whole, ("spec", "suspend", 0)) is None


def test_nulls_of_fields_are_absent_and_nulls_in_lists_are_not() -> None:
    assert found(put(trainjob(DEFAULT), "spec.trainer.image", None)) == []
    assert found(put(trainjob(DEFAULT), "metadata.creationTimestamp", None)) == []
    bad = only(put(trainjob(DEFAULT), "spec.trainer.command", [None]))
    assert (bad.path, bad.message) == (("spec", "trainer", "command", 0), "must be a string, not null")
    bad = only(put(trainjob(DEFAULT), "spec.trainer.imagee", None))
    assert bad.rule == "unknown-field"
    bad = only(put(trainjob(DEFAULT), "spec.runtimeRef.name", None))
    assert bad.message == 'missing field "name"'


def test_several_missing_fields_are_told_once_each() -> None:
    told = [v.message for v in found({})]
    assert told == [f'missing field "{name}"' for name in ("apiVersion", "kind", "metadata", "spec")]


@pytest.mark.parametrize(
    ("value", "message", "fix"),
    [
        ("2", 'must be an integer, not "2"', "remove the quotes"),
        ("two", 'must be an integer, not "two"', ""),
        (True, "must be an integer, not true", ""),
        (2.5, "must be an integer, not 2.5", ""),
        ([], "must be an integer, not a list", ""),
        (2**31, "must be at most 2147483647, not 2147483648", ""),
        (-(2**70), f"must be at least -2147483648, not -{2**70}", ""),
        (float("inf"), "must be an integer, not inf", ""),
    ],
)
def test_integers(value: Any, message: str, fix: str) -> None:
    bad = only(put(trainjob(DEFAULT), "spec.trainer.numNodes", value))
    assert (bad.message, bad.fix) == (message, fix)


@pytest.mark.parametrize("value", [1, 0, "1", "1.5", "500m", "16Gi", "1e3", "+1", ".5", "1."])
def test_quantities(value: Any) -> None:
    assert found(put(trainjob(DEFAULT), "spec.trainer.resourcesPerNode.limits.cpu", value)) == []


@pytest.mark.parametrize("value", [1.5, True, "", "1 Gi", "1gi", "16GB", "one", [], "1\n"])
def test_no_quantities(value: Any) -> None:
    bad = only(put(trainjob(DEFAULT), "spec.trainer.resourcesPerNode.limits.cpu", value))
    assert "quantity" in bad.message
    assert bad.fix


def test_messages_do_not_dump_values() -> None:
    for violation in (
        only(put(trainjob(DEFAULT), "spec.trainer.numNodes", "x" * 10_000)),
        only(put(trainjob(DEFAULT), "spec.trainer.image", "x" * 10_000)),
        only(put(trainjob(DEFAULT), "spec.trainer.command", ["x"] * 1000)),
        only(put(trainjob(DEFAULT), "spec.trainer", ["x"] * 1000)),
        only(put(trainjob(DEFAULT), "spec.managedBy", "x\ny" * 50)),
        only(put(trainjob(DEFAULT), 'metadata.labels["a"]', "x" * 1000)),
    ):
        assert len(violation.message) < 120
        assert "\n" not in violation.message


def test_metadata_as_a_server_checks_it() -> None:
    base = trainjob(DEFAULT)
    assert only(put(base, "metadata.clusterName", "x")).rule == "unknown-field"
    assert only(put(base, "metadata.namespace", "a.b")).message == '"a.b" is not a valid name'
    assert only(put(base, 'metadata.annotations["a"]', 1)).fix == "put it in quotes"
    assert found(put(base, 'metadata.labels["a.io/b"]', "")) == []
    assert only(put(base, 'metadata.labels["A.io/b"]', "")).path == ("metadata", "labels", "A.io/b")
    long = "/".join(("a" * 253, "b" * 63))
    assert found(put(base, f'metadata.labels["{long}"]', "")) == []
    assert only(put(base, f'metadata.labels["{long}b"]', "")).rule in ("pattern", "maxLength")
    for name in ("Demo", "-a", "a_b", "a" * 64):
        assert only(put(base, "metadata.name", name)).path == ("metadata", "name")
        assert only(put(trainjob(TARGETS[0]), "metadata.name", name * 10), "TrainJob", TARGETS[0]).path == (
            "metadata",
            "name",
        )
    pods = "spec.template.spec.replicatedJobs[0].template.spec.template.metadata"
    assert only(put(runtime(DEFAULT), f'{pods}.labels["a"]', "x y"), "ClusterTrainingRuntime").rule == "pattern"


def test_list_keys() -> None:
    base = runtime(DEFAULT)
    node = "spec.template.spec.replicatedJobs[0].template.spec.template.spec.containers[0]"
    ports = [{"containerPort": 1}, {"containerPort": 1, "protocol": "UDP"}, {"containerPort": 1, "protocol": "TCP"}]
    bad = only(put(base, f"{node}.ports", ports), "ClusterTrainingRuntime")
    assert bad.path == (*keys(f"{node}.ports"), 2)
    assert bad.message == 'duplicate containerPort "1", protocol "TCP": entry 0 of the list has it too'
    names = {"targets": [{"jobName": "node", "containerNames": ["a", "a"]}]}
    bad = only(put(base, "spec.mlPolicy.torch.envInjection", names), "ClusterTrainingRuntime")
    assert bad.message == "duplicate a: entry 0 of the list has it too"


def test_rules_are_silent_where_the_structure_is_wrong() -> None:
    bad = only(put(runtime(DEFAULT), "spec.mlPolicy", ["torch"]), "ClusterTrainingRuntime")
    assert bad.rule == "type"
    bad = only(put(trainjob(DEFAULT), "metadata.name", 3))
    assert bad.rule == "type"


def nodes(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    yield path, node
    for name, child in node.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), dict):
            yield from nodes(node[key], f"{path}[]")


@pytest.mark.parametrize(("kind", "t"), [(k, t) for k in KINDS for t in TARGETS], ids=str)
def test_the_conversion_covers_what_the_schemas_use(kind: str, t: Target) -> None:
    """A keyword that the conversion would drop without a word makes this fail."""
    handled = {
        "additionalProperties", "anyOf", "default", "enum", "format", "items", "maxItems", "maxLength",
        "maximum", "minItems", "minLength", "minProperties", "minimum", "pattern", "properties", "required",
        "type", "x-kubernetes-int-or-string", "x-kubernetes-list-map-keys", "x-kubernetes-list-type",
        "x-kubernetes-map-type", "x-kubernetes-validations",
    }  # fmt: skip
    count = 0
    for path, node in nodes(raw(kind, t)):
        count += 1
        assert set(node) <= handled, path
        if "anyOf" in node:
            assert node["anyOf"] == [{"type": "integer"}, {"type": "string"}], path
            assert node["x-kubernetes-int-or-string"], path
        assert node.get("format") in (None, "int32", "int64", "date-time"), path
        assert node.get("x-kubernetes-list-type") in (None, "atomic", "map", "set"), path
    assert count > 400


def test_importing_is_cheap_and_loads_no_validator() -> None:
    code = (
        "import sys, trainjob.kube.schema, trainjob.validate; "
        "print([m for m in ('jsonschema_rs', 'yaml', 'difflib', 'trainjob.kube.explain') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_unknown_fields_name_the_versions_that_have_them() -> None:
    t20, t21, t22 = map(target, ("2.0", "2.1", "2.2"))
    bad = only(put(runtime(t20), "spec.podGroupPolicy.volcano", {}), "ClusterTrainingRuntime", t20)
    assert bad.message == 'unknown field "volcano": Trainer 2.1 and later have it'
    bad = only(put(runtime(t21), "spec.mlPolicy", {"jax": {}}), "ClusterTrainingRuntime", t21)
    assert bad.message == 'unknown field "jax": Trainer 2.2 and later have it'
    bad = only(put(trainjob(t22), "spec.annotations", {"a": "b"}), "TrainJob", t22)
    assert bad.fix == "write them in runtimePatches[].trainingRuntimeSpec.template.metadata"
    bad = only(put(trainjob(DEFAULT), "spec.backoffLimit", 1))
    assert bad.message == 'unknown field "backoffLimit": a TrainJob cannot set it'
    assert only(put(trainjob(DEFAULT), "spec.xyz", 1)).message == 'unknown field "xyz"'


def test_the_facts_are_files_in_the_package() -> None:
    assert {f"{k.project}/{k.plural}" for k in KINDS.values()} == {
        f"{p.parent.parent.name}/{p.stem}" for p in schema.VENDOR.glob("crds/*/*/*.json")
    }
