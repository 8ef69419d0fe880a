"""Which source of images, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cluster import engine, images, kind, up
from tests.cluster.context import Context
from tests.cluster.host import Host
from tests.cluster.problems import ClusterError
from tests.cluster.shell import Result
from tests.cluster.versions import trainer

FULL = Host("linux", "amd64", root=True, sys_resource=True, cgroup_v1=False)
BARE = Host("linux", "amd64", root=True, sys_resource=False, cgroup_v1=True)


def context(tmp_path: Path, host: Host, **state: Any) -> Context:
    ctx = Context("test", home=tmp_path, host=host)
    if state:
        ctx.note(**state)
    return ctx


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether a registry answers; the docker that knows no image is otherwise silent."""
    answers = [True]

    def run(self: object, *argv: object, **options: object) -> Result:
        del self, options
        return Result(0 if "manifest" in argv and answers[0] else 1, "", "")

    monkeypatch.setattr("tests.cluster.shell.Shell.run", run)
    return answers


@pytest.mark.parametrize(("answers", "expected"), [(True, "published"), (False, "source")])
def test_published_images_are_taken_when_they_can_be_had(
    tmp_path: Path, registry: list[bool], answers: bool, expected: str
) -> None:
    registry[0] = answers
    assert images.choose(context(tmp_path, FULL), "auto").name == expected


@pytest.mark.usefixtures("registry")
def test_a_machine_that_lacks_a_capability_makes_its_own(tmp_path: Path) -> None:
    ctx = context(tmp_path, BARE)
    assert images.choose(ctx, "auto").name == "source"
    with pytest.raises(ClusterError, match="CAP_SYS_RESOURCE"):
        images.choose(ctx, "published").node_image()


@pytest.mark.usefixtures("registry")
def test_a_cluster_keeps_its_source(tmp_path: Path) -> None:
    assert images.choose(context(tmp_path, FULL, source="source"), "auto").name == "source"


def test_the_source_route_is_for_linux(tmp_path: Path) -> None:
    host = Host("darwin", "arm64", root=False, sys_resource=True, cgroup_v1=False)
    with pytest.raises(ClusterError, match="works on Linux only"):
        images.choose(context(tmp_path, host), "source")


@pytest.mark.parametrize(
    ("wanted", "version", "message"),
    [
        ("published", "2.3.0", "has images from source, not published"),
        ("auto", "2.1.0", "has Trainer 2.3.0, not 2.1.0"),
    ],
)
def test_a_cluster_that_is_there_is_not_turned_into_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: str, version: str, message: str
) -> None:
    monkeypatch.setattr(engine, "running", lambda _: True)
    monkeypatch.setattr(kind, "nodes", lambda _: [kind.Node("test-control-plane", True)])
    ctx = context(tmp_path, FULL, phase="made", source="source", trainer="2.3.0")
    up._refuse_other(ctx, "auto", trainer("2.3.0"))
    with pytest.raises(ClusterError, match=message):
        up._refuse_other(ctx, wanted, trainer(version))


def test_a_cluster_of_this_name_that_someone_else_made_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kind, "nodes", lambda _: [kind.Node("test-control-plane", True)])
    with pytest.raises(ClusterError, match="was not made from this work folder"):
        up._refuse_foreign(context(tmp_path, FULL))
