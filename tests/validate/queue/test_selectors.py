from __future__ import annotations

from typing import Any

import pytest

from trainjob.validate.queue.selectors import describe, fits_nodes, selects, untolerated


@pytest.mark.parametrize(
    ("selector", "answer"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"team": "a"}}, True),
        ({"matchLabels": {"team": "b"}}, False),
        ({"matchLabels": {"team": "a", "other": "x"}}, False),
        ({"matchExpressions": [{"key": "team", "operator": "In", "values": ["a", "b"]}]}, True),
        ({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]}, False),
        ({"matchExpressions": [{"key": "other", "operator": "NotIn", "values": ["a"]}]}, True),
        ({"matchExpressions": [{"key": "team", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}, False),
        ({"matchExpressions": [{"key": "team", "operator": "Unheard"}]}, False),
    ],
)
def test_selects(selector: dict[str, Any] | None, answer: bool) -> None:
    assert selects(selector, {"team": "a", "n": "5"}) is answer


def test_describe() -> None:
    selector = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "In", "values": ["d", "e"]}]}
    assert describe(selector) == "a=b, c In (d,e)"
    assert describe({}) == "everything"


TAINT = {"key": "spot", "value": "yes", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"key": "spot", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "spot", "value": "yes"}, True),
        ({"key": "spot", "value": "no"}, False),
        ({"key": "spot", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "gpu", "operator": "Exists"}, False),
    ],
)
def test_taints(toleration: dict[str, str], tolerated: bool) -> None:
    flavor = {"spec": {"nodeTaints": [TAINT]}}
    assert untolerated(flavor, {"tolerations": [toleration]}) == ("" if tolerated else "spot=yes:NoSchedule")
    assert untolerated({"spec": {"nodeTaints": [TAINT], "tolerations": [toleration]}}, {}) == (
        "" if tolerated else "spot=yes:NoSchedule"
    )


def test_a_preference_is_no_taint() -> None:
    assert untolerated({"spec": {"nodeTaints": [{**TAINT, "effect": "PreferNoSchedule"}]}}, {}) == ""


def affinity(*terms: list[dict[str, Any]]) -> dict[str, Any]:
    required = {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


@pytest.mark.parametrize(
    ("pod", "answer"),
    [
        ({}, True),
        ({"nodeSelector": {"pool": "a"}}, True),
        ({"nodeSelector": {"pool": "b"}}, False),
        ({"nodeSelector": {"unknown": "b"}}, True),
        (affinity([{"key": "pool", "operator": "In", "values": ["a"]}]), True),
        (affinity([{"key": "pool", "operator": "In", "values": ["b"]}]), False),
        (affinity([{"key": "pool", "operator": "In", "values": ["b"]}], [{"key": "x", "operator": "Exists"}]), True),
        (affinity([{"key": "size", "operator": "Gt", "values": ["3"]}]), True),
        (affinity([{"key": "size", "operator": "Lt", "values": ["3"]}]), False),
        (affinity([{"key": "pool", "operator": "Gt", "values": ["3"]}]), False),
    ],
)
def test_nodes_of_a_flavor(pod: dict[str, Any], answer: bool) -> None:
    assert fits_nodes(pod, {"pool": "a", "size": "5"}, {"pool", "size"}) is answer
