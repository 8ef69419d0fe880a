"""TJ303: where the pods may run, and selectors on v1's own labels."""

from __future__ import annotations

from typing import Any

import pytest

from tests.migrate.rules.support import POD, alone, chain, noop, refusal, v1
from trainjob.migrate.rules import tj102_roles, tj303_placement

RULE = tj303_placement.RULE
V1 = "training.kubeflow.org"
JOBSET = "jobset.sigs.k8s.io/jobset-name"
NODES = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
    {"matchExpressions": [{"key": f"{V1}/pool", "operator": "In", "values": ["a"]}]}
]}}  # fmt: skip


def near(selector: dict[str, Any], kind: str = "podAffinity", **more: Any) -> dict[str, Any]:
    term = {"labelSelector": selector, "topologyKey": "host", **more}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def expression(label: str, *values: str) -> dict[str, Any]:
    return {"key": f"{V1}/{label}", "operator": "In", "values": list(values)}


def selector(pod: dict[str, Any], **more: Any) -> Any:
    """The selector after the rule."""
    affinity = alone(RULE, v1(pod=pod, **more), after=(tj102_roles.RULE,)).role.spec["affinity"]
    return affinity["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]["labelSelector"]


def test_noop_without_placement() -> None:
    """Empty parts are none."""
    noop(RULE)
    noop(RULE, v1(pod={"nodeSelector": {}, "tolerations": []}))


@pytest.mark.parametrize(
    "pod",
    [
        {"nodeSelector": {"a": "", f"{V1}/pool": "x"}},
        {"tolerations": [{"operator": "Exists"}, {"key": f"{V1}/gang", "operator": "Exists", "effect": "NoSchedule"}]},
        {"affinity": {"nodeAffinity": NODES}},
        {"schedulingGates": [{"name": "acme.io/gate"}]},
    ],
)
def test_they_are_patched_word_by_word(pod: Any) -> None:
    """Labels and taints of nodes are the user's own, whatever their prefix."""
    assert alone(RULE, v1(pod=pod)).findings == []
    assert chain(v1(pod=pod)).patch["spec"] == pod


def test_spreading_and_node_name_need_a_runtime() -> None:
    """With a note each."""
    spread = [
        {
            "maxSkew": 1,
            "topologyKey": "z",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"a": "b"}},
        }
    ]
    pod = {"topologySpreadConstraints": spread, "nodeName": "n1"}
    ran = alone(RULE, v1(pod=pod))
    ran.says("note", "topologySpreadConstraints needs a generated runtime", at=f"{POD}.topologySpreadConstraints")
    ran.says("note", "nodeName needs a generated runtime", at=f"{POD}.nodeName")
    assert chain(v1(pod=pod)).pod()["topologySpreadConstraints"] == spread


def test_the_job_label_becomes_jobsets() -> None:
    """In matchLabels and in matchExpressions, with a note at the place."""
    assert selector(near({"matchLabels": {f"{V1}/job-name": "demo", "a": "b"}})) == {
        "matchLabels": {JOBSET: "demo", "a": "b"}
    }
    assert selector(near({"matchExpressions": [expression("job-name", "demo")]})) == {
        "matchExpressions": [{"key": JOBSET, "operator": "In", "values": ["demo"]}]
    }
    exists = {"key": f"{V1}/job-name", "operator": "Exists"}
    assert selector(near({"matchExpressions": [exists]})) == {
        "matchExpressions": [{"key": JOBSET, "operator": "Exists"}]
    }
    ran = alone(RULE, v1(pod=near({"matchExpressions": [expression("job-name", "demo")]})))
    ran.says("note", f"the v1 label {V1}/job-name becomes {JOBSET}")


def test_role_labels_have_no_counterpart_in_one_template() -> None:
    """That part of the selector is dropped, with a warning."""
    pod = near({"matchLabels": {f"{V1}/replica-type": "worker", "own": "x"}})
    assert selector(pod) == {"matchLabels": {"own": "x"}}
    place = f"{POD}.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector"
    alone(RULE, v1(pod=pod)).says(
        "warning",
        f"no label {V1}/replica-type in v2: this part of the selector is dropped",
        f'{place}.matchLabels["{V1}/replica-type"]',
    )
    both = near({"matchExpressions": [expression("replica-index", "0"), {"key": "own", "operator": "Exists"}]})
    assert selector(both) == {"matchExpressions": [{"key": "own", "operator": "Exists"}]}


def test_a_selector_never_becomes_empty() -> None:
    """An empty one would match every pod: the job's own pods are selected instead."""
    pod = near({"matchExpressions": [expression("replica-type", "worker")]})
    assert selector(pod) == {"matchLabels": {JOBSET: "demo"}}
    finding = refusal(RULE, v1(pod=pod, metadata={"generateName": "d-"}))
    assert "would match every pod of the namespace" in finding.message


def test_two_jobs_keep_the_role() -> None:
    """replica-type is the name of the job there: the Master is `node`."""
    pod = near({"matchExpressions": [expression("replica-type", "master", "worker")]})
    found = selector(pod, workers=1, worker={"container": {"image": "o:1"}, "pod": pod})
    assert found == {
        "matchExpressions": [
            {"key": "jobset.sigs.k8s.io/replicatedjob-name", "operator": "In", "values": ["node", "worker"]}
        ]
    }


def test_label_keys_are_rewritten() -> None:
    """matchLabelKeys of affinities and of spreading; a key without counterpart is dropped."""
    pod = near(
        {"matchLabels": {"a": "b"}}, matchLabelKeys=[f"{V1}/job-name", "own"], mismatchLabelKeys=[f"{V1}/replica-type"]
    )
    ran = alone(RULE, v1(pod=pod))
    (term,) = ran.role.spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert (term["matchLabelKeys"], term["mismatchLabelKeys"]) == ([JOBSET, "own"], [])
    assert len(ran.findings) == 2


def test_foreign_selectors_are_carried() -> None:
    """Without a word."""
    pod = near({"matchLabels": {"app": "x"}}, "podAntiAffinity")
    assert alone(RULE, v1(pod=pod)).findings == []
    assert chain(v1(pod=pod)).patch["spec"] == pod


def test_tolerations_beside_a_queue() -> None:
    """Kueue replaces them on admission: a note."""
    data = v1(
        pod={"tolerations": [{"operator": "Exists"}]},
        metadata={"name": "demo", "labels": {"kueue.x-k8s.io/queue-name": "q"}},
    )
    alone(RULE, data).says("note", "Kueue up to 0.19 replaces these tolerations", at=f"{POD}.tolerations")
