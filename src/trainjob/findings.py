"""What the tools have to say: findings are values, never prints and never exits.

A finding has a code that is never reused, a severity, a message, the fix, and where
possible the place in the user's own file. Families of codes: TJ1xx shape, TJ2xx program,
TJ3xx storage and placement, TJ4xx lifetime, TJ5xx validity of an object for its Trainer
version, TJ6xx queues and quota, TJ7xx Python scripts of the v1
SDK and pipelines, TJ9xx the engine and its input.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Severity(StrEnum):
    """How much a finding matters.

    ERROR: the object is not converted or not valid. WARNING: something that the job had is
    lost or behaves differently. NOTE: changed in form, or worth knowing; nothing is lost.
    """

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    @property
    def rank(self) -> int:
        return {"error": 2, "warning": 1, "note": 0}[self.value]


@dataclass(frozen=True, slots=True)
class Location:
    """A place in an input: file name as the user gave it, 1-based line and column, field path."""

    file: str
    line: int = 0
    column: int = 0
    path: str = ""

    def __str__(self) -> str:
        if not self.line:
            return self.file
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to tell. `unreadable` marks broken input, which ends with exit code 2."""

    code: str
    severity: Severity
    message: str
    where: Location | None = None
    fix: str = ""
    subject: str = ""
    unreadable: bool = False

    def to_dict(self) -> dict[str, Any]:
        out: dict[str, Any] = {"code": self.code, "severity": self.severity.value, "message": self.message}
        if self.fix:
            out["fix"] = self.fix
        if self.subject:
            out["subject"] = self.subject
        if self.where is not None:
            out["file"] = self.where.file
            if self.where.line:
                out["line"], out["column"] = self.where.line, self.where.column
            if self.where.path:
                out["path"] = self.where.path
        return out

    def text(self) -> str:
        """The finding as lines for a terminal: severity, code, place, message, then path and fix."""
        head = f"{self.severity.value}[{self.code}]"
        place = f" {self.where}" if self.where is not None else ""
        lines = [f"{head}{place}: {self.message}"]
        if self.where is not None and self.where.path:
            lines.append(f"    at: {self.where.path}")
        if self.fix:
            lines.append(f"    fix: {self.fix}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Report:
    """An ordered set of findings and what they mean for the exit code."""

    findings: tuple[Finding, ...] = ()
    facts: tuple[dict[str, Any], ...] = field(default=())

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> Report:
        return cls(tuple(findings))

    @property
    def worst(self) -> Severity | None:
        return max((f.severity for f in self.findings), key=lambda s: s.rank, default=None)

    def at_least(self, threshold: Severity) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.severity.rank >= threshold.rank)

    def exit_code(self, threshold: Severity | None = Severity.WARNING) -> int:
        """0 clean, 1 findings at or above the threshold, 2 unreadable input."""
        if any(f.unreadable for f in self.findings):
            return 2
        if threshold is None:
            return 0
        return 1 if self.at_least(threshold) else 0

    def counts(self) -> dict[str, int]:
        return {s.value: sum(f.severity is s for f in self.findings) for s in Severity}

    def text(self) -> str:
        return "".join(f.text() + "\n" for f in self.findings)

    def json(self) -> str:
        body = {"findings": [f.to_dict() for f in self.findings], "counts": self.counts()}
        return json.dumps(body, indent=2) + "\n"


def merge(reports: Sequence[Report]) -> Report:
    """One report out of many, in order."""
    return Report(tuple(f for r in reports for f in r.findings), tuple(fact for r in reports for fact in r.facts))
