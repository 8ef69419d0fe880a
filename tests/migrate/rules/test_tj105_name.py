"""TJ105: the name, and how long it may be."""

from __future__ import annotations

from typing import Any

import pytest

from tests.migrate.rules.support import alone, chain, refusal, v1
from trainjob.migrate.rules import tj102_roles, tj105_name

RULE = tj105_name.RULE
AFTER = (tj102_roles.RULE,)


def test_noop_for_a_short_name() -> None:
    """Name and namespace are carried without a word."""
    ran = alone(RULE, v1(metadata={"name": "demo", "namespace": "ns"}))
    assert (ran.draft.name, ran.draft.generate_name, ran.draft.namespace) == ("demo", None, "ns")
    assert ran.findings == []


@pytest.mark.parametrize(("length", "workers"), [(48, 9), (47, 10), (47, 99), (46, 100)])
def test_the_limit_depends_on_the_nodes(length: int, workers: int) -> None:
    """48 characters up to 10 pods, one less for each further digit; one more character is refused."""
    metadata = {"name": "a" * length}
    assert alone(RULE, v1(workers=workers, metadata=metadata), after=AFTER).findings == []
    finding = refusal(RULE, v1(workers=workers, metadata={"name": "a" * (length + 1)}), after=AFTER)
    assert f"with {workers + 1} nodes a TrainJob's name may have {length}" in finding.message
    assert "rename the job, for example 'aaa" in finding.fix


def test_two_jobs_need_more_room() -> None:
    """`worker` is longer than `node`, and its index stands elsewhere."""
    worker = {"container": {"image": "other:1"}}
    assert alone(RULE, v1(workers=9, worker=worker, metadata={"name": "a" * 46}), after=AFTER).findings == []
    refusal(RULE, v1(workers=9, worker=worker, metadata={"name": "a" * 47}), after=AFTER)
    refusal(RULE, v1(workers=11, worker=worker, metadata={"name": "a" * 46}), after=AFTER)


@pytest.mark.parametrize("name", ["1-model", "a.b", "A", "a_b", "a-", "x" * 64])
def test_names_that_trainer_refuses(name: str) -> None:
    """v1 refuses them too."""
    assert "is no RFC 1035 label" in refusal(RULE, v1(metadata={"name": name})).message


def test_generate_name_is_carried() -> None:
    """With a note: nobody knows the name of rank 0 beforehand."""
    ran = alone(RULE, v1(metadata={"generateName": "demo-"}))
    ran.says("note", "the name is not known before the job exists", at="metadata.generateName")
    assert (ran.draft.name, ran.draft.generate_name) == (None, "demo-")


@pytest.mark.parametrize(
    ("prefix", "text"),
    [
        ("My_Job-", "makes names that are no RFC 1035 labels"),
        ("1-", "makes names that are no RFC 1035 labels"),
        ("a" * 43 + "-", "generateName has 44 characters; 43 leave room for the 5 random ones"),
        ("a" * 70 + "-", "generateName has 71 characters"),
    ],
)
def test_generated_names_must_fit_too(prefix: str, text: str) -> None:
    """The five random characters count."""
    assert text in refusal(RULE, v1(metadata={"generateName": prefix})).message


def test_a_name_wins_over_generate_name() -> None:
    """As for the API server."""
    ran = alone(RULE, v1(metadata={"name": "demo", "generateName": "x-"}))
    assert (ran.draft.name, ran.draft.generate_name) == ("demo", None)


def test_an_empty_namespace_is_left_out() -> None:
    """It says nothing."""
    ran = alone(RULE, v1(metadata={"name": "demo", "namespace": ""}))
    ran.says("note", "the empty namespace is left out", at="metadata.namespace")
    assert ran.draft.namespace is None


@pytest.mark.parametrize("metadata", [{"name": "demo", "namespace": "ns"}, {"generateName": "demo-"}])
def test_metadata_is_written(metadata: Any) -> None:
    """As it was."""
    assert chain(v1(metadata=metadata)).job["metadata"] == metadata
