"""TJ308: labels and annotations of the pods."""

from __future__ import annotations

from typing import Any

import pytest

from tests.migrate.rules.support import MASTER, alone, chain, noop, v1
from trainjob.migrate.rules import tj102_roles, tj106_labels, tj308_pod_metadata
from trainjob.targets import TARGETS, Target

RULE = tj308_pod_metadata.RULE
AT = f"{MASTER}.template.metadata"
ISTIO = "sidecar.istio.io/inject"
QUEUE = "kueue.x-k8s.io/queue-name"


def test_noop_without_metadata() -> None:
    """The pods have none of their own."""
    noop(RULE)


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_they_reach_the_pods(target: Target) -> None:
    """By a patch, or in a runtime where the Trainer version has no patch for them."""
    metadata = {"labels": {"app": "x"}, "annotations": {"k8s.v1.cni.cncf.io/networks": "n"}}
    data = v1(pod_metadata=metadata)
    assert alone(RULE, data).findings == []
    result = chain(data, target)
    if target.patch_metadata:
        assert str(metadata) in str(result.job["spec"][target.patches])
    else:
        assert result.batch()["template"]["metadata"] == metadata


@pytest.mark.parametrize(("kind", "missing"), [("labels", "annotation"), ("annotations", "label")])
def test_an_opt_out_of_istio_is_given_both_ways(kind: str, missing: str) -> None:
    """Older meshes read one, newer the other."""
    ran = alone(RULE, v1(pod_metadata={kind: {ISTIO: "false"}}))
    ran.says("note", f'{ISTIO}: "false" is set as {missing} too', at=AT)
    assert (ran.role.labels, ran.role.annotations) == ({ISTIO: "false"}, {ISTIO: "false"})
    assert alone(RULE, v1(pod_metadata={"labels": {ISTIO: "false"}, "annotations": {ISTIO: "false"}})).findings == []
    assert alone(RULE, v1(pod_metadata={kind: {ISTIO: "true"}})).findings == []


def test_queue_labels_belong_on_the_job() -> None:
    """Left out of the pods; told whether the job has one."""
    data = v1(pod_metadata={"labels": {QUEUE: "q", "a": "b"}})
    ran = alone(RULE, data)
    ran.says(
        "note", "left out of the pods: .*, which has none; the v1 job was not queued", at=f'{AT}.labels["{QUEUE}"]'
    )
    assert ran.role.labels == {"a": "b"}
    data["metadata"]["labels"] = {QUEUE: "q"}
    finding = alone(RULE, data, after=(tj106_labels.RULE,)).findings[0]
    assert "which has none" not in finding.message


def test_the_operators_labels_are_dropped() -> None:
    """With a warning: somebody may select by them."""
    ran = alone(RULE, v1(pod_metadata={"labels": {"training.kubeflow.org/job-role": "master", "a": "b"}}))
    ran.says("warning", "was the v1 operator's own")
    assert ran.role.labels == {"a": "b"}


@pytest.mark.parametrize(("key", "value"), [("name", "x"), ("namespace", "x"), ("finalizers", ["x"])])
def test_other_metadata_had_no_effect(key: str, value: Any) -> None:
    """The operator named the pods."""
    alone(RULE, v1(pod_metadata={key: value})).says("note", f"template.metadata.{key} is left out", at=f"{AT}.{key}")


def test_pod_sets_have_other_names() -> None:
    """Topology annotations of Kueue are carried with a note."""
    key = "kueue.x-k8s.io/podset-required-topology"
    ran = alone(RULE, v1(pod_metadata={"annotations": {key: "rack"}}))
    ran.says("note", "pod sets are called `node`", at=f'{AT}.annotations["{key}"]')
    assert ran.role.annotations == {key: "rack"}


def test_two_jobs_keep_their_own_labels() -> None:
    """Each on its job, with a note."""
    worker = {"container": {"image": "o:1"}, "pod_metadata": {"labels": {"r": "w"}}}
    data = v1(pod_metadata={"labels": {"r": "m"}}, workers=1, worker=worker)
    alone(RULE, data, after=(tj102_roles.RULE,)).says("note", "the roles' own labels are kept", at=f"{AT}.labels")
    result = chain(data)
    assert result.batch("node")["template"]["metadata"]["labels"]["r"] == "m"
    assert result.batch("worker")["template"]["metadata"]["labels"] == {"r": "w"}
