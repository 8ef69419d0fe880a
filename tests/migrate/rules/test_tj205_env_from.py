"""TJ205: envFrom is carried in a generated runtime."""

from __future__ import annotations

from tests.migrate.rules.support import MAIN, alone, chain, noop, v1
from trainjob.migrate.rules import tj205_env_from

RULE = tj205_env_from.RULE
SOURCES = [{"prefix": "P_", "configMapRef": {"name": "c"}}, {"secretRef": {"name": "s", "optional": True}}]


def test_noop_without_env_from() -> None:
    """An empty list is nothing too."""
    noop(RULE)
    noop(RULE, v1({"envFrom": []}))


def test_env_from_is_carried() -> None:
    """To the container of the generated runtime, with a note."""
    alone(RULE, v1({"envFrom": SOURCES})).says("note", "envFrom needs a generated runtime", at=f"{MAIN}.envFrom")
    assert chain(v1({"envFrom": SOURCES})).container()["envFrom"] == SOURCES
