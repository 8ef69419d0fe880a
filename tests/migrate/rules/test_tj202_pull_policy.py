"""TJ202: imagePullPolicy is dropped where it says the default."""

from __future__ import annotations

import pytest

from tests.migrate.rules.support import MAIN, alone, chain, noop, v1
from trainjob.migrate.rules import tj202_pull_policy

RULE = tj202_pull_policy.RULE


def test_noop_without_a_policy() -> None:
    """The default holds in both versions."""
    noop(RULE)


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("a", "Always"), ("a:latest", "Always"), ("host:5000/a", "Always"), ("a:1", "IfNotPresent"),
        ("host:5000/a:1", "IfNotPresent"), ("a@sha256:00", "IfNotPresent"), ("a:latest@sha256:00", "IfNotPresent"),
    ],
)  # fmt: skip
def test_the_default_is_dropped(image: str, policy: str) -> None:
    """With a note; no runtime is generated for it."""
    data = v1({"image": image, "imagePullPolicy": policy})
    ran = alone(RULE, data)
    ran.says("note", f"imagePullPolicy {policy} is the default for this image", at=f"{MAIN}.imagePullPolicy")
    assert ran.role.container == {}
    assert chain(data).runtime is None


@pytest.mark.parametrize(
    ("image", "policy"), [("a:1", "Always"), ("a", "IfNotPresent"), ("a@sha256:00", "Always"), ("a:1", "Never")]
)
def test_another_policy_needs_a_runtime(image: str, policy: str) -> None:
    """With a note that says how to do without."""
    data = v1({"image": image, "imagePullPolicy": policy})
    alone(RULE, data).says("note", "is not the default.*\nremove it to get a TrainJob without a runtime")
    assert chain(data).container()["imagePullPolicy"] == policy
