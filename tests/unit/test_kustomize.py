from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tools.fetch_kubectls import NEWEST, OLDEST
from trainjob import kustomize
from trainjob.kustomize import (
    BuildError,
    Engine,
    EngineNotFoundError,
    EngineTooOldError,
    KustomizeError,
    build,
    engine_at,
    find_engine,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-ins are shell scripts")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with nothing on PATH but this folder, and no engine from a wheel."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv(kustomize.VARIABLE, raising=False)
    monkeypatch.setattr(kustomize, "packaged_kubectl", lambda: None)
    return folder


def program(folder: Path, name: str, version: str, render: str = "echo rendered") -> Path:
    """A stand-in that answers `version` and renders."""
    path = folder / name
    path.write_text(
        f"#!/bin/sh\nif [ \"$1\" = version ]; then printf '%s\\n' '{version}'; exit 0; fi\n{render}\n",
        encoding="utf-8",
    )
    path.chmod(0o755)
    return path


def kubectl(version: str | None) -> str:
    answer = {"clientVersion": {"gitVersion": "v1.0.0"}}
    return json.dumps(answer | ({"kustomizeVersion": version} if version else {}))


def test_order_of_preference(machine: Path) -> None:
    with pytest.raises(EngineNotFoundError, match="looked for kustomize, kubectl, oc"):
        find_engine()
    program(machine, "oc", kubectl("v5.4.2"))
    assert find_engine().name == "oc"
    program(machine, "kubectl", kubectl("v5.0.4-0.20230601165947-6ce0bf390ce3"))
    assert find_engine().name == "kubectl"
    path = program(machine, "kustomize", "v5.8.1")
    assert find_engine() == Engine("kustomize", path, "v5.8.1", "PATH")
    assert str(find_engine()) == f"kustomize at {path} (PATH), kustomize v5.8.1"


def test_the_wheel_comes_last(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packaged = program(machine.parent, "kubectl", kubectl("v5.7.1"))
    monkeypatch.setattr(kustomize, "packaged_kubectl", lambda: packaged)
    assert find_engine() == Engine("kubectl", packaged, "v5.7.1", kustomize.WHEEL)


def test_the_variable_wins(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(machine, "kustomize", "v5.8.1")
    own = program(machine.parent, "my-engine", "v5.1.0")
    monkeypatch.setenv(kustomize.VARIABLE, str(own))
    assert find_engine() == Engine("kustomize", own, "v5.1.0", "$TRAINJOB_KUSTOMIZE")
    monkeypatch.setenv(kustomize.VARIABLE, "no-such-program")
    with pytest.raises(EngineNotFoundError, match="no-such-program"):
        find_engine()
    program(machine.parent, "my-engine", "v4.5.7")
    monkeypatch.setenv(kustomize.VARIABLE, str(own))
    with pytest.raises(EngineTooOldError, match=r"v4\.5\.7"):
        find_engine()


@pytest.mark.parametrize("answer", ["v4.5.7", "{Version:kustomize/v4.5.7 GitCommit:x}", "3.8"])
def test_an_old_kustomize_is_passed_over(machine: Path, answer: str) -> None:
    program(machine, "kustomize", answer)
    with pytest.raises(EngineTooOldError, match=r"older than 5\.0") as caught:
        find_engine()
    assert "pip install" in caught.value.fix
    program(machine, "kubectl", kubectl("v5.0.1"))
    assert find_engine().version == "v5.0.1"


def test_an_old_kubectl_does_not_name_its_kustomize(machine: Path) -> None:
    program(machine, "kubectl", kubectl(None))
    with pytest.raises(EngineTooOldError):
        find_engine()


def test_something_else_called_oc(machine: Path) -> None:
    program(machine, "oc", "hello")
    with pytest.raises(EngineNotFoundError, match="does not answer as"):
        find_engine()


def test_a_kustomize_of_unknown_version_is_accepted(machine: Path) -> None:
    engine = engine_at(program(machine, "kustomize", "(devel)"), origin="here")
    assert engine.version == ""
    assert "of unknown version" in str(engine)


def test_a_program_that_cannot_run(machine: Path) -> None:
    path = machine / "kustomize"
    path.write_text("#!/no/such/interpreter\n", encoding="utf-8")
    path.chmod(0o755)
    with pytest.raises(EngineNotFoundError, match="cannot be run"):
        find_engine()


@pytest.mark.parametrize(
    ("name", "subcommand"), [("kustomize", "build"), ("kubectl", "kustomize"), ("oc", "kustomize")]
)
def test_command_line(machine: Path, name: str, subcommand: str) -> None:
    version = "v5.8.1" if name == "kustomize" else kubectl("v5.8.1")
    program(machine, name, version, render='printf "%s|" "$@"; printf "%s" "$KUBERC"')
    assert build(machine) == f"{subcommand}|{machine}|off".encode()


def test_output_is_kept_byte_by_byte(machine: Path) -> None:
    program(machine, "kustomize", "v5.8.1", render=r"printf 'a: \303\274\r\n'")
    assert build(machine) == b"a: \xc3\xbc\r\n"


def test_a_warning_is_an_error(machine: Path) -> None:
    program(machine, "kustomize", "v5.8.1", render="echo ok; echo '# Warning: vars is deprecated' >&2")
    with pytest.raises(BuildError, match="kustomize warns: # Warning: vars is deprecated") as caught:
        build(machine)
    assert caught.value.returncode == 0


@pytest.mark.parametrize(
    "stderr",
    [
        "Error: no such file",
        "error: no such file",
        'E1130 13:41:34.878538   15090 run.go:72] "command failed" err="no such file"',
    ],
)
def test_failure_says_what_the_engine_said(machine: Path, stderr: str) -> None:
    program(machine, "kustomize", "v5.8.1", render=f"echo '{stderr}' >&2; exit 1")
    with pytest.raises(BuildError) as caught:
        build(machine)
    assert caught.value.message == f"{machine}: kustomize failed: no such file"
    assert (caught.value.stderr, caught.value.returncode) == ("no such file", 1)


def test_silent_failure_and_time_out(machine: Path) -> None:
    engine = engine_at(program(machine, "kustomize", "v5.8.1", render="exit 3"), origin="here")
    with pytest.raises(BuildError, match="exit code 3"):
        build(machine, engine)
    program(machine, "kustomize", "v5.8.1", render="exec /bin/sleep 20")
    with pytest.raises(BuildError, match=r"took more than 0\.2 seconds"):
        build(machine, engine, timeout=0.2)


def test_no_folder(machine: Path) -> None:
    with pytest.raises(KustomizeError, match="no such folder") as caught:
        build(machine / "absent")
    assert caught.value.fix


def test_the_packaged_kubectl(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found through the package's own list of files, so also when its folder is not on PATH."""
    monkeypatch.setattr(kustomize, "WHEEL", "no-such-distribution")
    assert kustomize.packaged_kubectl() is None
    monkeypatch.setattr(kustomize, "WHEEL", "pytest")
    assert kustomize.packaged_kubectl() is None


@pytest.mark.kubectl
def test_real_engines(oldest_engine: Engine, newest_engine: Engine, tmp_path: Path) -> None:
    assert (oldest_engine.version, newest_engine.version) == (OLDEST.kustomize, NEWEST.kustomize)
    (tmp_path / "kustomization.yaml").write_text("resources: [a.yaml]\n", encoding="utf-8")
    (tmp_path / "a.yaml").write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n", encoding="utf-8")
    for engine in (oldest_engine, newest_engine):
        assert build(tmp_path, engine) == b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"
        with pytest.raises(BuildError, match=r"failed: unable to find one of 'kustomization\.yaml'"):
            build(Path(__file__).parent, engine)
