"""TJ402: backoffLimit."""

from __future__ import annotations

import pytest

from tests.migrate.rules.support import alone, chain, noop, v1
from trainjob.migrate.rules import tj401_restart_policy, tj402_backoff_limit

RULE = tj402_backoff_limit.RULE
AT = "spec.runPolicy.backoffLimit"


def test_noop_without_a_limit() -> None:
    """The runtime's holds."""
    noop(RULE)


@pytest.mark.parametrize("limit", [0, 7])
def test_the_limit_is_carried_in_a_runtime(limit: int) -> None:
    """Zero is a limit too."""
    data = v1(spec={"runPolicy": {"backoffLimit": limit}})
    ran = alone(RULE, data)
    ran.says("note", f"backoffLimit {limit} needs a generated runtime", at=AT)
    assert ran.draft.backoff_limit == limit
    assert chain(data).batch()["backoffLimit"] == limit


def test_beside_never_it_had_no_effect() -> None:
    """v1 did not count such replicas: 0 is set."""
    data = v1(role={"restartPolicy": "Never"}, spec={"runPolicy": {"backoffLimit": 7}})
    ran = alone(RULE, data, after=(tj401_restart_policy.RULE,))
    ran.says("note", "backoffLimit 7 had no effect beside restartPolicy Never; 0 is set", at=AT)
    assert ran.draft.backoff_limit is None
    assert chain(data).batch()["backoffLimit"] == 0
