"""When the training image is made again, and how tests run in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cluster import __main__, trainimage, traintests
from tests.cluster.context import Context
from tests.cluster.problems import ClusterError
from tests.cluster.shell import Result


class Engine:
    """A docker that keeps images by name with their label, and notes the stages that it builds."""

    def __init__(self) -> None:
        self.images: dict[str, str] = {}
        self.built: list[str] = []
        self.env: dict[str, str] = {}
        self.context: set[str] = set()
        self.sound = True

    def run(self, shell: object, *argv: object, env: dict[str, str] | None = None, **options: Any) -> Result:
        del shell, options
        words = [str(word) for word in argv]
        if words[:3] == ["docker", "image", "inspect"]:
            label = self.images.get(words[3])
            return Result(int(label is None), label or "", "")
        if words[:2] == ["docker", "build"]:
            stage = words[words.index("--target") + 1]
            self.built.append(stage)
            self.env = env or {}
            self.images[words[words.index("--tag") + 1]] = words[words.index("--label") + 1].partition("=")[2]
            self.context = {file.relative_to(words[-1]).as_posix() for file in Path(words[-1]).rglob("*")}
        if words[:2] == ["docker", "run"] and not self.sound:
            raise ClusterError("the check failed", "change the image")
        if words[:3] == ["docker", "image", "rm"]:
            self.images.pop(words[-1], None)
        return Result(0, "/", "")


class Debian:
    """A source of images with a base alone."""

    def debian(self) -> str:
        return "localhost/debian:1"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout of which only the image's parts are there."""
    root = tmp_path / "checkout"
    for name in (*trainimage._LIBRARIES_FROM, *trainimage._TRAINER_FROM, f"{trainimage.FOLDER}/certificates/README.md"):
        file = root / name if name not in {"src", "runtimes"} else root / name / "file.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
    (root / trainimage._FILE).write_text("FROM x AS libraries\n# trainjob itself: on top\nFROM ${LIBRARIES}\n")
    monkeypatch.setattr(trainimage, "ROOT", root)
    return root


@pytest.fixture
def docker(monkeypatch: pytest.MonkeyPatch) -> Engine:
    engine = Engine()
    monkeypatch.setattr("tests.cluster.shell.Shell.run", lambda shell, *a, **k: engine.run(shell, *a, **k))
    monkeypatch.setattr(trainimage, "require_disk", lambda _path: None)
    return engine


def build(tmp_path: Path, docker: Engine) -> list[str]:
    docker.built.clear()
    assert trainimage.ensure(Context("test", home=tmp_path / "home"), Debian()) == trainimage.IMAGE  # type: ignore[arg-type]
    return docker.built


def test_what_is_made_is_not_made_again(tmp_path: Path, root: Path, docker: Engine) -> None:
    del root
    assert build(tmp_path, docker) == ["libraries", "wheel", "trainer"]
    assert build(tmp_path, docker) == []


@pytest.mark.parametrize("changed", ["src/file.py", "runtimes/file.py", "pyproject.toml", "images/trainer/check.py"])
def test_a_change_of_trainjob_leaves_the_libraries_as_they_are(
    tmp_path: Path, root: Path, docker: Engine, changed: str
) -> None:
    build(tmp_path, docker)
    (root / changed).write_text("y")
    assert build(tmp_path, docker) == ["wheel", "trainer"]


@pytest.mark.parametrize("changed", ["requirements.txt", "install.py", "build-requirements.txt"])
def test_a_change_of_the_pins_makes_both_anew(tmp_path: Path, root: Path, docker: Engine, changed: str) -> None:
    build(tmp_path, docker)
    (root / "images" / "trainer" / changed).write_text("y")
    assert build(tmp_path, docker) == ["libraries", "wheel", "trainer"]


def test_an_image_with_faults_is_not_taken_the_next_time(tmp_path: Path, root: Path, docker: Engine) -> None:
    del root
    docker.sound = False
    with pytest.raises(ClusterError, match="the check failed"):
        build(tmp_path, docker)
    docker.sound = True
    assert build(tmp_path, docker) == ["wheel", "trainer"]


