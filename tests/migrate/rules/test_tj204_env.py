"""TJ204: the user's env is carried; what v1 overwrote is dropped, what v2 reserves is handled."""

from __future__ import annotations

from typing import Any

import pytest

from tests.migrate.rules.support import MAIN, alone, chain, noop, refusal, v1
from trainjob.migrate.rules import tj102_roles, tj204_env

RULE = tj204_env.RULE
AT = f"{MAIN}.env"
LABEL = "metadata.labels['training.kubeflow.org/{}']"


def var(name: str, value: Any = "x", **source: Any) -> dict[str, Any]:
    return {"name": name, "valueFrom": source} if source else {"name": name, "value": value}


def field(path: str) -> dict[str, Any]:
    return {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}


def test_noop_without_env() -> None:
    """Nothing to carry."""
    noop(RULE)


def test_values_and_sources_are_carried_in_order() -> None:
    """Texts, secrets, ConfigMaps and resources; `$(A)` sees what stands above it."""
    env = [
        var("A", "1"),
        var("B", "$(A)/b"),
        var("S", secretKeyRef={"name": "s", "key": "k", "optional": True}),
        var("C", configMapKeyRef={"name": "c", "key": "k"}),
    ]
    ran = alone(RULE, v1({"env": env}))
    assert ran.findings == []
    assert ran.role.env == env
    assert list(chain(v1({"env": env})).env.values())[:4] == env


def test_of_equal_names_the_last_wins() -> None:
    """As in v1; the CRD refuses both."""
    ran = alone(RULE, v1({"env": [var("A", "1"), var("B"), var("A", "2")]}))
    ran.says("warning", "A is set twice; the last one wins", at=f"{AT}[0]")
    assert ran.role.env == [var("B"), var("A", "2")]


@pytest.mark.parametrize(
    "name", ["RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "PYTHONUNBUFFERED", "PET_NODE_RANK"]
)
def test_what_the_operator_overwrote_is_dropped(name: str) -> None:
    """The user's value never won beside a Master."""
    ran = alone(RULE, v1({"env": [var(name, "mine"), var("A")]}))
    ran.says("note", f"{name}: dropped, because the v1 operator overwrote it;", at=AT)
    assert ran.role.env == [var("A")]


def test_several_overwritten_names_are_one_note() -> None:
    """Listed together."""
    ran = alone(RULE, v1({"env": [var("RANK"), var("MASTER_ADDR")]}))
    ran.says("note", "RANK, MASTER_ADDR: dropped, because the v1 operator overwrote them;")


def test_without_a_master_the_users_own_rendezvous_held() -> None:
    """The operator set no RANK there, so the value is kept; names that v2 reserves cannot be."""
    env = [var("RANK", "7"), var("MASTER_ADDR", "h"), var("PET_MASTER_ADDR", "h"), var("PET_NNODES", "2")]
    ran = alone(RULE, v1({"env": env}, master=False, workers=2))
    assert ran.role.env == env[:2]
    ran.says("warning", "PET_MASTER_ADDR is reserved in v2")
    ran.says("note", "PET_NNODES: dropped, because the v1 operator overwrote it")


def test_an_empty_value_is_written_without_one() -> None:
    """Set to the empty text all the same."""
    ran = alone(RULE, v1({"env": [var("E", "")]}))
    ran.says("note", "E is written without a value: still set", at=f"{AT}[0].value")
    assert ran.role.env == [{"name": "E"}]


def test_a_reference_to_an_operator_variable_is_filled_in_now() -> None:
    """v1 left `$(RANK)` in a value as it was: its own variables stood behind the user's."""
    data = v1(container={"env": [{"name": "RUN", "value": "r-$(RANK)"}]})
    alone(RULE, data).says("note", r"\$\(RANK\) in RUN stayed text in v1", at=f"{AT}[0].value")
    assert alone(RULE, v1(container={"env": [{"name": "RUN", "value": "r-$$(RANK)-$(HOME)"}]})).findings == []


def test_a_value_that_names_the_container() -> None:
    """`pytorch` is called `node` now; the value is kept."""
    ran = alone(RULE, v1({"env": [var("CONTAINER", "pytorch")]}))
    ran.says("warning", "names the container 'pytorch'", at=f"{AT}[0].value")
    assert ran.role.env == [var("CONTAINER", "pytorch")]


def test_field_references_lose_their_version() -> None:
    """Trainer drops apiVersion, which would be a change of an immutable field later."""
    ran = alone(RULE, v1({"env": [var("N", **field("spec.nodeName")), {"name": "Z", "valueFrom": {}}]}))
    assert ran.role.env == [var("N", fieldRef={"fieldPath": "spec.nodeName"}), {"name": "Z"}]


def test_resources_of_the_training_container_are_those_of_node() -> None:
    """Another container's stay."""
    env = [var(c, resourceFieldRef={"containerName": c, "resource": "limits.cpu"}) for c in ("pytorch", "other")]
    ran = alone(RULE, v1({"env": env}))
    assert [e["valueFrom"]["resourceFieldRef"]["containerName"] for e in ran.role.env] == ["node", "other"]


def test_the_job_name_label_becomes_jobsets() -> None:
    """With a note."""
    ran = alone(RULE, v1({"env": [var("J", **field(LABEL.format("job-name")))]}))
    ran.says("note", "job-name becomes jobset.sigs.k8s.io/jobset-name", at=f"{AT}[0].valueFrom.fieldRef.fieldPath")
    assert ran.role.env[0]["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.labels['jobset.sigs.k8s.io/jobset-name']"


def test_the_replica_index_becomes_the_completion_index() -> None:
    """With a warning: a Worker's number is one higher beside a Master; of two jobs it is the job's index."""
    env = [var("I", **field(LABEL.format("replica-index")))]
    ran = alone(RULE, v1({"env": env}, workers=1), after=(tj102_roles.RULE,))
    ran.says("warning", "replica-index becomes the completion index; with a Master, Worker i is index i")
    path = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
    assert ran.role.env[0]["valueFrom"]["fieldRef"]["fieldPath"] == path
    ran = alone(
        RULE, v1({"env": env}, workers=1, worker={"container": {"env": env, "image": "o:1"}}), after=(tj102_roles.RULE,)
    )
    assert ran.role.env[0]["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.labels['jobset.sigs.k8s.io/job-index']"


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (var("R", **field(LABEL.format("replica-type"))), "pods have no label"),
        ({"value": "x"}, "an env entry without a name"),
    ],
)
def test_what_v2_cannot_say_is_refused(entry: Any, text: str) -> None:
    """With the place."""
    assert text in refusal(RULE, v1({"env": [entry]})).message


def test_more_variables_than_a_trainjob_takes_are_refused() -> None:
    """With room for those that are added."""
    env = [var(f"V{i}") for i in range(121)]
    assert len(alone(RULE, v1({"env": env[:120]})).role.env) == 120
    assert "121 variables; a TrainJob takes 128" in refusal(RULE, v1({"env": env})).message
