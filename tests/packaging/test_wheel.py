"""What an installed trainjob is: the wheel's content, its commands, an editable install, its size."""

from __future__ import annotations

import configparser
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Callable, Sequence
from email.parser import Parser
from importlib import metadata
from pathlib import Path

import pytest

pytestmark = pytest.mark.packaging

ROOT = Path(__file__).resolve().parents[2]
CASE = ROOT / "migration" / "cases" / "01-master-worker-python" / "before.yaml"
RUNTIMES = 9
# Of the package and its dependencies in site-packages.
LIMIT_MB = 25
CORE = ("click", "jsonschema-rs", "pyyaml")

Run = Callable[..., str]


def call(command: Sequence[str | Path], cwd: Path) -> str:
    """Standard output of a command that has to succeed, in an environment without our paths."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PIP_", "COVERAGE"))}
    done = subprocess.run([str(c) for c in command], cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """sdist, and the wheel built from it. Needs no network: hatchling comes from this environment."""
    out = tmp_path_factory.mktemp("dist")
    call([sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT], out)
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    return sdist, wheel


@pytest.fixture(scope="module")
def files(built: tuple[Path, Path]) -> dict[str, bytes]:
    """Content of the wheel by name."""
    with zipfile.ZipFile(built[1]) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def below(folder: Path) -> dict[str, bytes]:
    return {
        f.relative_to(folder).as_posix(): f.read_bytes()
        for f in folder.rglob("*")
        if f.is_file() and "__pycache__" not in f.parts
    }


def part(files: dict[str, bytes], prefix: str) -> dict[str, bytes]:
    return {name.removeprefix(prefix): content for name, content in files.items() if name.startswith(prefix)}


# --- content ------------------------------------------------------------------------------------------------


def test_the_runtimes_are_the_same_bytes(files: dict[str, bytes]) -> None:
    packaged = part(files, "trainjob/_data/runtimes/")
    assert packaged == below(ROOT / "runtimes")
    assert sum(name.endswith(".yaml") and "kustomization" not in name for name in packaged) == RUNTIMES


def test_every_module_and_all_data_are_in(files: dict[str, bytes]) -> None:
    packaged = part(files, "trainjob/")
    ours = below(ROOT / "src" / "trainjob")
    assert {k: v for k, v in packaged.items() if not k.startswith("_data/")} == ours
    assert "py.typed" in packaged
    assert sum(name.startswith("_vendor/crds/") for name in packaged) == 12
    version = metadata.version("trainjob")
    assert {name.partition("/")[0] for name in files} == {"trainjob", f"trainjob-{version}.dist-info"}


def test_metadata(files: dict[str, bytes]) -> None:
    (name,) = (n for n in files if n.endswith(".dist-info/METADATA"))
    info = Parser().parsestr(files[name].decode())
    requires = [r for r in info.get_all("Requires-Dist", []) if "extra ==" not in r]
    assert sorted(r.partition(">=")[0] for r in requires) == sorted(CORE)
    assert info["Requires-Python"] == ">=3.11"
    scripts = configparser.ConfigParser()
    scripts.read_string(files[name.replace("METADATA", "entry_points.txt")].decode())
    assert dict(scripts["console_scripts"]) == {"trainjob": "trainjob.cli:main", "migrate": "trainjob.cli.migrate:main"}
    assert any(n.endswith("/licenses/LICENSE") for n in files)


def test_sdist_holds_what_the_wheel_is_made_of_and_nothing_else(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    expected = {"CHANGELOG.md", "LICENSE", "README.md", "pyproject.toml", "runtimes", "src"}
    assert {name.partition("/")[0] for name in names} == expected | {"PKG-INFO", ".gitignore"}


# --- installed ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dependencies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages of this environment without trainjob itself."""
    folder = tmp_path_factory.mktemp("dependencies")
    for site in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for entry in Path(site).iterdir():
            if "trainjob" not in entry.name and entry.suffix != ".pth":
                (folder / entry.name).symlink_to(entry)
    return folder


def install(folder: Path, dependencies: Path, *arguments: str | Path) -> Run:
    """A fresh environment with the install of `arguments`, as a function that runs its programs."""
    venv.EnvBuilder(with_pip=False, symlinks=True).create(folder / "venv")
    (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
    (site / "dependencies.pth").write_text(f"{dependencies}\n")
    programs = folder / "venv" / "bin"
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--python", programs / "python", "install", "--quiet"]
    pip += ["--disable-pip-version-check", "--no-index", "--no-deps", "--no-build-isolation"]
    call([*pip, *arguments], folder)
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    return lambda program, *rest: call([programs / program, *rest], elsewhere)


@pytest.fixture(scope="module")
def installed(built: tuple[Path, Path], dependencies: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return install(tmp_path_factory.mktemp("installed"), dependencies, built[1])


WHERE = "from trainjob.catalog import runtimes_root; print(runtimes_root())"


def test_commands_of_the_wheel(installed: Run) -> None:
    assert installed("trainjob", "--version").split()[-1] == metadata.version("trainjob")
    assert installed("python", "-m", "trainjob", "--version") == installed("trainjob", "--version")
    assert "site-packages/trainjob/_data/runtimes" in installed("python", "-c", WHERE)
    listed = json.loads(installed("trainjob", "runtimes", "list", "--format", "json"))
    assert len(listed) == RUNTIMES
    for runtime in listed:
        (file,) = (ROOT / "runtimes").rglob(f"{runtime['name']}.yaml")
        assert installed("trainjob", "runtimes", "show", runtime["name"]) == file.read_text("utf-8")


def test_migrate_of_the_wheel(installed: Run) -> None:
    output = installed("migrate", CASE)
    assert "\nkind: TrainJob\n" in output
    assert output == installed("trainjob", "migrate", CASE)
    for release in ("2.0", "rhoai-3.5", "2.2"):
        assert "\nkind: TrainJob\n" in installed("migrate", "--target", release, CASE)


def test_an_editable_install_reads_the_checkout(dependencies: Path, tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    for name in ("src", "runtimes"):
        shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"):
        shutil.copy(ROOT / name, checkout)
    run = install(tmp_path, dependencies, "--editable", checkout)
    assert run("python", "-c", WHERE).strip() == str(checkout / "runtimes")
    assert "\nkind: TrainJob\n" in run("migrate", CASE)
    # A new file is there at once.
    text = (checkout / "runtimes" / "torch-fsdp-1gpu.yaml").read_text("utf-8")
    (checkout / "runtimes" / "mine.yaml").write_text(text.replace("name: torch-fsdp-1gpu", "name: mine"), "utf-8")
    names = {r["name"] for r in json.loads(run("trainjob", "runtimes", "list", "--format", "json"))}
    assert len(names) == RUNTIMES + 1
    assert "mine" in names


def test_the_core_is_small(files: dict[str, bytes]) -> None:
    """The wheel unpacked and its dependencies as installed here; bench/install_size.py installs them anew."""
    size = sum(map(len, files.values()))
    for name in CORE:
        for file in metadata.files(name) or ():
            path = Path(str(file.locate()))
            size += path.stat().st_size if path.is_file() else 0
    assert size / 1e6 < LIMIT_MB
