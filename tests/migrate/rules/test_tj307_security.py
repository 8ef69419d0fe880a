"""TJ307: security contexts of pod and container."""

from __future__ import annotations

from typing import Any

import pytest

from tests.migrate.rules.support import MAIN, alone, chain, noop, v1
from trainjob.migrate.rules import tj307_security
from trainjob.targets import target

RULE = tj307_security.RULE
POD = {"runAsUser": 0, "runAsNonRoot": False, "fsGroup": 0}
CONTAINER: dict[str, Any] = {"capabilities": {"add": ["IPC_LOCK"]}, "allowPrivilegeEscalation": False}


def test_noop_without_contexts() -> None:
    """`{}` of a live dump is none."""
    noop(RULE)
    noop(RULE, v1({"securityContext": {}}, {"securityContext": {}}))


def test_both_are_patched_with_their_zeros() -> None:
    """User 0 and `false` are meant."""
    data = v1({"securityContext": CONTAINER}, {"securityContext": POD})
    assert alone(RULE, data).findings == []
    spec = chain(data).patch["spec"]
    assert spec == {"securityContext": POD, "containers": [{"name": "node", "securityContext": CONTAINER}]}


@pytest.mark.parametrize("name", ["2.0", "2.1"])
def test_older_trainers_need_a_runtime(name: str) -> None:
    """Their overrides have no security context."""
    result = chain(v1({"securityContext": CONTAINER}, {"securityContext": POD}), target(name))
    assert result.pod()["securityContext"] == POD
    assert result.container()["securityContext"] == CONTAINER


def test_privileged_containers_are_pointed_out() -> None:
    """A namespace may refuse them."""
    ran = alone(RULE, v1({"securityContext": {"privileged": True}}))
    ran.says("note", "a privileged container, as in v1", at=f"{MAIN}.securityContext.privileged")
    assert alone(RULE, v1({"securityContext": {"privileged": False}})).findings == []
