"""No input makes a check fail: wrong shapes are findings, and the checks pass over them."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.validate import broken_jobs, broken_patches, broken_runtimes, broken_schema
from tests.validate.objects import Obj, put, runtime, trainjob
from trainjob.targets import DEFAULT, TARGETS
from trainjob.validate import check_documents, check_runtime, check_trainjob

JUNK: list[Any] = [None, "", "x", 0, -1, 2.5, True, [], [None], [[]], ["x"], {}, {"x": None}, [{}], [{"name": 3}]]
NOT_PLAIN: list[Any] = [{1: 2}, b"x", {"x"}, object(), (1, 2), float("nan")]


def paths(value: Any, at: str = "") -> list[str]:
    """The path of every value inside an object."""
    out = [at] if at else []
    if isinstance(value, dict):
        for key, child in value.items():
            name = key if key.isalnum() else f'["{key}"]'
            out += paths(child, f"{at}.{name}" if at and name == key else f"{at}{name}")
    elif isinstance(value, list):
        for index, child in enumerate(value):
            out += paths(child, f"{at}[{index}]")
    return out


def rich_objects() -> list[tuple[Obj, bool]]:
    """(object, True for a TrainJob): the fine ones, and those of the tables with most fields."""
    out: list[tuple[Obj, bool]] = [(trainjob(t), True) for t in TARGETS] + [(runtime(t), False) for t in TARGETS]
    for cases, is_job in (
        (broken_schema.ALL + broken_jobs.ALL + broken_patches.ALL, True),
        (broken_runtimes.ALL, False),
    ):
        out += [(case.obj, is_job) for case in cases]
    return out


def check(obj: Any, is_job: bool) -> int:
    found = 0
    for t in TARGETS:
        if is_job:
            found += len(check_trainjob(obj, t, runtime(t))) + len(check_trainjob(obj, t))
        else:
            found += len(check_runtime(obj, t)) + len(check_trainjob(trainjob(t), t, obj))
    return found


@pytest.mark.parametrize("junk", [*JUNK, *NOT_PLAIN], ids=lambda junk: str(type(junk).__name__))
def test_junk_in_the_fine_objects(junk: Any) -> None:
    for obj, is_job in ((trainjob(DEFAULT), True), (runtime(DEFAULT), False)):
        for path in paths(obj):
            check(put(obj, path, junk), is_job)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(rich_objects()), st.data())
def test_junk_in_any_object(one: tuple[Obj, bool], data: st.DataObject) -> None:
    obj, is_job = one
    for _ in range(2):
        path = data.draw(st.sampled_from(paths(obj)))
        obj = put(obj, path, data.draw(st.sampled_from(JUNK)))
    check(obj, is_job)


@pytest.mark.parametrize("junk", [*JUNK, *NOT_PLAIN], ids=lambda junk: str(type(junk).__name__))
def test_no_object_at_all(junk: Any) -> None:
    for t in TARGETS:
        assert check_trainjob(junk, t)
    check_documents([junk] if isinstance(junk, dict) else [], DEFAULT)


def test_values_that_are_no_json_are_told_once() -> None:
    (finding,) = check_trainjob(put(trainjob(DEFAULT), "spec.trainer.args", [{1: 2}]), DEFAULT)
    assert finding.code == "TJ501"
    assert "not plain data" in finding.message


def test_a_name_full_of_hyphens_is_quick() -> None:
    """Patterns that backtrack would take seconds here."""
    start = time.process_time()
    for name in ("a" + "-" * 50_000, "a" * 50_000 + "!", "a." * 25_000 + "!"):
        check_trainjob(put(trainjob(DEFAULT), "metadata.name", name), TARGETS[0], runtime(TARGETS[0]))
        check_trainjob(put(trainjob(DEFAULT), "spec.runtimePatches[0].manager", name), DEFAULT)
    assert time.process_time() - start < 1


def test_a_check_is_fast_enough_for_the_migrator() -> None:
    job, base = trainjob(DEFAULT), runtime(DEFAULT)
    check_trainjob(job, DEFAULT, base)
    best = min(_seconds(job, base) for _ in range(5))
    assert best < 0.005  # 0.4 ms on an idle machine; the migrator must do more than 200 jobs a second


def _seconds(job: Obj, base: Obj) -> float:
    start = time.process_time()
    for _ in range(20):
        check_trainjob(job, DEFAULT, base)
    return (time.process_time() - start) / 20
