"""TJ404: cleanPodPolicy has no counterpart."""

from __future__ import annotations

import pytest

from tests.migrate.rules.support import alone, chain, noop, v1
from trainjob.migrate.rules import tj404_clean_pod_policy

RULE = tj404_clean_pod_policy.RULE


def test_noop_without_a_policy() -> None:
    """v1's default keeps finished pods, as JobSet does."""
    noop(RULE)


@pytest.mark.parametrize(
    ("policy", "severity", "text"),
    [
        ("All", "warning", "finished pods stay until the TrainJob is deleted"),
        ("None", "note", "finished pods stay as in v1"),
        ("Running", "note", "JobSet does this by itself"),
    ],
)
def test_each_policy_is_dropped_with_its_difference(policy: str, severity: str, text: str) -> None:
    """Only `All` loses something."""
    data = v1(spec={"runPolicy": {"cleanPodPolicy": policy}})
    ran = alone(RULE, data)
    ran.says(severity, text, at="spec.runPolicy.cleanPodPolicy")
    assert len(ran.findings) == 1
    assert "cleanPodPolicy" not in str(chain(data).job)
