from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.cluster import engine
from tests.cluster.context import Context
from tests.cluster.host import Host
from tests.cluster.problems import ClusterError

WRAPPER = Path(engine.__file__).with_name("runc-without-sys-resource")
SETS = ("bounding", "effective", "permitted")


def test_the_engine_gets_the_wrapper_only_where_it_is_needed() -> None:
    assert "default-runtime" not in engine.daemon_config(None)
    config = engine.daemon_config(Path("/somewhere/runc-without-sys-resource"))
    assert config["default-runtime"] == "runc-without-sys-resource"
    assert config["runtimes"]["runc-without-sys-resource"]["path"] == "/somewhere/runc-without-sys-resource"


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    capabilities = ["CAP_CHOWN", "CAP_SYS_RESOURCE", "CAP_KILL"]
    spec = {"process": {"args": ["sh"], "capabilities": dict.fromkeys(SETS, capabilities)}}
    (tmp_path / "config.json").write_text(json.dumps(spec, separators=(",", ":")))
    (tmp_path / "process.json").write_text(json.dumps({"capabilities": {"bounding": ["CAP_SYS_RESOURCE"]}}))
    (tmp_path / "runc").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "runc").chmod(0o755)
    return tmp_path


def wrapped(bundle: Path, *arguments: str, cwd: Path | None = None) -> list[str]:
    env = {**os.environ, "RUNC": str(bundle / "runc")}
    return subprocess.run(
        ["sh", WRAPPER, *arguments], env=env, cwd=cwd, check=True, capture_output=True, text=True
    ).stdout.splitlines()


@pytest.mark.parametrize(
    "arguments", [["--root", "/run", "create", "--bundle", "{}", "id"], ["run", "--bundle={}", "id"], ["create", "id"]]
)
def test_a_new_container_loses_the_capability(bundle: Path, arguments: list[str]) -> None:
    given = [argument.format(bundle) for argument in arguments]
    assert wrapped(bundle, *given, cwd=bundle) == given
    capabilities = json.loads((bundle / "config.json").read_text())["process"]["capabilities"]
    assert capabilities == {name: ["CAP_CHOWN", "CAP_KILL"] for name in SETS}


def test_a_command_in_a_container_loses_it_too(bundle: Path) -> None:
    wrapped(bundle, "exec", "--process", str(bundle / "process.json"), "id", cwd=bundle)
    assert json.loads((bundle / "process.json").read_text())["capabilities"]["bounding"] == []
    assert "CAP_SYS_RESOURCE" in (bundle / "config.json").read_text()


def test_other_verbs_change_nothing(bundle: Path) -> None:
    before = (bundle / "config.json").read_text()
    assert wrapped(bundle, "delete", "--force", "id", cwd=bundle) == ["delete", "--force", "id"]
    assert (bundle / "config.json").read_text() == before


def context(tmp_path: Path, host: Host) -> Context:
    return Context("test", home=tmp_path / "home", host=host)


@pytest.mark.parametrize(
    ("system", "expected"), [("darwin", "docker is not running"), ("linux", "docker is not running|there is no docker")]
)
def test_without_root_or_on_another_system_the_user_starts_docker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: str, expected: str
) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setattr(engine, "running", lambda _: False)
    host = Host(system, "amd64", root=False, sys_resource=True, cgroup_v1=False)
    with pytest.raises(ClusterError, match=expected) as caught:
        engine.ensure(context(tmp_path, host))
    assert "start" in caught.value.next_step


def test_an_engine_elsewhere_is_never_replaced_by_one_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://192.0.2.1:2375")
    monkeypatch.setattr(engine, "running", lambda _: False)
    with pytest.raises(ClusterError, match="DOCKER_HOST"):
        engine.ensure(context(tmp_path, Host("linux", "amd64", True, True, False)))


def test_an_engine_that_runs_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "running", lambda _: True)
    assert engine.ensure(context(tmp_path, Host("linux", "amd64", True, True, False))) is False


def test_a_process_number_that_went_to_another_program_is_not_ours() -> None:
    here = os.getpid()
    comm = Path(f"/proc/{here}/comm").read_text().strip()
    assert engine._alive(here, comm, engine._born(here))
    assert not engine._alive(here, comm, "1")
    assert not engine._alive(here, "dockerd")
