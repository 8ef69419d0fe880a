"""Every finding code with its text: rules of the migrator, its engine, and the validator's checks."""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass

from trainjob.migrate.codes import CODES
from trainjob.migrate.kinds.registry import KIND_RULES
from trainjob.migrate.rule import Rule
from trainjob.migrate.rules import RULES
from trainjob.sdkmod.codes import CODES as SDK_CODES
from trainjob.validate import CHECKS, QUEUE_CHECKS, STORAGE_CHECKS


@dataclass(frozen=True, slots=True)
class Entry:
    """A code as a reader sees it. `claims`: (v1 field, outcome, what it becomes)."""

    code: str
    name: str
    title: str
    text: str
    claims: tuple[tuple[str, str, str], ...] = ()


def documented() -> dict[str, Entry]:
    """All codes in order of their numbers."""
    entries = [_rule(rule) for rule in (*RULES, *KIND_RULES)]
    entries += [Entry(code, name, text, text) for code, (name, text) in CODES.items()]
    entries += [Entry(code, name, _first(text), text) for code, (name, text) in SDK_CODES.items()]
    entries += [
        Entry(c.code, c.name, f"{c.finds[0].upper()}{c.finds[1:]}.", f"{c.severity}: {c.finds}.")
        for c in (*CHECKS, *QUEUE_CHECKS, *STORAGE_CHECKS)
    ]
    return {e.code: e for e in sorted(entries, key=lambda e: e.code)}


def _first(text: str) -> str:
    """The first sentence."""
    return f"{text.partition('. ')[0].rstrip('.')}."


def _rule(rule: Rule) -> Entry:
    doc = inspect.cleandoc(sys.modules[rule.apply.__module__].__doc__ or "")
    title = doc.partition("\n")[0]
    claims = tuple((c.field, c.outcome.value, c.becomes) for c in rule.claims)
    return Entry(rule.code, rule.name, title, doc, claims)
