"""TJ405: ttlSecondsAfterFinished is never mapped."""

from __future__ import annotations

import pytest

from tests.migrate.rules.support import alone, chain, noop, v1
from trainjob.migrate.rules import tj405_ttl

RULE = tj405_ttl.RULE


def test_noop_without_a_ttl() -> None:
    """No annotation either."""
    noop(RULE)


@pytest.mark.parametrize("seconds", [0, 3600])
def test_it_becomes_an_annotation(seconds: int) -> None:
    """With a warning: as a TTL of the JobSet it would run a failed job again."""
    data = v1(spec={"runPolicy": {"ttlSecondsAfterFinished": seconds}})
    alone(RULE, data).says(
        "warning", f"ttlSecondsAfterFinished {seconds} is not carried", at="spec.runPolicy.ttlSecondsAfterFinished"
    )
    result = chain(data)
    assert result.job["metadata"]["annotations"] == {"trainjob.dev/v1-ttl-seconds-after-finished": str(seconds)}
    assert "ttlSecondsAfterFinished" not in str((result.job, result.runtime))
