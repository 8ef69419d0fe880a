"""Empties are removed where they say nothing and would block a queued job, and kept where they are meant."""

from __future__ import annotations

from typing import Any

import pytest

from trainjob.kube.prune import prune


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"a": "", "b": [], "c": {}, "d": None, "e": 1}, {"e": 1}),
        ({"a": {"b": {"c": ""}}}, None),
        ([], None),
        ([{}, {"a": ""}], None),
        ([{}, {"a": 1}], [{"a": 1}]),
        ("", None),
        (0, 0),
        ({"runAsUser": 0, "privileged": False}, {"runAsUser": 0, "privileged": False}),
        ({"readOnly": False, "mountPath": "/x"}, {"mountPath": "/x"}),
        ({"suspend": False, "hostNetwork": False, "optional": False, "tty": False}, None),
        ({"readOnly": True}, {"readOnly": True}),
        ({"name": "v", "emptyDir": {}}, {"name": "v", "emptyDir": {}}),
        ({"labelSelector": {}, "namespaceSelector": {}}, {"labelSelector": {}, "namespaceSelector": {}}),
        ({"nodeSelector": {"a": ""}, "labels": {"b": ""}}, {"nodeSelector": {"a": ""}, "labels": {"b": ""}}),
        ({"nodeSelector": {}, "labels": {}}, None),
        ({"command": ["sh", "-c", ""], "args": [""]}, {"command": ["sh", "-c", ""], "args": [""]}),
        ({"command": [], "args": ()}, None),
        ({"storageClassName": ""}, {"storageClassName": ""}),
        ({"limits": {"amd.com/gpu": 0}}, {"limits": {"amd.com/gpu": 0}}),
        (("a", ""), ["a", ""]),
    ],
)
def test_prune(given: Any, kept: Any) -> None:
    """Pointer fields, free maps, programs and `emptyDir: {}` survive; empty texts, lists and defaults do not."""
    assert prune(given) == kept


def test_prune_copies() -> None:
    """The input is left as it is, and free maps are not shared."""
    labels = {"a": "b"}
    given = {"labels": labels, "x": {"y": ""}}
    result = prune(given)
    result["labels"]["c"] = "d"
    assert given == {"labels": {"a": "b"}, "x": {"y": ""}}
