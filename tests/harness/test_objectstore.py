"""The S3 server is made when it is asked for, and not again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cluster import objectstore, up
from tests.cluster.context import Context
from tests.cluster.problems import ClusterError
from tests.cluster.shell import Result
from tests.cluster.versions import S3_SERVER


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """A docker that remembers what it imported, and a program that is built already."""
    seen: dict[str, Any] = {"recipe": "", "imports": [], "built": 0}

    def run(self: object, *argv: Any, **options: object) -> Result:
        del self, options
        words = [str(word) for word in argv]
        if words[:2] == ["docker", "import"]:
            seen["imports"].append(words)
            label = next(word for word in words if word.startswith("LABEL "))
            seen["recipe"] = label.partition("=")[2]
        if words[:3] == ["docker", "image", "inspect"]:
            return Result(0 if seen["recipe"] else 1, seen["recipe"], "")
        return Result(0, "", "")

    def provide(ctx: Context, programs: list[Any]) -> dict[str, Path]:
        del ctx
        seen["built"] += 1
        place = tmp_path / "versitygw"
        place.write_text("program")
        return {program.name: place for program in programs}

    monkeypatch.setattr("tests.cluster.shell.Shell.run", run)
    monkeypatch.setattr("tests.cluster.binaries.provide", provide)
    return seen


def test_made_once(engine: dict[str, Any], tmp_path: Path) -> None:
    ctx = Context("test", home=tmp_path)
    assert objectstore.ensure(ctx) == f"localhost/trainjob-s3:{S3_SERVER.module.version}"
    assert objectstore.ensure(ctx) == objectstore.IMAGE
    assert (engine["built"], len(engine["imports"])) == (1, 1)
    assert "USER 65532:65532" in engine["imports"][0]
    assert 'ENTRYPOINT ["/versitygw"]' in engine["imports"][0]
    engine["recipe"] = "of-another-version"
    objectstore.ensure(ctx)
    assert engine["built"] == 2


def test_loading_needs_a_cluster_first(engine: dict[str, Any], tmp_path: Path) -> None:
    """Nothing is built for a cluster that is not there."""
    with pytest.raises(ClusterError, match="is not up"):
        up.load(Context("test", home=tmp_path), ["s3"])
    assert engine["built"] == 0
