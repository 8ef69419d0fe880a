"""The check that runs inside a training image finds what is wrong with one."""

from __future__ import annotations

import importlib.util
import py_compile
import sys
from pathlib import Path
from types import ModuleType

import pytest

from images.trainer import check

PINS = {"torch": "2.13.0", "nvidia-cublas": "13.1", "peft": "0.21.2"}


def test_pins_are_read_with_their_hashes_left_out() -> None:
    assert check.pins("# x==1\na-b==1.0 \\\n    --hash=sha256:aa\nc==2\n") == {"a-b": "1.0", "c": "2"}


@pytest.mark.parametrize(
    ("installed", "faults"),
    [
        (PINS, []),
        ({**PINS, "torch": "2.13.0+cu130"}, []),
        ({**PINS, "peft": "0.22.0"}, ["peft is 0.22.0, requirements.txt pins 0.21.2"]),
        ({"torch": "2.13.0+cpu", "peft": "0.21.2"}, []),
        ({"torch": "2.13.0", "peft": "0.21.2"}, ["nvidia-cublas is missing, requirements.txt pins 13.1"]),
    ],
)
def test_packages_that_differ_from_their_pins(installed: dict[str, str], faults: list[str]) -> None:
    assert list(check.drift(PINS, installed)) == faults


@pytest.mark.parametrize(("mode", "fault"), [(0o644, ""), (0o646, "writable"), (0o4755, "changes the user")])
def test_files_with_a_dangerous_mode(tmp_path: Path, mode: int, fault: str) -> None:
    file = tmp_path / "folder" / "file"
    file.parent.mkdir(mode=0o755)
    file.touch()
    file.chmod(mode)
    (tmp_path / "spared").mkdir()
    (tmp_path / "spared").chmod(0o777)
    (tmp_path / "link").symlink_to("spared")
    expected = [f"{fault}: {file}"] if fault else []
    assert list(check.may_write(tmp_path, (str(tmp_path / "spared"),))) == expected


def loaded(folder: Path, mode: py_compile.PycInvalidationMode | None) -> ModuleType:
    file = folder / "some.py"
    file.write_text("x = 1\n")
    if mode:
        py_compile.compile(str(file), invalidation_mode=mode)
    spec = importlib.util.spec_from_file_location("some", file)
    assert spec
    return importlib.util.module_from_spec(spec)


@pytest.mark.parametrize(
    ("mode", "fault"),
    [
        (py_compile.PycInvalidationMode.UNCHECKED_HASH, []),
        (py_compile.PycInvalidationMode.CHECKED_HASH, ["some: its bytecode is compared with its source"]),
        (py_compile.PycInvalidationMode.TIMESTAMP, ["some: its bytecode is compared with its source"]),
        (None, ["some: no bytecode"]),
    ],
)
def test_modules_that_have_to_be_compiled_or_compared(
    tmp_path: Path, mode: py_compile.PycInvalidationMode | None, fault: list[str]
) -> None:
    module = loaded(tmp_path, mode)
    assert list(check.uncompiled([module, sys], tmp_path)) == fault
    assert list(check.uncompiled([module], tmp_path / "elsewhere")) == []


def test_a_module_that_cannot_be_imported_is_a_fault(capsys: pytest.CaptureFixture[str]) -> None:
    assert check.main([]) == 1
    err = capsys.readouterr().err
    assert "error: cannot import torch: ModuleNotFoundError" in err
    assert "error: torch is missing, requirements.txt pins" in err
