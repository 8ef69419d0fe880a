"""migration/cases: what comes out of each input is kept as a file that a reviewer can read."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from trainjob.findings import Report
from trainjob.migrate import Migration, migrate_text
from trainjob.targets import TARGETS, Target

CASES = Path(__file__).parents[2] / "migration" / "cases"
INPUTS = sorted(CASES.glob("*/before.*"))
# Cases with a JAXJob or an XGBoostJob.
NEEDS_POLICY = re.compile(r"5[5-9]|6[0-2]|69")


def run(path: Path) -> Migration:
    return migrate_text(path.read_bytes(), file=path.name)


def report_of(result: Migration) -> str:
    head = f"{result.converted} migrated, {result.refused} refused, exit code {result.exit_code}\n\n"
    return head + Report(result.findings).text()


def test_every_case_is_here() -> None:
    assert len(INPUTS) == 69
    assert [p.parent.name[:2] for p in INPUTS] == [f"{n:02}" for n in range(1, 70)]


@pytest.mark.parametrize("path", INPUTS, ids=lambda p: p.parent.name)
def test_case(path: Path, golden: Callable[[Path, str], None]) -> None:
    result = run(path)
    after = path.parent / "after.yaml"
    if result.text:
        golden(after, result.text)
    else:
        assert not after.exists(), "a refused input has no output: remove the file"
    golden(path.parent / "report.txt", report_of(result))


@pytest.mark.parametrize("path", INPUTS, ids=lambda p: p.parent.name)
def test_migrating_the_output_changes_nothing(path: Path) -> None:
    text = run(path).text
    again = migrate_text(text) if text else None
    if again is not None and again.refused == 0:
        assert (again.text, again.converted) == (text, 0)


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_the_same_inputs_are_refused_for_every_target(target: object) -> None:
    """A job that one Trainer version can run must not be lost for another without a reason."""
    inputs = [p for p in INPUTS if not NEEDS_POLICY.match(p.parent.name)]
    by_default = [run(p).converted for p in inputs]
    for_target = [migrate_text(p.read_bytes(), file=p.name, target=target).converted for p in inputs]  # type: ignore[arg-type]
    assert for_target == by_default
    assert sum(by_default) == 45


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_jobs_that_need_a_policy_are_refused_where_there_is_none(target: Target) -> None:
    """JAX and XGBoost came with Trainer 2.2: before it each job is refused by TJ110, none of the others."""
    inputs = [p for p in INPUTS if NEEDS_POLICY.match(p.parent.name)]
    assert len(inputs) == 9
    for path in inputs:
        result = migrate_text(path.read_bytes(), file=path.name, target=target)
        without = {f.subject.split()[0] for f in result.findings if f.code == "TJ110"}
        assert without <= {"JAXJob", "XGBoostJob"}
        assert bool(without) == ("jax" not in target.policies), path.parent.name
