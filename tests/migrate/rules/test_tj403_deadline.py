"""TJ403: activeDeadlineSeconds."""

from __future__ import annotations

import pytest

from tests.migrate.rules.support import alone, chain, noop, refusal, v1
from trainjob.migrate.rules import tj403_deadline
from trainjob.targets import TARGETS, Target

RULE = tj403_deadline.RULE
AT = "spec.runPolicy.activeDeadlineSeconds"


def test_noop_without_a_deadline() -> None:
    """The job may run for ever."""
    noop(RULE)


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_it_stands_where_the_version_has_it(target: Target) -> None:
    """In the TrainJob from 2.2 on, before that in the Jobs of a generated runtime: never in both."""
    data = v1(spec={"runPolicy": {"activeDeadlineSeconds": 60}})
    alone(RULE, data).says("warning", "at the deadline of 60 s the pods and their logs are deleted", at=AT)
    result = chain(data, target)
    if target.active_deadline:
        assert result.job["spec"]["activeDeadlineSeconds"] == 60
        assert result.runtime is None
    else:
        assert "activeDeadlineSeconds" not in result.job["spec"]
        assert result.batch()["activeDeadlineSeconds"] == 60


@pytest.mark.parametrize("seconds", [0, -5])
def test_less_than_a_second_is_refused(seconds: int) -> None:
    """A TrainJob wants at least 1."""
    finding = refusal(RULE, v1(spec={"runPolicy": {"activeDeadlineSeconds": seconds}}))
    assert f"activeDeadlineSeconds is {seconds}" in finding.message
