"""Objects that hold a job: what changes around it, and what stays."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.migrate.rules.support import says, v1
from trainjob.kube import yaml
from trainjob.migrate import migrate_text
from trainjob.migrate.wrappers import metadata_of, put

QUEUE = "kueue.x-k8s.io/queue-name"
RANK_0 = {"jobset.sigs.k8s.io/replicatedjob-name": "node", "batch.kubernetes.io/job-completion-index": "0"}


def katib(job: Any, **template: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kubeflow.org/v1beta1",
        "kind": "Experiment",
        "metadata": {"name": "e", "namespace": "ns"},
        "spec": {
            "maxTrialCount": 3,
            "trialTemplate": {"trialParameters": [{"name": "lr"}], **template, "trialSpec": job},
        },
    }


def app_wrapper(*components: Any, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "workload.codeflare.dev/v1beta2",
        "kind": "AppWrapper",
        "metadata": {"name": "w", **metadata},
        "spec": {"components": list(components)},
    }


def run(wrapper: Any) -> tuple[list[Any], Any]:
    result = migrate_text(yaml.dump(wrapper))
    return [doc.data for doc in yaml.load(result.text)], result


# --- Katib ---------------------------------------------------------------------------------------


def test_katib_gets_the_conditions_and_labels_of_a_trainjob() -> None:
    """Each change is a note; everything else stays."""
    old = katib(
        v1(metadata={}), primaryContainerName="pytorch", primaryPodLabels={"training.kubeflow.org/job-role": "master"}
    )
    (new,), result = run(old)
    template = new["spec"]["trialTemplate"]
    assert template["trialSpec"]["kind"] == "TrainJob"
    assert template["primaryContainerName"] == "node"
    assert template["primaryPodLabels"] == RANK_0
    assert template["successCondition"] == 'status.conditions.#(type=="Complete")#|#(status=="True")#'
    assert template["failureCondition"] == 'status.conditions.#(type=="Failed")#|#(status=="True")#'
    assert (template["trialParameters"], new["spec"]["maxTrialCount"]) == ([{"name": "lr"}], 3)
    says(result.findings, "note", "primaryContainerName was 'pytorch'; it is 'node' now")
    says(result.findings, "note", "successCondition was not set")
    says(result.findings, "warning", "Katib must know TrainJob as a trial resource")


def test_katib_settings_that_fit_already_are_no_change() -> None:
    """Nothing is told about them."""
    _, result = run(katib(v1(), primaryContainerName="node", primaryPodLabels=RANK_0))
    assert not any("primary" in f.message for f in result.findings if f.code == "TJ914")


def test_a_trial_needs_no_name_and_keeps_its_placeholders() -> None:
    """Katib names it and fills `${trialParameters.x}` in."""
    (new,), _ = run(katib(v1({"command": ["python", "t.py", "--lr=${trialParameters.lr}"]}, metadata={})))
    job = new["spec"]["trialTemplate"]["trialSpec"]
    assert job["spec"]["trainer"]["command"][2] == "--lr=${trialParameters.lr}"
    assert "MASTER_ADDR" not in str(job)


@pytest.mark.parametrize("metadata", [None, "text", [1], {"namespace": ""}])
def test_odd_metadata_of_an_experiment(metadata: Any) -> None:
    """Read without an exception; an empty namespace is left out."""
    wrapper = katib(v1())
    wrapper["metadata"] = metadata
    (new,), result = run(wrapper)
    assert result.converted == 1
    assert new.get("metadata") != {"namespace": ""}


def test_a_runtime_stands_before_the_experiment() -> None:
    """In its namespace."""
    objects, _ = run(katib(v1({"workingDir": "/w"})))
    assert [o["kind"] for o in objects] == ["TrainingRuntime", "Experiment"]
    assert objects[0]["metadata"]["namespace"] == "ns"


def test_a_refused_trial_changes_nothing() -> None:
    """No condition of v2 on a job of v1."""
    objects, result = run(katib(v1(metadata={"name": "No_Name"})))
    assert (objects, result.refused) == ([], 1)


@pytest.mark.parametrize("version", ["acme.io/v1", "kubeflow.org/v1beta1"])
def test_experiments_of_others_are_unknown(version: str) -> None:
    """Katib's group only, and only in its own place."""
    wrapper = {**katib(v1()), "apiVersion": version}
    if version.startswith("kubeflow.org"):
        wrapper["spec"] = {"other": wrapper["spec"]["trialTemplate"]["trialSpec"]}
    _, result = run(wrapper)
    assert [f.code for f in result.findings] == ["TJ908"]


