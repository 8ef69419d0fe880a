"""What the v1 webhook or controller would say before any rule reads the job."""

from __future__ import annotations

from typing import Any

import pytest

from tests.migrate.rules.support import POD, SPECS, WORKER, alone, chain, says, v1
from trainjob.findings import Finding
from trainjob.kube import yaml
from trainjob.migrate import migrate_text
from trainjob.migrate.rules import tj101_replicas


def refused(data: Any, message: str, at: str) -> Finding:
    """The only error, which is v1's own."""
    result = migrate_text(yaml.dump(data))
    assert (result.converted, result.text, result.exit_code) == (0, "", 1)
    finding = says(result.findings, "error", message)
    assert finding.code == "TJ911"
    assert finding.where is not None
    assert finding.where.path == at
    assert finding.fix
    return finding


@pytest.mark.parametrize("specs", [{}, None])
def test_no_roles(specs: Any) -> None:
    """Missing or empty."""
    refused(v1(spec={"pytorchReplicaSpecs": specs}), "pytorchReplicaSpecs is missing or empty", SPECS)


def test_unknown_roles() -> None:
    """A parameter server; a role twice."""
    data = v1()
    data["spec"]["pytorchReplicaSpecs"]["PS"] = data["spec"]["pytorchReplicaSpecs"]["Master"]
    refused(data, "v1 knows the roles Master and Worker, not 'PS'", f"{SPECS}.PS")
    data = v1()
    data["spec"]["pytorchReplicaSpecs"]["master"] = data["spec"]["pytorchReplicaSpecs"]["Master"]
    refused(data, "the role 'master' stands twice", f"{SPECS}.master")


def test_lower_case_keys_are_read() -> None:
    """With a note: newer webhooks refuse them. Paths stay as written."""
    data = v1(workers=1)
    specs = data["spec"]["pytorchReplicaSpecs"]
    data["spec"]["pytorchReplicaSpecs"] = {"master": specs["Master"], "WORKER": specs["Worker"]}
    result = chain(data)
    result.says("TJ911", "note", "the key 'master' is read as Master")
    result.says("TJ911", "note", "the key 'WORKER' is read as Worker")
    assert result.trainer["numNodes"] == 2


def test_no_name() -> None:
    """Neither name nor generateName."""
    refused(v1(metadata={}), "the job has no name", "metadata.name")
    assert chain(v1(metadata={"generateName": "d-"})).job["metadata"] == {"generateName": "d-"}


@pytest.mark.parametrize(
    ("containers", "message", "at"),
    [
        ([], "Master has no containers", f"{POD}.containers"),
        (
            [{"name": "a", "image": "a"}, {"name": "b", "image": "b"}],
            "at least one container with name pytorch; there are 2: a, b",
            f"{POD}.containers",
        ),
        ([{"name": "pytorch"}], "the training container has no image", f"{POD}.containers[0]"),
        ([{"name": "s", "image": "s"}, {"name": "pytorch", "image": ""}], "no image", f"{POD}.containers[1]"),
    ],
)
def test_containers(containers: Any, message: str, at: str) -> None:
    """None, none to choose from, and one without an image."""
    refused(v1(pod={"containers": containers}), message, at)


def test_a_template_without_a_pod() -> None:
    """The path is where the containers belong, the line that of what is there."""
    finding = refused(v1(role={"template": {}}), "Master has no containers", f"{POD}.containers")
    assert finding.where is not None
    assert finding.where.line == yaml.dump(v1(role={"template": {}})).splitlines().index("      template: {}") + 1


@pytest.mark.parametrize(
    ("role", "count", "message"),
    [
        ("Master", 2, "Master.replicas is 2 and must be 1"),
        ("Master", -1, "-1 replicas"),
        ("Worker", -3, "-3 replicas"),
    ],
)
def test_counts_that_v1_refuses(role: str, count: int, message: str) -> None:
    """Which count is meant is asked."""
    data = v1(workers=1)
    data["spec"]["pytorchReplicaSpecs"][role]["replicas"] = count
    refused(data, message, f"{SPECS}.{role}.replicas")


def test_no_replicas_at_all() -> None:
    """Every role is absent."""
    refused(v1(role={"replicas": 0}), "every role has 0 replicas", SPECS)


def test_a_role_with_no_replicas_is_absent() -> None:
    """With a warning; whatever else it says has no effect, even what would be refused."""
    data = v1(workers=2, role={"replicas": 0, "restartPolicy": "Never"}, worker={"role": {"replicas": 2}})
    result = chain(data)
    result.says("TJ911", "warning", "Master.replicas is 0: the role is treated as absent")
    assert result.trainer["numNodes"] == 2
    assert result.runtime is None


def test_missing_replicas_are_one() -> None:
    """With a note at the role."""
    data = v1(workers=1)
    for role in data["spec"]["pytorchReplicaSpecs"].values():
        del role["replicas"]
    result = chain(data)
    assert result.says("TJ911", "note", "Worker.replicas is not set: 1").where.path == WORKER  # type: ignore[union-attr]
    assert result.trainer["numNodes"] == 2


def test_a_good_job_is_no_news() -> None:
    """The helper of the rule tests relies on it."""
    assert len(alone(tj101_replicas.RULE, v1(workers=1)).findings) == 1