def test_compiled_files_change_nothing(tmp_path: Path, root: Path, docker: Engine) -> None:
    build(tmp_path, docker)
    (root / "src" / "__pycache__").mkdir()
    (root / "src" / "__pycache__" / "file.pyc").write_text("y")
    assert build(tmp_path, docker) == []


def test_the_builder_sees_the_sources_and_the_certificates_of_this_machine(
    tmp_path: Path, root: Path, docker: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ca.crt").write_text("certificate")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.crt"))
    (root / ".git").mkdir()
    build(tmp_path, docker)
    assert {"src/file.py", "pyproject.toml", "images/trainer/certificates/host.crt"} <= docker.context
    assert ".git" not in docker.context


def test_an_address_with_a_password_is_not_on_the_command_line(
    tmp_path: Path, root: Path, docker: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    del root
    for name in trainimage._INDEXES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_INDEX_URL", "https://user:secret@example.com/simple")
    words: list[str] = []
    monkeypatch.setattr(
        "tests.cluster.shell.Shell.run",
        lambda shell, *a, **k: words.extend(map(str, a)) or docker.run(shell, *a, **k),  # type: ignore[func-returns-value]
    )
    build(tmp_path, docker)
    assert docker.env["INDEX"] == "https://user:secret@example.com/simple"
    assert "INDEX" in words
    assert not any("secret" in word for word in words)


def test_a_containerfile_without_the_seam_is_told() -> None:
    with pytest.raises(ClusterError, match="has no line"):
        trainimage.parts("FROM x\n")


def test_tests_run_as_the_strictest_cluster_would_run_them(tmp_path: Path) -> None:
    words = traintests.command("image", tmp_path, "name", ["-k", "resume"])
    text = " ".join(words)
    for part in ("--user 1000740000:0", "--read-only", "--network none", "--shm-size 1g", "--cpus 2", "/src:ro"):
        assert part in text
    assert text.endswith("image python -m pytest -p no:cacheprovider tests/train -k resume")


def test_named_tests_run_alone(tmp_path: Path) -> None:
    words = traintests.command("image", tmp_path, "name", ["tests/train/data", "-x"])
    assert words[-3:] == ["no:cacheprovider", "tests/train/data", "-x"]


def test_the_arguments_and_the_status_are_pytests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINJOB_CLUSTER_HOME", str(tmp_path))
    seen: list[list[str]] = []
    monkeypatch.setattr(traintests, "run", lambda _ctx, arguments: seen.append(list(arguments)) or 5)  # type: ignore[func-returns-value]
    assert __main__.main(["train-tests", "-k", "resume or not", "--no-header", "tests/train/test_x.py"]) == 5
    assert seen == [["-k", "resume or not", "--no-header", "tests/train/test_x.py"]]


def test_another_command_takes_no_foreign_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINJOB_CLUSTER_HOME", str(tmp_path))
    with pytest.raises(SystemExit, match="2"):
        __main__.main(["status", "--nonsense"])


@pytest.mark.parametrize("fails", [False, True])
def test_a_run_that_is_interrupted_leaves_no_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    ctx = Context("test", home=tmp_path)
    removed: list[str] = []

    def run(*argv: object, **_options: object) -> Result:
        removed.append(str(argv[-1]))
        return Result(0, "", "")

    monkeypatch.setattr("tests.cluster.shell.Shell.run", run)

    class Process:
        def __init__(self, words: list[str], **options: Any) -> None:
            del words, options
            self.asked = 0

        def wait(self, timeout: float | None = None) -> int:
            del timeout
            self.asked += 1
            if fails and self.asked == 1:
                raise KeyboardInterrupt
            return 3

    monkeypatch.setattr("tests.cluster.traintests.subprocess.Popen", Process)
    words = traintests.command("image", tmp_path, "tests-1", [])
    if fails:
        with pytest.raises(KeyboardInterrupt):
            traintests._run(ctx, words)
        assert removed == ["tests-1"]
    else:
        assert traintests._run(ctx, words) == 3
        assert removed == []
