"""TJ406: suspend."""

from __future__ import annotations

import pytest

from tests.migrate.rules.support import alone, chain, noop, v1
from trainjob.migrate.rules import tj406_suspend

RULE = tj406_suspend.RULE


def test_noop_without_suspend() -> None:
    """`false` is the default."""
    noop(RULE)
    noop(RULE, v1(spec={"runPolicy": {"suspend": False}}))


@pytest.mark.parametrize("suspend", [True, False])
def test_a_suspended_job_stays_suspended(suspend: bool) -> None:
    """`false` is not written: Kueue's rewrite would drop it."""
    data = v1(spec={"runPolicy": {"suspend": suspend}})
    assert alone(RULE, data).draft.suspend is suspend
    assert chain(data).job["spec"].get("suspend") is (True if suspend else None)
