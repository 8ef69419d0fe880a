"""The read-only view of a v1 job."""

from __future__ import annotations

from typing import Any

import pytest

from trainjob.findings import Location
from trainjob.v1.pytorchjob import PyTorchJob, Replica, dict_at, number


def view(data: Any) -> PyTorchJob:
    return PyTorchJob.of(data, lambda path: Location("f", path=str(path)))


def with_roles(**roles: Any) -> PyTorchJob:
    return view({"spec": {"pytorchReplicaSpecs": roles}})


def test_roles_are_found_in_order_whatever_their_case() -> None:
    """Master first; a renamed key keeps the path that the user wrote."""
    job = with_roles(WORKER={"replicas": 2}, master={})
    assert list(job.roles) == ["Master", "Worker"]
    assert job.roles["Worker"].path == ("spec", "pytorchReplicaSpecs", "WORKER")
    assert job.renamed_roles == (
        (("spec", "pytorchReplicaSpecs", "WORKER"), "Worker"),
        (("spec", "pytorchReplicaSpecs", "master"), "Master"),
    )
    assert with_roles(Master={}).renamed_roles == ()


def test_other_and_doubled_roles_are_apart() -> None:
    """A chief, and a second spelling of a role that is there."""
    job = with_roles(Chief={}, Worker={}, worker={})
    assert list(job.roles) == ["Worker"]
    assert [path[-1] for path in job.other_roles] == ["Chief", "worker"]


def test_replicas_default_to_one() -> None:
    """As the controller does; 0 stays 0."""
    job = with_roles(Master={}, Worker={"replicas": 0})
    assert (job.roles["Master"].replicas, job.roles["Worker"].replicas) == (1, 0)


@pytest.mark.parametrize(
    ("names", "index"),
    [(["pytorch"], 0), (["log", "pytorch"], 1), (["trainer"], 0), (["a", "b"], None), ([], None), ([None], 0)],
)
def test_the_training_container(names: list[Any], index: int | None) -> None:
    """The one called pytorch, else the only one, else none."""
    containers = [{"name": n} if n else {} for n in names]
    replica = Replica("Worker", ("w",), {"template": {"spec": {"containers": containers}}})
    assert replica.main() == index
    assert replica.pod_path == ("w", "template", "spec")


@pytest.mark.parametrize("data", [{}, {"spec": None}, {"spec": []}, {"metadata": "x", "spec": {"runPolicy": 3}}])
def test_missing_and_wrong_parts_read_as_empty(data: Any) -> None:
    """The view never raises."""
    job = view(data)
    assert (job.name, job.namespace, dict(job.roles), dict(job.run_policy)) == (None, None, {}, {})
    assert job.elastic is None
    replica = Replica("Master", (), {"template": None})
    assert (replica.containers, replica.main(), dict(replica.metadata)) == ([], None, {})


def test_empty_names_are_no_names() -> None:
    """`name: ""` is what a generator leaves."""
    job = view({"metadata": {"name": "", "namespace": ""}})
    assert (job.name, job.namespace) == (None, None)


@pytest.mark.parametrize(
    ("metadata", "subject"),
    [
        ({"name": "a"}, "PyTorchJob a"),
        ({"name": "a", "namespace": "n"}, "PyTorchJob n/a"),
        ({"generateName": "g-"}, "PyTorchJob g-"),
        ({}, "PyTorchJob without a name"),
    ],
)
def test_the_subject_names_the_job(metadata: Any, subject: str) -> None:
    """For findings about a stream of many jobs."""
    assert view({"metadata": metadata}).subject == subject


@pytest.mark.parametrize(
    ("spec", "nproc", "count"),
    [
        ({}, "auto", None),
        ({"nprocPerNode": "4"}, "4", 4),
        ({"nprocPerNode": "gpu"}, "gpu", None),
        ({"nprocPerNode": "", "elasticPolicy": {"nProcPerNode": 3}}, "3", 3),
        ({"nprocPerNode": "2", "elasticPolicy": {"nProcPerNode": 3}}, "2", 2),
        ({"elasticPolicy": {}}, "auto", None),
    ],
)
def test_processes_per_node(spec: Any, nproc: str, count: int | None) -> None:
    """The field, else the deprecated one, else auto."""
    job = view({"spec": spec})
    assert (job.nproc, job.nproc_number) == (nproc, count)


@pytest.mark.parametrize(
    ("text", "value"), [("0", 0), ("12", 12), ("", None), ("-1", None), ("1.0", None), ("²", None), ("٣", None)]
)
def test_number_reads_plain_digits_only(text: str, value: int | None) -> None:
    """No signs, no digits of other scripts, and no thousands of digits."""
    assert number(text) == value
    assert number("9" * 5000) is None


def test_dict_at_never_raises() -> None:
    """Absent, null and other values are an empty mapping."""
    assert dict_at({"a": {"b": 1}}, "a") == {"b": 1}
    assert dict_at({"a": [1]}, "a") == {}
    assert dict_at({}, "a") == {}
