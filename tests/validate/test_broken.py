"""Every check finds its fault, at the right place, and nothing else."""

from __future__ import annotations

import pytest

from tests.validate import broken_jobs, broken_patches, broken_runtimes, broken_schema
from tests.validate.broken import Broken
from tests.validate.objects import keys, runtime
from trainjob.findings import Finding, Location
from trainjob.kube.schema import Path
from trainjob.validate import BY_CODE, CHECKS, check_runtime, check_trainjob

TRAINJOBS = broken_schema.ALL + broken_jobs.ALL + broken_patches.ALL


def ids(case: Broken) -> str:
    return f"{case.code}-{case.name}".replace(" ", "-")


def assert_found(case: Broken, found: list[Finding]) -> None:
    told = [(f.code, f.where.path if f.where else "", f.message) for f in found]
    hits = [
        f for f in found if f.code == case.code and f.where and f.where.path == case.path and case.says in f.message
    ]
    assert hits, told
    assert {f.code for f in found} == {case.code, *case.also}, told
    for f in found:
        assert f.severity is BY_CODE[f.code].severity
        assert f.subject.startswith(("TrainJob/", "ClusterTrainingRuntime/", "TrainingRuntime/"))
        assert len(f.message) < 220


@pytest.mark.parametrize("case", TRAINJOBS, ids=ids)
def test_trainjob(case: Broken) -> None:
    assert_found(case, check_trainjob(case.obj, case.target, case.runtime or runtime(case.target)))


@pytest.mark.parametrize("case", broken_runtimes.ALL, ids=ids)
def test_runtime(case: Broken) -> None:
    assert_found(case, check_runtime(case.obj, case.target))


def test_every_check_has_a_broken_object() -> None:
    """TJ511 needs a stream: test_documents.py. TJ528 is refused by our own gate alone: test_topology.py."""
    shown = {case.code for case in TRAINJOBS + broken_runtimes.ALL}
    assert shown | {"TJ511", "TJ528"} == {check.code for check in CHECKS}
    assert len(TRAINJOBS) + len(broken_runtimes.ALL) > 100


def test_codes_and_names_are_unique_and_in_order() -> None:
    codes = [check.code for check in CHECKS]
    assert codes == sorted(set(codes))
    assert len({check.name for check in CHECKS}) == len(CHECKS)
    assert all(code.startswith("TJ5") and len(code) == 5 for code in codes)


def test_places_come_from_locate() -> None:
    asked: list[Path] = []

    def locate(path: Path) -> Location:
        asked.append(path)
        return Location("job.yaml", 7, 3, "here")

    case = next(c for c in TRAINJOBS if c.code == "TJ516")
    (finding,) = check_trainjob(case.obj, case.target, runtime(case.target), locate)
    assert asked == [tuple(keys(case.path))]
    assert str(finding.where) == "job.yaml:7:3"
