"""What differs between two views, rank by rank put together."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from tests.e2e.differential.view import View

ABSENT: Final = "(not there)"
# What the probe says for its rendezvous when it was here before.
LATER: Final = "(a later try)"
_RANK: Final = re.compile(r"^rank (\d+) ")


@dataclass(frozen=True, slots=True)
class Difference:
    """`what`: the path without the rank. `ranks`: in which pods; empty for what is the job's own."""

    what: str
    v1: str
    v2: str
    ranks: tuple[int, ...] = ()

    def row(self) -> str:
        where = f" (rank {', '.join(map(str, self.ranks))})" if self.ranks else ""
        return f"{self.what}{where}\n      v1: {_short(self.v1)}\n      v2: {_short(self.v2)}"


def differences(v1: View, v2: View) -> list[Difference]:
    """Every path whose value is not the same, or that only one side has."""
    v1, v2 = _put_together(v1, v2), _put_together(v2, v1)
    # A later try meets nobody; where only that was seen of one side, there is nothing to compare.
    unmet = {path.removesuffix("met") for view in (v1, v2) for path, value in view.items() if value == LATER}
    found: dict[tuple[str, str, str], list[int]] = {}
    for path in sorted({*v1, *v2}):
        one, two = v1.get(path, ABSENT), v2.get(path, ABSENT)
        if one == two or path.startswith(tuple(unmet)):
            continue
        match = _RANK.match(path)
        ranks = found.setdefault((path[match.end() :] if match else path, one, two), [])
        if match:
            ranks.append(int(match[1]))
    return [Difference(what, one, two, tuple(sorted(ranks))) for (what, one, two), ranks in found.items()]


_PART: Final = re.compile(r"^rank (\d+) (?:pod|([^:]+):) ")
_ENV: Final = re.compile(r"^rank (\d+) pod (?:containers|initContainers)\[([^]]+)\]\.env\b")


def _put_together(view: View, other: View) -> View:
    """What only this side has as a whole, a pod or a program, becomes one line: its parts tell no more.

    The env of a program that only one side heard of stands in the other's pod template, and is left out too.
    """
    ours, theirs = _parts(view), _parts(other)
    out: View = {}
    for path, value in view.items():
        part, env = _PART.match(path), _ENV.match(path)
        if part and part.group(1, 2) not in theirs:
            out[f"rank {part[1]} {part[2] + ' said' if part[2] else 'pod'}"] = "there"
        elif not (env and env.group(1, 2) not in ours and env.group(1, 2) in theirs):
            out[path] = value
    return out


def _parts(view: View) -> set[tuple[str | Any, ...]]:
    return {match.group(1, 2) for path in view if (match := _PART.match(path))}


def _short(text: str) -> str:
    return text if len(text) <= 300 else f"{text[:300]}... ({len(text)} characters)"
