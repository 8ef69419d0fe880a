"""The Containerfile and its pins: what every builder can read, and what a restricted cluster accepts."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from images.trainer import install
from tests.cluster import trainimage, versions

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "images" / "trainer"
TEXT = (FOLDER / "Containerfile").read_text()
LISTS = ("requirements.txt", "build-requirements.txt", "test-requirements.txt")


@pytest.mark.parametrize("name", LISTS)
def test_every_package_is_pinned_with_hashes(name: str) -> None:
    entries = install.split((FOLDER / name).read_text())
    assert entries
    for entry in entries.values():
        assert re.match(r"[a-z0-9._-]+==\S+ \\\n +--hash=sha256:[0-9a-f]{64}", entry), entry


def test_the_base_is_pinned_and_the_same_in_the_test_cluster() -> None:
    base = re.search(r"^ARG BASE=(\S+)$", TEXT, re.MULTILINE)
    assert base
    assert re.fullmatch(r"[a-z]+:[a-z0-9.-]+@sha256:[0-9a-f]{64}", base[1])
    assert base[1] == versions.DEBIAN_IMAGE


def test_the_image_has_what_trainjob_and_its_extras_need() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    have = install.split((FOLDER / "requirements.txt").read_text())
    wanted = [*project["dependencies"]]
    wanted += [need for extra in EXTRAS for need in project["optional-dependencies"][extra]]
    assert {re.split(r"[^a-z0-9-]", need.lower())[0] for need in wanted} <= set(have)


EXTRAS = ("train", "train-s3", "tensorboard", "mlflow", "qlora")


def test_the_old_builder_can_read_it() -> None:
    for word in ("--mount", "<<", "--link", "--chmod", "# syntax"):
        assert word not in TEXT


def test_it_runs_without_root_and_without_an_entry_point() -> None:
    trainer = TEXT[TEXT.index("AS trainer") :]
    assert "USER" not in trainer
    assert "ENTRYPOINT" not in TEXT
    libraries = TEXT[TEXT.index("AS libraries") : TEXT.index("AS wheel")]
    assert re.findall(r"^USER (.*)$", libraries, re.MULTILINE) == ["1000:0"]


def test_the_second_part_needs_the_libraries_alone() -> None:
    lower, upper = trainimage.parts(TEXT)
    assert "AS libraries" in lower
    assert "AS wheel" not in lower
    sources = re.findall(r"^FROM (\S+)", upper, re.MULTILINE)
    assert set(sources) == {"${LIBRARIES}"}
    assert upper.startswith("ARG LIBRARIES\n")
