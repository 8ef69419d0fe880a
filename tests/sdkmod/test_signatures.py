"""Every rewritten call fits the real signatures of kubeflow 0.5: a wrong keyword cannot pass."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.sdkmod.scripts import CASES, migrate_case
from trainjob.sdkmod.source import MARK

METHODS = ("train", "get_job", "list_jobs", "delete_job", "get_job_logs", "wait_for_job_status", "get_job_events")
ONLY_V1 = (
    "create_job", "wait_for_job_conditions", "get_job_conditions", "get_job_pods", "get_job_pod_names", "update_job",
    "is_job_created", "is_job_running", "is_job_restarting", "is_job_succeeded", "is_job_failed",
    "create_pytorchjob", "create_pytorchjob_from_func", "get_pytorchjob", "delete_pytorchjob",
)  # fmt: skip


def imported(tree: ast.Module) -> dict[str, Any]:
    """Local names of what a script imports from the new SDK, each looked up for real."""
    out = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("kubeflow.trainer", "kubeflow.common")):
            module = importlib.import_module(node.module or "")
            for alias in node.names:
                out[alias.asname or alias.name] = getattr(module, alias.name)
    return out


def marked(lines: list[str], node: ast.stmt) -> bool:
    """Whether a mark stands above the statement."""
    for line in reversed(lines[: node.lineno - 1]):
        if not line.strip().startswith("#"):
            return False
        if MARK in line:
            return True
    return False


def calls(text: str) -> Iterator[tuple[ast.Call, bool]]:
    """Each call with whether its own statement is marked."""
    tree, lines = ast.parse(text), text.splitlines()

    def walk(node: ast.AST, under: bool) -> Iterator[tuple[ast.Call, bool]]:
        for child in ast.iter_child_nodes(node):
            inside = marked(lines, child) if isinstance(child, ast.stmt) else under
            yield from walk(child, inside)
        if isinstance(node, ast.Call):
            yield node, under

    yield from walk(tree, False)


def bind(signature: inspect.Signature, call: ast.Call, *first: object) -> None:
    positional = [a for a in call.args if not isinstance(a, ast.Starred)]
    signature.bind(*first, *positional, **{k.arg: k.value for k in call.keywords if k.arg is not None})


def check(text: str, sdk: Any) -> tuple[int, list[str]]:
    """How many calls fit, and what does not, marked statements aside."""
    names, fitting, wrong = imported(ast.parse(text)), 0, []
    for call, under_mark in calls(text):
        try:
            if isinstance(call.func, ast.Name) and call.func.id in names:
                bind(inspect.signature(names[call.func.id]), call)
            elif isinstance(call.func, ast.Attribute) and call.func.attr in METHODS:
                bind(inspect.signature(getattr(sdk.TrainerClient, call.func.attr)), call, None)
            elif isinstance(call.func, ast.Attribute) and call.func.attr in ONLY_V1:
                raise TypeError(f"{call.func.attr} is a method of v1")
            else:
                continue
        except TypeError as err:
            if not under_mark:
                wrong.append(f"line {call.lineno}: {ast.unparse(call)[:80]}: {err}")
            continue
        fitting += 1
    return fitting, wrong


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_every_call_fits_or_is_marked(case: Path, sdk: Any) -> None:
    fitting, wrong = check(migrate_case(case).text, sdk)
    assert wrong == []
    before = (case / "before.py").read_text(encoding="utf-8")
    if "TrainingClient" in before:
        assert fitting > 0


def test_the_check_itself_sees_a_wrong_keyword_and_a_v1_method(sdk: Any) -> None:
    text = """
from kubeflow.trainer import CustomTrainer, TrainerClient
client = TrainerClient()
client.train(trainer=CustomTrainer(func=print, nodes=2))
client.get_job("x", namespace="y")
client.create_job(name="x")
# TODO(trainjob): TJ714 says why
client.update_job()
"""
    fitting, wrong = check(text, sdk)
    assert fitting == 2
    assert [w.split(":")[0] for w in wrong] == ["line 4", "line 5", "line 6"]
