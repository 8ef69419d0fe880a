"""SARIF 2.1.0, as code scanning reads it.

Facts: the OASIS schema sarif-schema-2.1.0.json, and what GitHub reads of it
(docs.github.com, "SARIF support for code scanning"): at most 25,000 results a run, ranges are 1-based.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import quote

from trainjob import __version__
from trainjob.findings import Finding, Severity
from trainjob.report.model import Rule

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
FINGERPRINT: Final = "trainjobFinding/v1"
_SRCROOT: Final = "%SRCROOT%"
_LEVEL: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}


def to_sarif(findings: Iterable[Finding], rules: Mapping[str, Rule], docs_url: str = "") -> str:
    """One run with all findings. `docs_url`: where docs/rules is published; rules then link to their page."""
    findings = list(findings)
    codes = sorted({f.code for f in findings})
    index = {code: i for i, code in enumerate(codes)}
    seen: dict[str, int] = {}
    driver: dict[str, Any] = {
        "name": "trainjob",
        "semanticVersion": __version__,
        "rules": [_rule(code, rules.get(code), docs_url) for code in codes],
    }
    if docs_url:
        driver["informationUri"] = docs_url
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_SRCROOT: {"description": {"text": "the folder in which migrate ran"}}},
        "results": [_result(f, index[f.code], seen) for f in findings],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(code: str, rule: Rule | None, docs_url: str) -> dict[str, Any]:
    out: dict[str, Any] = {"id": code}
    if rule is not None:
        out |= {
            "name": "".join(part.capitalize() for part in rule.name.split("-")),
            "shortDescription": {"text": rule.title},
            "fullDescription": {"text": rule.text},
            "help": {"text": rule.text, "markdown": rule.text},
        }
    if docs_url:
        out["helpUri"] = f"{docs_url.rstrip('/')}/{code}.md"
    return out


def _result(finding: Finding, index: int, seen: dict[str, int]) -> dict[str, Any]:
    text = finding.message + (f"\nFix: {finding.fix}" if finding.fix else "")
    out: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": _LEVEL[finding.severity],
        "message": {"text": text},
        "partialFingerprints": {FINGERPRINT: _fingerprint(finding, seen)},
    }
    where = finding.where
    if where is not None:
        place: dict[str, Any] = {"artifactLocation": _artifact(where.file)}
        if where.line:
            place["region"] = {"startLine": where.line, "startColumn": max(1, where.column)}
        location: dict[str, Any] = {"physicalLocation": place}
        if where.path:
            location["logicalLocations"] = [{"fullyQualifiedName": where.path, "kind": "member"}]
        out["locations"] = [location]
    if finding.subject:
        out["properties"] = {"subject": finding.subject}
    return out


def _artifact(file: str) -> dict[str, str]:
    """A relative path below the folder in which migrate ran; an absolute one stays absolute."""
    if file == "<stdin>":
        return {"uri": "stdin", "uriBaseId": _SRCROOT}
    path = PurePath(file)
    if path.is_absolute():
        return {"uri": path.as_uri()}
    return {"uri": quote(path.as_posix()), "uriBaseId": _SRCROOT}


def _fingerprint(finding: Finding, seen: dict[str, int]) -> str:
    """The same after lines have moved: code, file, job and field, and a number for the second and later ones."""
    where = finding.where
    parts = (finding.code, where.file if where else "", finding.subject, where.path if where else "")
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
    seen[digest] = seen.get(digest, 0) + 1
    return f"{digest}:{seen[digest]}"
