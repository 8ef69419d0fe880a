"""What differs between two states of a runtime, and whom it reaches."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from trainjob import emit
from trainjob.catalog import catalog
from trainjob.rundiff import MEANS, Change, Effect, differences, stored
from trainjob.targets import DEFAULT, TARGETS, target

Manifest = dict[str, Any]
OLD = target("2.1")


def base(name: str = "torch-fsdp-8gpu") -> Manifest:
    return copy.deepcopy(dict(catalog()[name].manifest))


def jobset(obj: Manifest) -> Manifest:
    return obj["spec"]["template"]["spec"]  # type: ignore[no-any-return]


def job(obj: Manifest) -> Manifest:
    return jobset(obj)["replicatedJobs"][0]["template"]["spec"]  # type: ignore[no-any-return]


def pod(obj: Manifest) -> Manifest:
    return job(obj)["template"]["spec"]  # type: ignore[no-any-return]


def node(obj: Manifest) -> Manifest:
    return pod(obj)["containers"][0]  # type: ignore[no-any-return]


def changes(old: Manifest, new: Manifest) -> list[Change]:
    return [c for d in differences([old], [new], DEFAULT) for c in d.changes]


EDITS: dict[str, tuple[Callable[[Manifest], Any], str, str, Effect]] = {
    "restarts": (
        lambda o: jobset(o)["failurePolicy"].update(maxRestarts=9),
        "replace", "spec.template.spec.failurePolicy.maxRestarts", Effect.NEW_NAME,
    ),
    "rule gone": (
        lambda o: jobset(o)["failurePolicy"]["rules"].pop(),
        "remove", "spec.template.spec.failurePolicy.rules[onDisruption]", Effect.NEW_NAME,
    ),
    # A rule `self == oldSelf` on an optional field is not asked when the field comes or goes.
    "policy gone": (
        lambda o: jobset(o).pop("failurePolicy"), "remove", "spec.template.spec.failurePolicy", Effect.NEW_JOBS,
    ),
    "policy comes": (
        lambda o: jobset(o).update(network={"enableDNSHostnames": True}),
        "add", "spec.template.spec.network", Effect.NEW_JOBS,
    ),
    "image": (
        lambda o: node(o).update(image="x:1"), "replace",
        "spec.template.spec.replicatedJobs[node].template.spec.template.spec.containers[node].image",
        Effect.RESTARTS_QUEUED_JOBS,
    ),
    "variable": (
        lambda o: node(o)["env"].append({"name": "A", "value": "1"}), "add",
        "spec.template.spec.replicatedJobs[node].template.spec.template.spec.containers[node].env[A]",
        Effect.RESTARTS_QUEUED_JOBS,
    ),
    "tolerations": (
        lambda o: pod(o).update(tolerations=[{"operator": "Exists"}]), "add",
        "spec.template.spec.replicatedJobs[node].template.spec.template.spec.tolerations",
        Effect.RESTARTS_QUEUED_JOBS,
    ),
    "node count": (
        lambda o: o["spec"]["mlPolicy"].update(numNodes=2), "replace", "spec.mlPolicy.numNodes",
        Effect.RESTARTS_QUEUED_JOBS,
    ),
    "job gone": (
        lambda o: jobset(o)["replicatedJobs"].pop(), "remove", "spec.template.spec.replicatedJobs[node]",
        Effect.RESTARTS_QUEUED_JOBS,
    ),
    "grace period": (
        lambda o: pod(o).update(terminationGracePeriodSeconds=7), "replace",
        "spec.template.spec.replicatedJobs[node].template.spec.template.spec.terminationGracePeriodSeconds",
        Effect.NEW_JOBS,
    ),
    "job template": (
        lambda o: job(o).update(backoffLimit=3), "replace",
        "spec.template.spec.replicatedJobs[node].template.spec.backoffLimit", Effect.NEW_JOBS,
    ),
    "summary": (
        lambda o: o["metadata"]["annotations"].update({"trainjob.dev/summary": "x"}), "replace",
        'metadata.annotations["trainjob.dev/summary"]', Effect.NO_JOB,
    ),
    "deprecated": (
        lambda o: o["metadata"]["labels"].update({"trainer.kubeflow.org/support": "deprecated"}), "add",
        'metadata.labels["trainer.kubeflow.org/support"]', Effect.NEW_JOBS,
    ),
}  # fmt: skip


@pytest.mark.parametrize("edit", EDITS)
def test_whom_an_edit_reaches(edit: str) -> None:
    """One edit, one change, with its place and its effect."""
    do, op, where, effect = EDITS[edit]
    new = base()
    do(new)
    (found,) = changes(base(), new)
    assert (found.op, found.where, found.effect) == (op, where, effect)
    (difference,) = differences([base()], [new], DEFAULT)
    assert (difference.status, difference.effect, difference.name) == ("changed", effect, "torch-fsdp-8gpu")


def test_immutable_fields_come_from_the_crd() -> None:
    """Every field with a rule `self == oldSelf`, at the place of the rule and below it."""
    values: list[tuple[str, Any, Any]] = [
        ("network", {"subdomain": "a"}, {"subdomain": "b"}),
        ("successPolicy", {"operator": "All"}, {"operator": "Any"}),
        ("startupPolicy", {"startupPolicyOrder": "AnyOrder"}, {"startupPolicyOrder": "InOrder"}),
        ("volumeClaimPolicies", [{"templates": []}], [{"templates": [{"metadata": {"name": "x"}}]}]),
    ]
    for name, before, after in values:
        old, new = base(), base()
        jobset(old)[name], jobset(new)[name] = before, after
        assert {c.effect for c in changes(old, new)} == {Effect.NEW_NAME}, name
    old, new = base(), base()
    jobset(old)["replicatedJobs"][0]["dependsOn"] = [{"name": "a", "status": "Ready"}]
    jobset(new)["replicatedJobs"][0]["dependsOn"] = [{"name": "a", "status": "Complete"}]
    assert {c.effect for c in changes(old, new)} == {Effect.NEW_NAME}


def test_what_the_server_adds_is_no_difference() -> None:
    """Its metadata, status, the finalizer of Trainer 2.2, kubectl's annotation, and defaults of the CRD."""
    live = base()
    live["metadata"] |= {
        "uid": "u", "resourceVersion": "1", "generation": 3, "creationTimestamp": "2026-01-01T00:00:00Z",
        "managedFields": [{}], "finalizers": ["trainer.kubeflow.org/resource-in-use"],
    }  # fmt: skip
    live["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = "{}"
    live["status"] = {}
    jobset(live)["replicatedJobs"][0] |= {"replicas": 1, "groupName": "default"}
    node(live)["stdin"] = None
    assert list(differences([live], [base()], DEFAULT)) == []
    live["metadata"]["finalizers"] = ["example.com/mine"]
    assert [c.where for c in changes(base(), live)] == ["metadata.finalizers"]


def test_amounts_are_compared_as_amounts() -> None:
    """1000m of a CPU is 1; a number is its text; another field stays text."""
    new = base()
    node(new)["resources"]["limits"] |= {"cpu": "64000m", "memory": str(512 * 2**30), "nvidia.com/gpu": 8}
    pod(new)["volumes"][0]["emptyDir"]["sizeLimit"] = "65536Mi"
    assert changes(base(), new) == []
    node(new)["resources"]["limits"]["cpu"] = "no amount"
    assert [(c.old, c.new) for c in changes(base(), new)] == [("64", "no amount")]
    other = base()
    node(other)["env"][0]["value"] = "1000m"
    assert len(changes(base(), other)) == 1


def test_true_is_not_one() -> None:
    """YAML has both."""
    old, new = base(), base()
    pod(old)["hostNetwork"], pod(new)["hostNetwork"] = True, 1
    assert len(changes(old, new)) == 1


def test_order_of_a_keyed_list() -> None:
    """Matters for env, where `$(NAME)` sees only what stands above it; entries are not told twice."""
    new = base()
    node(new)["env"].reverse()
    (found,) = changes(base(), new)
    assert (found.op, found.effect) == ("order", Effect.RESTARTS_QUEUED_JOBS)
    assert found.new == found.old[::-1]
    new["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["volumes"].reverse()
    assert {c.where.rsplit(".", 1)[-1] for c in changes(base(), new)} == {"env", "volumes"}


def test_lists_without_a_key_are_values() -> None:
    """Twice the same name in a side that is not valid, and lists of texts."""
    new = base()
    node(new)["command"] = ["a"]
    assert [(c.op, c.new) for c in changes(base(), new)] == [("add", ["a"])]
    again = copy.deepcopy(new)
    node(again)["command"] = ["a", "b"]
    assert [(c.op, c.old, c.new) for c in changes(new, again)] == [("replace", ["a"], ["a", "b"])]
    double = base()
    node(double)["env"] *= 2
    assert [c.op for c in changes(base(), double)] == ["replace"]


def test_another_name_is_another_object() -> None:
    """Nothing is changed in place, so nothing is refused and nobody is restarted."""
    new = base()
    new["metadata"]["name"] = "torch-fsdp-8gpu-v2"
    (renamed,) = differences([base()], [new], DEFAULT)
    assert (renamed.new_name, renamed.changes, renamed.effect) == ("torch-fsdp-8gpu-v2", (), Effect.NEW_JOBS)
    jobset(new)["failurePolicy"]["maxRestarts"] = 9
    node(new)["image"] = "x:1"
    (found,) = differences([base()], [new], DEFAULT)
    assert {c.effect for c in found.changes} == {Effect.NEW_JOBS}
    assert [c.immutable for c in found.changes] == [True, False]
    assert found.to_dict()["newName"] == "torch-fsdp-8gpu-v2"


def test_runtimes_that_one_side_has() -> None:
    """Removing one that jobs name strands them; `common` leaves such out."""
    old, new = [base("torch-fsdp-1gpu"), base("torch-fsdp-2gpu")], [base("torch-fsdp-2gpu"), base("torch-fsdp-4gpu")]
    found = [(d.name, d.status, d.effect) for d in differences(old, new, DEFAULT)]
    assert found == [
        ("torch-fsdp-1gpu", "removed", Effect.STRANDS_JOBS), ("torch-fsdp-4gpu", "added", Effect.NEW_JOBS),
    ]  # fmt: skip
    assert list(differences(old, new, DEFAULT, common=True)) == []


def test_before_2_3_running_jobs_see_it() -> None:
    """There Trainer keeps no copy of the runtime for a job."""
    old, new = (copy.deepcopy(dict(emit.for_target(base(), OLD))) for _ in range(2))
    node(new)["image"] = "x:1"
    jobset(new)["failurePolicy"]["maxRestarts"] = 9
    (found,) = differences([old], [new], OLD)
    assert {c.effect for c in found.changes} == {Effect.RUNNING_JOBS, Effect.NEW_NAME}


@pytest.mark.parametrize("name", list(catalog()))
def test_a_runtime_does_not_differ_from_itself(name: str) -> None:
    """For every target, and comparing changes nothing in what is compared."""
    for version in TARGETS:
        one = emit.for_target(catalog()[name].manifest, version)
        before = copy.deepcopy(one)
        assert list(differences([one], [copy.deepcopy(one)], version)) == []
        assert one == before
        assert stored(one, version)["spec"]["template"]["spec"]["replicatedJobs"][0]["replicas"] == 1


def test_every_effect_is_explained() -> None:
    """And a change is a whole object for a tool."""
    assert set(MEANS) == set(Effect)
    shown = Change(("spec", "a.b", "[x]"), "replace", Effect.NO_JOB, 1, 2)
    assert shown.to_dict() == {"path": 'spec["a.b"][x]', "op": "replace", "effect": "no-job", "old": 1, "new": 2}
    assert "old" not in Change(("a",), "add", Effect.NO_JOB, new=1).to_dict()
    assert Change(("a",), "remove", Effect.NEW_NAME, old=1, immutable=True).to_dict()["immutable"] is True
