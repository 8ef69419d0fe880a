"""The predicates agree with a real CEL engine (cel-python).

cel-python differs from the API server's engine in one place that a rule touches: `has(t.a.b)`
where `a` is missing is an error there and false here. That case is a table test of its own.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainjob.kube import cel

celpy = pytest.importorskip("celpy", reason="cel-python is in the dev extra; without it nothing here can run")


@functools.cache
def program(rule: str) -> Any:
    env = celpy.Environment()
    return env.program(env.compile(rule))


def engine(rule: str, value: Any) -> bool:
    """What the API server makes of it: an error is a refusal."""
    from celpy.adapter import json_to_cel

    try:
        return bool(program(rule).evaluate({"self": json_to_cel(value)}))
    except celpy.CELEvalError:
        return False


def ours(rule: str, value: Any) -> bool:
    try:
        return bool(cel.RULES[rule](value))
    except (TypeError, KeyError, AttributeError, IndexError):
        return False


@pytest.fixture(autouse=True)
def _recursion_limit() -> Iterator[None]:
    """cel-python raises the limit of the whole process; other tests shall not depend on that."""
    limit = sys.getrecursionlimit()
    yield
    sys.setrecursionlimit(limit)


def maybe(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({}, optional=fields)


NAMES = st.one_of(st.text(), st.from_regex(r"[a-z]([-a-z0-9]*[a-z0-9])?\n?", fullmatch=True), st.text("ab-1.A\n"))
NAMED = st.fixed_dictionaries({"metadata": st.fixed_dictionaries({"name": NAMES})})
LONG = st.integers(55, 70).map(lambda n: {"metadata": {"name": "é" * n}})
OBJECT: st.SearchStrategy[Any] = st.just({})
URIS = st.one_of(st.text(), st.from_regex(r"[a-z][a-z0-9+.-]*://.*", fullmatch=True), st.text("a:/é\n"))
POLICY = maybe(
    numNodes=st.integers(0, 3),
    torch=maybe(elasticPolicy=OBJECT),
    mpi=OBJECT,
    jax=OBJECT,
    xgboost=OBJECT,
    flux=OBJECT,
)
ORDER = maybe(startupPolicyOrder=st.sampled_from(["InOrder", "AnyOrder"]))
JOBSET = maybe(startupPolicy=ORDER, replicatedJobs=st.lists(maybe(dependsOn=st.just([])), max_size=3))
CLAIM = st.fixed_dictionaries({"metadata": maybe(namespace=st.sampled_from(["", "x"]), name=st.just("c"))})
CLAIMS = st.fixed_dictionaries({"templates": st.lists(CLAIM, max_size=3)})

INPUTS: dict[str, st.SearchStrategy[Any]] = {
    "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')": NAMED,
    "size(self.metadata.name) <= 63": NAMED | LONG,
    "self in ['trainer.kubeflow.org/trainjob-controller', 'kueue.x-k8s.io/multikueue']": st.text()
    | st.sampled_from(["trainer.kubeflow.org/trainjob-controller", "kueue.x-k8s.io/multikueue"]),
    "self == '' || self.matches('^[A-Za-z][A-Za-z0-9+.-]*://.+$')": URIS,
    "has(self.lastUpdatedTime)": maybe(lastUpdatedTime=st.just("2026-01-31T12:00:00Z"), other=OBJECT),
    "!(has(self.torch) && has(self.mpi))": POLICY,
    "[has(self.torch), has(self.mpi), has(self.jax), has(self.xgboost),has(self.flux)]"
    ".filter(x, x).size() <= 1": POLICY,
    "!(has(self.numNodes) && (has(self.torch) && has(self.torch.elasticPolicy)))": POLICY,
    "self > 0 || self in ['auto', 'cpu', 'gpu']": st.integers(-3, 3) | st.sampled_from(["auto", "cpu", "gpu", "x", ""]),
    "self >= 1": st.integers(-(2**31), 2**31 - 1),
    "!self.exists(c, c == 'node')": st.lists(st.sampled_from(["node", "a", "b", "Node"]), max_size=4),
    "!(has(self.startupPolicy) && self.startupPolicy.startupPolicyOrder == 'InOrder' && "
    "self.replicatedJobs.exists(x, has(x.dependsOn)))": JOBSET,
    "self.templates.all(t, !has(t.metadata.namespace) || size(t.metadata.namespace) == 0)": CLAIMS,
}


def test_every_predicate_is_compared() -> None:
    assert INPUTS.keys() == cel.RULES.keys()
    assert len(INPUTS) == 13


@pytest.mark.parametrize("rule", INPUTS, ids=lambda rule: rule[:40])
def test_predicate_agrees_with_the_engine(rule: str) -> None:
    seen = set()
    program(rule)  # compiled before hypothesis starts to watch the recursion limit

    @settings(max_examples=120, deadline=None, database=None)
    @given(INPUTS[rule])
    def compare(value: Any) -> None:
        expected = engine(rule, value)
        seen.add(expected)
        assert ours(rule, value) == expected

    compare()
    if rule != "size(self.metadata.name) <= 63":
        assert seen == {True, False}, "the inputs must show both outcomes"


TABLE: list[tuple[str, Any, bool]] = [
    ("size(self.metadata.name) <= 63", {"metadata": {"name": "é" * 63}}, True),
    ("size(self.metadata.name) <= 63", {"metadata": {"name": "é" * 64}}, False),
    ("self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')", {"metadata": {"name": "a\n"}}, False),
    ("self == '' || self.matches('^[A-Za-z][A-Za-z0-9+.-]*://.+$')", "hf://a/b", True),
    ("self == '' || self.matches('^[A-Za-z][A-Za-z0-9+.-]*://.+$')", "hf://a\n", False),
    ("self > 0 || self in ['auto', 'cpu', 'gpu']", 0, False),
]


@pytest.mark.parametrize(("rule", "value", "holds"), TABLE)
def test_table(rule: str, value: Any, holds: bool) -> None:
    assert engine(rule, value) is holds
    assert ours(rule, value) is holds


def test_a_missing_parent_is_an_error_as_on_the_server() -> None:
    rule = "self.templates.all(t, !has(t.metadata.namespace) || size(t.metadata.namespace) == 0)"
    assert ours(rule, {"templates": [{}]}) is False


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ("has(self.lastUpdatedTime)", {"lastUpdatedTime": None}),
        ("!(has(self.torch) && has(self.mpi))", {"torch": {}, "mpi": None}),
    ],
)
def test_null_is_absent(rule: str, value: Any) -> None:
    """The server prunes null fields before it evaluates."""
    predicate: Callable[[Any], bool] = cel.RULES[rule]
    assert predicate(value) is (rule[0] == "!")


def test_rules_of_a_schema() -> None:
    node = {
        "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "m"}, {"rule": "self.x"}],
        "properties": {"a": {"items": {"x-kubernetes-validations": [{"rule": "self >= 1", "message": "n"}]}}},
        "additionalProperties": True,
    }
    assert list(cel.rules(node)) == [("self == oldSelf", "m"), ("self.x", "self.x"), ("self >= 1", "n")]
    assert cel.unknown_rules(node) == {"self.x"}
    assert cel.is_transition("self == oldSelf")
