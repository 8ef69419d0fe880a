"""TJ210: the training container `pytorch` is called `node`."""

from __future__ import annotations

from tests.migrate.rules.support import MAIN, alone, chain, noop, v1
from trainjob.migrate.rules import tj210_container_name

RULE = tj210_container_name.RULE


def test_noop_for_pytorch() -> None:
    """The rename is the same for every job."""
    noop(RULE)


def test_the_only_container_is_taken() -> None:
    """With a warning: v1 refuses such a job."""
    ran = alone(RULE, v1({"name": "trainer"}))
    ran.says("warning", "no container is called 'pytorch'.*: 'trainer'", at=f"{MAIN}.name")


def test_the_container_is_called_node() -> None:
    """In a generated runtime too."""
    assert chain(v1({"workingDir": "/w"})).container()["name"] == "node"
