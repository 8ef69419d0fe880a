"""TJ409: when the job has succeeded."""

from __future__ import annotations

from typing import Any

import pytest

from tests.migrate.rules.support import MASTER, alone, noop, v1
from trainjob.migrate.rules import tj101_replicas, tj102_roles, tj409_success

RULE = tj409_success.RULE
AFTER = (tj102_roles.RULE, tj101_replicas.RULE)


@pytest.mark.parametrize(
    "data",
    [
        v1(),
        v1(master=False, workers=2),
        v1(workers=1, worker={"container": {"image": "o:1"}}),
        v1(workers=2, role={"replicas": 0}, worker={"role": {"replicas": 2}}),
    ],
)
def test_noop_where_v1s_rule_holds(data: Any) -> None:
    """One role alone, and a runtime with two jobs, which keeps the Master's rule."""
    noop(RULE, data, after=AFTER)


def test_all_pods_must_end_now() -> None:
    """A note at the Master."""
    ran = alone(RULE, v1(workers=2), after=AFTER)
    ran.says("note", "v1 was done when the Master was, v2 when all 3 pods are", at=MASTER)
