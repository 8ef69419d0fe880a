"""tests/sdkmod/cases: scripts before and after, with the report, as files that a reviewer can read."""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import libcst as cst
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sdkmod.scripts import CASES, migrate_case
from trainjob.findings import Report
from trainjob.sdkmod.engine import Options, migrate_script
from trainjob.sdkmod.source import MARK

each = pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)


def test_every_case_is_here() -> None:
    assert [c.name[:2] for c in CASES] == [f"{n:02}" for n in range(1, 20)]


@each
def test_case(case: Path, golden: Callable[[Path, str], None]) -> None:
    result = migrate_case(case)
    golden(case / "after.py", result.text)
    report = Report(result.findings)
    head = f"{result.calls} places rewritten, {result.marks} marks, exit code {report.exit_code()}\n\n"
    golden(case / "report.txt", head + report.text())


@each
def test_a_second_run_changes_nothing_and_reports_what_is_open(case: Path) -> None:
    first = migrate_case(case)
    again = migrate_script(first.text, file="before.py", options=Options(folder=str(case)))
    assert again.text == first.text
    assert again.calls == 0
    assert again.marks == first.marks
    if first.marks:
        assert Report(again.findings).exit_code() == 1


@each
def test_every_mark_is_a_finding_and_every_error_is_a_mark(case: Path) -> None:
    result = migrate_case(case)
    marks = [line.split(MARK)[1].split()[0] for line in result.text.splitlines() if MARK in line]
    assert set(marks) <= {f.code for f in result.findings}
    assert {f.code for f in result.findings if f.severity == "error"} <= set(marks)


def comments(text: str) -> Counter[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return Counter(t.string for t in tokens if t.type == tokenize.COMMENT)


@each
def test_no_comment_is_lost(case: Path) -> None:
    before = (case / "before.py").read_text(encoding="utf-8")
    assert comments(before) <= comments(migrate_case(case).text)


ODD_BEFORE = """\
# -*- coding: utf-8 -*-
'''Odd  formatting.'''
x = {  'a':1 ,'b' : [ 1,2 ] }  ;y=(3 ,)   # Käse \u2713

def  odd ( a,b = 2 ) :
    return a   +   b
"""
ODD_AFTER = """

if x : y = [ i for i in range( 3 )if i ]
long_one = "a" \\
    'b'
z = lambda *a , ** k : (a ,k)      # the end"""


@each
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_what_stands_around_stays_byte_for_byte(case: Path, end: str) -> None:
    before = (case / "before.py").read_text(encoding="utf-8")
    after = migrate_case(case).text
    around = [(ODD_BEFORE + t + ODD_AFTER).replace("\n", end) for t in (before, after)]
    result = migrate_script(around[0], file="before.py", options=Options(folder=str(case)))
    assert result.text == around[1]


@settings(max_examples=40)
@given(data=st.data())
def test_parts_of_scripts_in_any_order_give_python_and_stay_after_that(data: st.DataObject) -> None:
    """Names that nothing binds, calls before their client, jobs without objects: no crash, never a broken script."""
    statements = []
    for case in data.draw(st.lists(st.sampled_from(CASES), min_size=1, max_size=2, unique=True)):
        module = cst.parse_module((case / "before.py").read_text(encoding="utf-8"))
        statements += [module.code_for_node(s) for s in module.body]
    chosen = data.draw(st.lists(st.sampled_from(statements), max_size=8))
    text = "from kubeflow.training import TrainingClient\n" + "".join(chosen)
    result = migrate_script(text, file="s.py")
    ast.parse(result.text)
    again = migrate_script(result.text, file="s.py")
    assert again.text == result.text
