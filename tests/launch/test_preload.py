"""Which imports are done before the workers are forked."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from trainjob.launch import preload
from trainjob.launch.preload import Preload, source_of, top_level

SCRIPT = """
from __future__ import annotations
import os, torch.nn as nn
import mine
from torch.distributed.fsdp import fully_shard, MixedPrecisionPolicy
from transformers import *
from . import sibling
if True:
    import torch.conditional
def later():
    import peft
"""


def test_the_top_level_imports_of_known_packages(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(SCRIPT)
    assert list(top_level(file)) == [
        ("torch.nn", ()),
        ("torch.distributed.fsdp", ("fully_shard", "MixedPrecisionPolicy")),
        ("transformers", ()),
    ]


def test_a_script_that_imports_later_names_its_modules(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(
        'from typing import Final\nPRELOAD: Final = ("torch.nn", "os", 3, later())\nOTHER = ("torch",)\n'
        'PRELOAD = ["peft"]\nPRELOAD = later()\n'
    )
    assert list(top_level(file)) == [("torch.nn", ()), ("peft", ())]


def test_what_the_trainer_names_is_there() -> None:
    """The reference trainer imports torch and transformers when they are needed, and names what every run needs."""
    source = source_of("trainjob.train")
    assert source is not None
    assert ("torch.distributed.fsdp", ()) in list(top_level(source))


@pytest.mark.parametrize("text", ["def (", "\0", ""])
def test_a_file_that_is_no_python_is_left_to_python(tmp_path: Path, text: str) -> None:
    file = tmp_path / "train.py"
    file.write_text(text)
    assert list(top_level(file)) == []
    assert list(top_level(tmp_path / "missing.py")) == []


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tuning"
    (folder / "inner").mkdir(parents=True)
    # Importing it would fail: finding the source must not.
    (folder / "__init__.py").write_text("raise RuntimeError('imported')")
    (folder / "inner" / "__init__.py").write_text("")
    (folder / "inner" / "__main__.py").write_text("import torch")
    (folder / "train.py").write_text("import torch")
    monkeypatch.syspath_prepend(str(tmp_path))
    return folder


def test_the_source_of_a_module_is_found_without_importing_it(package: Path) -> None:
    assert source_of("tuning.train") == package / "train.py"
    assert source_of("tuning.inner") == package / "inner" / "__main__.py"
    assert source_of("tuning.nothing") is None
    assert source_of("nobody.knows") is None
    assert "tuning" not in sys.modules


def test_imports_are_done_and_faults_are_left_to_the_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "heavy_one.py").write_text("loaded = True")
    (tmp_path / "broken_one.py").write_text("raise RuntimeError('broken')")
    (tmp_path / "train.py").write_text("import broken_one, heavy_one\nfrom heavy_one import nothing_here\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(preload, "KNOWN", frozenset({"heavy_one", "broken_one"}))
    made = Preload("", str(tmp_path / "train.py"), module=False)
    made.start()
    made.wait()
    assert sys.modules.pop("heavy_one").loaded
    assert "broken_one" not in sys.modules


def test_none_preloads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "heavy_two.py").write_text("")
    (tmp_path / "train.py").write_text("import heavy_two")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(preload, "KNOWN", frozenset({"heavy_two"}))
    made = Preload("none", str(tmp_path / "train.py"), module=False)
    made.start()
    made.wait()
    assert "heavy_two" not in sys.modules


def test_a_module_that_was_asked_for_must_be_there() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        Preload("no_such_module", "train.py", module=False)
