"""Which line of a template made which line of a rendered document.

The longest chain of lines that agree outside of `{{ }}`, in order; what is left over goes to a line of a
loop that was passed already, or to the `{{ include }}` or `{{ toYaml }}` that stands at its place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_ACTION: Final = re.compile(r"\{\{.*?\}\}")
_SILENT: Final = re.compile(r"\{\{-?\s*(?:if|else|end|range|with|define|block|/\*|\$\w+\s*:?=)")
# Cells of the table; beyond it lines are only looked up one by one.
_MOST: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a template. `patterns`: what a rendered line must look like; None for a line that is
    an action alone, or empty."""

    lines: tuple[str, ...]
    patterns: tuple[re.Pattern[str] | None, ...]

    @classmethod
    def of(cls, text: str) -> Lines:
        lines = tuple(text.splitlines())
        return cls(lines, tuple(map(_pattern, lines)))

    def action(self, index: int) -> str:
        """The actions of a line, as they are written."""
        return " ".join(_ACTION.findall(self.lines[index]))

    def writes(self, index: int) -> bool:
        """An action alone that writes lines of its own: no `if`, no `end`."""
        line = self.lines[index].strip()
        return self.patterns[index] is None and bool(line) and not _SILENT.match(line)

    def score(self, index: int, rendered: str) -> int:
        """How well a rendered line fits: 0 not at all, more for literal text than for a pattern."""
        pattern = self.patterns[index]
        if pattern is None or not pattern.fullmatch(rendered):
            return 0
        return 2 if "{{" in self.lines[index] else 3


def _pattern(line: str) -> re.Pattern[str] | None:
    text = line.strip()
    literal = _ACTION.sub("", text).strip()
    if not literal or literal in ("-", '""', "''") or text.startswith("#"):
        return None
    # What stands in the file keeps its indentation; `{{-` eats it.
    indent = r"\s*" if text.startswith("{{-") else line[: len(line) - len(line.lstrip())]
    parts = [re.escape(part).replace(r"\ ", r"\s*") for part in _ACTION.split(text)]
    return re.compile(indent + r"(?!\s)" + r".*?".join(parts))


def align(rendered: Sequence[str], template: Lines) -> list[int | None]:
    """For each rendered line the index of its template line, or None."""
    texts = [line.rstrip() for line in rendered]
    out = _chain(texts, template)
    for i, text in enumerate(texts):
        if out[i] is None and text and not text.lstrip().startswith(("#", "---")):
            out[i] = _elsewhere(text, template)
    last = -1
    for i, text in enumerate(texts):
        if out[i] is not None:
            last = out[i] or 0
        elif text and not text.lstrip().startswith(("#", "---")):
            following = next((o for o in out[i + 1 :] if o is not None and o > last), len(template.lines))
            inside = (t for t in range(last + 1, following) if template.writes(t))
            out[i] = next(inside, last if last >= 0 else None)
    return out


def _chain(texts: Sequence[str], template: Lines) -> list[int | None]:
    """The heaviest chain of agreeing lines, in the order of both."""
    rows, columns = len(texts), len(template.lines)
    out: list[int | None] = [None] * rows
    if rows * columns > _MOST:
        return out
    best = [[0] * (columns + 1) for _ in range(rows + 1)]
    scores = [[template.score(j, text) if text else 0 for j in range(columns)] for text in texts]
    for i in range(rows - 1, -1, -1):
        for j in range(columns - 1, -1, -1):
            both = scores[i][j] + best[i + 1][j + 1] if scores[i][j] else 0
            best[i][j] = max(both, best[i + 1][j], best[i][j + 1])
    i = j = 0
    while i < rows and j < columns:
        if scores[i][j] and best[i][j] == scores[i][j] + best[i + 1][j + 1]:
            out[i] = j
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return out


def _elsewhere(text: str, template: Lines) -> int | None:
    """A line of a loop: the first one that fits best."""
    scored = [(template.score(j, text), -j) for j in range(len(template.lines))]
    score, index = max(scored, default=(0, 0))
    return -index if score else None
