"""TJ207: workingDir is carried in a generated runtime."""

from __future__ import annotations

from tests.migrate.rules.support import MAIN, alone, chain, noop, v1
from trainjob.migrate.rules import tj207_working_dir

RULE = tj207_working_dir.RULE


def test_noop_without_working_dir() -> None:
    """The image's own holds; an empty text is none."""
    noop(RULE)
    noop(RULE, v1({"workingDir": ""}))


def test_working_dir_is_carried() -> None:
    """With a note."""
    alone(RULE, v1({"workingDir": "/w"})).says("note", "workingDir needs a generated runtime", at=f"{MAIN}.workingDir")
    assert chain(v1({"workingDir": "/w"})).container()["workingDir"] == "/w"
