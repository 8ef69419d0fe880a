"""The cases, and what the rewrite makes of one."""

from __future__ import annotations

from pathlib import Path

from trainjob.sdkmod.engine import Options, ScriptResult, migrate_script

CASES = sorted(p.parent for p in (Path(__file__).parent / "cases").glob("*/before.py"))


def migrate_case(case: Path) -> ScriptResult:
    """A case as its golden files hold it."""
    text = (case / "before.py").read_bytes().decode()
    return migrate_script(text, file="before.py", options=Options(folder=str(case)))
