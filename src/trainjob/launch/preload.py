"""Imports that the script will do anyway, done once before the workers are forked.

A forked worker finds them loaded, at the start and after every restart. They run beside the rendezvous,
which mostly waits. Only well-known packages are taken, as the script's own top-level imports name them, or a
tuple PRELOAD at its top, for a script that imports later; a failure is left to the script.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import sys
import threading
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final

VARIABLE: Final = "TRAINJOB_PRELOAD"
NOTHING: Final = "none"
# They start no threads and touch no GPU when they are imported.
KNOWN: Final = frozenset({"torch", "transformers", "peft", "accelerate", "datasets", "safetensors", "numpy"})


class Preload:
    """Imports in a thread of its own; `wait` before a fork."""

    def __init__(self, wanted: str, target: str, module: bool) -> None:
        """`wanted`: TRAINJOB_PRELOAD, names after commas or `none`; `target`: the script, or with `module` a module."""
        names = [name.strip() for name in wanted.split(",") if name.strip()]
        # What was asked for must be there.
        for name in names:
            if name != NOTHING:
                importlib.import_module(name)
        file = source_of(target) if module else Path(target)
        self._imports = [] if NOTHING in names or file is None else list(top_level(file))
        self._thread = threading.Thread(target=self._run, daemon=True, name="preload")

    def start(self) -> None:
        self._thread.start()

    def wait(self) -> None:
        """Until all is imported: a fork in the middle of an import would leave its lock held."""
        self._thread.join()

    def _run(self) -> None:
        for name, parts in self._imports:
            with contextlib.suppress(Exception):
                module = importlib.import_module(name)
                for part in parts:
                    # transformers loads a class when it is asked for.
                    getattr(module, part, None)


def top_level(file: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """(module, names taken from it) of the imports at the top of a file that are of a known package."""
    try:
        body = ast.parse(file.read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return
    found: list[tuple[str, tuple[str, ...]]]
    for statement in body:
        if isinstance(statement, ast.Import):
            found = [(alias.name, ()) for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            found = [(statement.module, tuple(alias.name for alias in statement.names if alias.name != "*"))]
        elif isinstance(statement, ast.AnnAssign | ast.Assign):
            found = [(name, ()) for name in _named(statement)]
        else:
            continue
        yield from ((name, parts) for name, parts in found if name.partition(".")[0] in KNOWN)


def _named(statement: ast.AnnAssign | ast.Assign) -> list[str]:
    """The texts of `PRELOAD = ("a", "b")`."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    if not any(isinstance(target, ast.Name) and target.id == "PRELOAD" for target in targets):
        return []
    parts = statement.value.elts if isinstance(statement.value, ast.Tuple | ast.List) else []
    return [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]


def source_of(module: str) -> Path | None:
    """The file of `python -m module`, found without importing its packages."""
    path: list[str] | None = [str(Path.cwd()), *sys.path]
    spec = None
    name = ""
    for part in module.split("."):
        name = f"{name}.{part}" if name else part
        spec = PathFinder.find_spec(name, path)
        if spec is None:
            return None
        path = list(spec.submodule_search_locations) if spec.submodule_search_locations else None
    if path:
        main = PathFinder.find_spec(f"{name}.__main__", path)
        return Path(main.origin) if main and main.origin else None
    return Path(spec.origin) if spec and spec.origin else None
