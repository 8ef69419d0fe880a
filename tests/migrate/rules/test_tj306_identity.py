"""TJ306: service account and pull secrets."""

from __future__ import annotations

from typing import Any

import pytest

from tests.migrate.rules.support import POD, alone, chain, noop, v1
from trainjob.migrate.rules import tj306_identity

RULE = tj306_identity.RULE


def test_noop_without_identity() -> None:
    """The namespace's default account runs the pods."""
    noop(RULE)
    noop(RULE, v1(pod={"imagePullSecrets": [{}]}))


@pytest.mark.parametrize("pod", [{"serviceAccountName": "sa"}, {"imagePullSecrets": [{"name": "a"}, {"name": "b"}]}])
def test_they_are_patched(pod: Any) -> None:
    """Without a word."""
    assert alone(RULE, v1(pod=pod)).findings == []
    assert chain(v1(pod=pod)).patch["spec"] == pod


def test_the_old_name_of_the_account() -> None:
    """Written under the new one; beside it, the new one holds."""
    ran = alone(RULE, v1(pod={"serviceAccount": "old"}))
    ran.says("note", "old name of serviceAccountName", at=f"{POD}.serviceAccount")
    assert ran.role.spec == {"serviceAccountName": "old"}
    ran = alone(RULE, v1(pod={"serviceAccount": "old", "serviceAccountName": "new"}))
    ran.says("note", "serviceAccount is ignored beside serviceAccountName new", at=f"{POD}.serviceAccount")
    assert ran.role.spec == {"serviceAccountName": "new"}
    assert alone(RULE, v1(pod={"serviceAccount": "a", "serviceAccountName": "a"})).findings == []


@pytest.mark.parametrize("value", [True, False])
def test_the_token_needs_a_runtime(value: bool) -> None:
    """`false` too: it is no default."""
    data = v1(pod={"automountServiceAccountToken": value})
    alone(RULE, data).says("note", "needs a generated runtime", at=f"{POD}.automountServiceAccountToken")
    assert chain(data).pod()["automountServiceAccountToken"] is value
