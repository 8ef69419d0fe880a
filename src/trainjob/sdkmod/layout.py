"""A call as text: on one line where it fits, else one argument a line, with the comments that it had."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

_WIDTH: Final = 100


@dataclass(slots=True)
class Part:
    """One argument or item. `lead`: comment lines above it; `trail`: the comment behind it.

    `indent`: the indentation that a value of several lines had, None where it must not be shifted.
    """

    key: str
    value: str | Group
    lead: list[str] = field(default_factory=list)
    trail: str = ""
    separator: str = "="
    indent: str | None = None

    @property
    def prefix(self) -> str:
        return f"{self.key}{self.separator}" if self.key else ""


@dataclass(slots=True)
class Group:
    """`open` is the text up to and with the bracket."""

    open: str
    parts: list[Part]
    close: str = ")"

    @property
    def flat(self) -> str | None:
        """The group on one line, None when a comment or a line end forbids that."""
        out = []
        for part in self.parts:
            value = part.value.flat if isinstance(part.value, Group) else part.value
            if part.lead or part.trail or value is None or "\n" in value:
                return None
            out.append(f"{part.prefix}{value}")
        return f"{self.open}{', '.join(out)}{self.close}"

    def text(self, indent: str, step: str, newline: str, used: int, *, tall: bool = False) -> str:
        """The group as text. `indent`: of the line on which it starts; `used`: characters before it there."""
        flat = self.flat
        if flat is not None and not tall and used + len(flat) <= _WIDTH:
            return flat
        if not self.parts:
            return f"{self.open}{self.close}"
        inner = indent + step
        lines = [self.open]
        for part in self.parts:
            lines += [f"{inner}{comment}" for comment in part.lead]
            if isinstance(part.value, Group):
                value = part.value.text(inner, step, newline, len(inner) + len(part.prefix) + 1)
            else:
                value = _shifted(part.value, part.indent, inner)
            trail = f"  {part.trail}" if part.trail else ""
            lines.append(f"{inner}{part.prefix}{value},{trail}")
        return newline.join([*lines, f"{indent}{self.close}"])


def _shifted(value: str, old: str | None, new: str) -> str:
    """A value of several lines at another depth."""
    if old is None or "\n" not in value:
        return value
    first, *rest = value.split("\n")
    out = [line.removeprefix(old) if line.startswith(old) else line.lstrip() for line in rest]
    return "\n".join([first, *(f"{new}{line}" if line.strip() else line for line in out)])