# --- AppWrapper ----------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["template", "generictemplate"])
def test_a_component_of_an_app_wrapper(key: str) -> None:
    """Its pod sets become one; the others stay."""
    other = {"template": {"kind": "Service"}, "podSets": []}
    sets = [{"replicas": 1, "path": "a"}, {"replicas": 2, "path": "b"}]
    (new,), result = run(app_wrapper(other, {key: v1(workers=2), "podSets": sets}))
    first, second = new["spec"]["components"]
    assert first == other
    assert second[key]["kind"] == "TrainJob"
    assert second["podSets"] == [{"replicas": 3, "path": "template.spec.trainer"}]
    says(result.findings, "warning", "the pod sets become one of 3 pods")
    says(result.findings, "warning", "the AppWrapper controller must know TrainJob")


def test_without_pod_sets_none_are_written() -> None:
    """The controller may infer them."""
    (new,), _ = run(app_wrapper({"template": v1()}))
    assert "podSets" not in new["spec"]["components"][0]


def test_several_jobs_in_one_wrapper() -> None:
    """Each in its place; a refused one stays."""
    bad = v1(metadata={"name": "No_Name"})
    (new,), result = run(app_wrapper({"template": v1()}, {"template": bad}, {"template": v1(metadata={"name": "c"})}))
    assert [c["template"]["kind"] for c in new["spec"]["components"]] == ["TrainJob", "PyTorchJob", "TrainJob"]
    assert (result.converted, result.refused, result.exit_code) == (2, 1, 1)
    assert new["spec"]["components"][1]["template"] == bad


@pytest.mark.parametrize(
    ("metadata", "labels", "annotations"),
    [
        ({"annotations": {QUEUE: "q"}}, {QUEUE: "q"}, None),
        ({"annotations": {QUEUE: "q", "a": "b"}, "labels": {"c": "d"}}, {QUEUE: "q", "c": "d"}, {"a": "b"}),
        ({"labels": {QUEUE: "q"}}, {QUEUE: "q"}, None),
        ({}, None, None),
        ({"annotations": None, "labels": "text"}, "text", None),
    ],
)
def test_the_legacy_queue_annotation_of_a_wrapper(metadata: Any, labels: Any, annotations: Any) -> None:
    """It becomes the label."""
    (new,), _ = run(app_wrapper({"template": v1()}, **metadata))
    assert new["metadata"].get("labels") == labels
    assert new["metadata"].get("annotations") == annotations


def test_comments_of_a_wrapper_are_announced() -> None:
    """It is written anew."""
    result = migrate_text(
        "# before\n---\n" + yaml.dump(app_wrapper({"template": v1()})).replace("kind:", "kind: # x\n ", 1)
    )
    assert result.text.startswith("# before\n---\napiVersion: workload")
    says(result.findings, "note", "its comments are not kept")


# --- helpers -------------------------------------------------------------------------------------


def test_put_replaces_one_value_in_a_copy() -> None:
    """In mappings and lists; the input is left alone."""
    root = {"a": [{"b": 1}, {"b": 2}], "c": 3}
    before = copy.deepcopy(root)
    assert put(root, ("a", 1, "b"), 9) == {"a": [{"b": 1}, {"b": 9}], "c": 3}
    assert put(root, (), {"x": 1}) == {"x": 1}
    assert root == before


@pytest.mark.parametrize("root", [[], None, "x", {"metadata": []}, {}])
def test_metadata_of_anything(root: Any) -> None:
    """Empty where there is none."""
    assert metadata_of(root) == {}
