"""The API generations of Trainer v2, by every name that people use for them."""

from __future__ import annotations

import dataclasses

import pytest

from trainjob.kube import schema
from trainjob.targets import API_VERSION, DEFAULT, TARGETS, names, target


@pytest.mark.parametrize(
    ("name", "minor"),
    [
        ("2.0", "2.0"), ("2.3", "2.3"), ("v2.1.0", "2.1"), ("2.0.1", "2.0"), ("trainer-2.2", "2.2"), (" 2.3 ", "2.3"),
        ("V2.3.0", "2.3"), ("rhoai-3.2", "2.1"), ("RHOAI-3.5", "2.1"), ("rhoai-3.6", "2.3"),
    ],
)  # fmt: skip
def test_names_of_targets(name: str, minor: str) -> None:
    """Minors, releases and aliases, in any case."""
    assert target(name).name == minor
    assert str(target(name)) == minor


@pytest.mark.parametrize("name", ["", "2", "2.4", "1.9", "latest", "rhoai", "v", "2.3.1"])
def test_unknown_names_list_what_exists(name: str) -> None:
    """The error is a help."""
    with pytest.raises(ValueError, match=r"choose one of 2\.0, 2\.1, 2\.2, 2\.3, rhoai-3\.2"):
        target(name)


def test_every_name_leads_back_to_its_target() -> None:
    """No name is given twice."""
    assert len(set(names())) == len(names()) == 9
    assert {target(name).name for name in names()} == {t.name for t in TARGETS}


def test_the_newest_is_the_default() -> None:
    """And all of them share one apiVersion."""
    assert DEFAULT is TARGETS[-1]
    assert API_VERSION == "trainer.kubeflow.org/v1alpha1"


@pytest.mark.parametrize("each", TARGETS, ids=str)
def test_capabilities_agree_with_the_crds(each: object) -> None:
    """Each flag is what the vendored schema of that release says."""
    one = target(str(each))
    job = schema.raw("TrainJob", one)["properties"]["spec"]["properties"]
    runtime = schema.raw("TrainingRuntime", one)["properties"]["spec"]["properties"]
    assert [k for k in ("podSpecOverrides", "podTemplateOverrides", "runtimePatches") if k in job] == [one.patches]
    assert ("activeDeadlineSeconds" in job) is one.active_deadline
    torch = runtime["mlPolicy"]["properties"]["torch"].get("properties", {})
    assert ("numProcPerNode" in torch) is one.torch_nproc_in_runtime
    assert ("envInjection" in torch) is one.env_injection
    if one.patches == "runtimePatches":
        jobs = job["runtimePatches"]["items"]["properties"]["trainingRuntimeSpec"]["properties"]["template"]
        replicated = jobs["properties"]["spec"]["properties"]["replicatedJobs"]["items"]["properties"]
        pod = replicated["template"]["properties"]["spec"]["properties"]["template"]["properties"]
        metadata = "metadata" in pod
        fields = pod["spec"]["properties"]
    else:
        items = job[one.patches]["items"]["properties"]
        metadata = "metadata" in items
        fields = items["spec"]["properties"] if "spec" in items else items
    assert metadata is one.patch_metadata
    assert ("affinity" in fields) is one.patch_affinity
    assert ("imagePullSecrets" in fields) is one.patch_pull_secrets
    assert ("securityContext" in fields) is one.patch_security_context
    assert ("terminationGracePeriodSeconds" in fields) is one.patch_grace_period


def test_targets_cannot_be_changed() -> None:
    """They are facts."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        DEFAULT.name = "x"  # type: ignore[misc]
