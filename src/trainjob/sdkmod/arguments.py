"""The arguments of a v1 call by their names, each with the comments that stand beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import libcst as cst

from trainjob.sdkmod.layout import Part
from trainjob.sdkmod.source import Source

_COMMENT = re.compile(r"#[^\r\n]*")
# 1.7 -> 1.8 and newer
_OLD_KEYWORDS = {"func": "train_func", "pytorchjob": "job"}


@dataclass(slots=True)
class Argument:
    """One argument: its value, comment lines above it, and the comment behind it."""

    value: cst.BaseExpression
    lead: list[str] = field(default_factory=list)
    trail: str = ""


class Arguments:
    """Arguments by v1 names. `problem` says why the call cannot be read."""

    def __init__(self, source: Source, call: cst.Call, order: tuple[str, ...]) -> None:
        self.source, self.call = source, call
        self.all: dict[str, Argument] = {}
        self.problem = ""
        self.tall = _first_on_next_line(source, call)
        comments = list(_comments(source, call))
        for i, arg in enumerate(call.args):
            lead, trail = comments[i]
            if arg.star:
                self.problem = f"it is called with {arg.star}{source.text_of(arg.value)}"
                return
            if arg.keyword is not None:
                name = _OLD_KEYWORDS.get(arg.keyword.value, arg.keyword.value)
            elif i < len(order):
                name = order[i]
            else:
                self.problem = f"argument {i + 1} has no name, and its meaning depends on the version of the v1 SDK"
                return
            self.all[name] = Argument(arg.value, lead, trail)
        self.tail = comments[-1][0] if len(comments) > len(call.args) else []

    def take(self, name: str) -> Argument | None:
        """An argument, which then counts as handled; None too when it is None."""
        found = self.all.pop(name, None)
        if found is not None and isinstance(found.value, cst.Name) and found.value.value == "None":
            return None
        return found

    def text(self, argument: Argument) -> str:
        return self.source.text_of(argument.value)

    def part(self, key: str, argument: Argument, text: str | None = None) -> Part:
        """The argument under its new name, or with another text."""
        value = self.text(argument) if text is None else text
        indent = None if _has_long_string(self.source, argument.value) else self.source.indent_of(argument.value)
        return Part(key, value, list(argument.lead), argument.trail, indent=indent)


def _first_on_next_line(source: Source, call: cst.Call) -> bool:
    if not call.args:
        return False
    return source.exact[call.args[0]].start.line > source.exact[call.func].end.line


def _has_long_string(source: Source, node: cst.BaseExpression) -> bool:
    strings = (*source.nodes(cst.SimpleString, node), *source.nodes(cst.FormattedString, node))
    return any("\n" in source.text_of(s) for s in strings)


def _comments(source: Source, call: cst.Call) -> Iterator[tuple[list[str], str]]:
    """For each argument the comment lines above it and the comment behind it; then what stands after all."""
    if not call.args:
        yield [], ""
        return
    end_of_call = source.span(call)[1]
    # What stands between the bracket and the first argument begins behind the function.
    gaps = [(source.span(call.func)[1], source.exact_span(call.args[0])[0])]
    for i, arg in enumerate(call.args):
        following = source.exact_span(call.args[i + 1])[0] if i + 1 < len(call.args) else end_of_call
        gaps.append((source.span(arg.value)[1], following))
    trails, leads = [""], [[]]  # type: tuple[list[str], list[list[str]]]
    for start, end in gaps:
        gap = source.between(start, end)
        first_end = gap.find("\n") if "\n" in gap else len(gap)
        trail, lead = "", []
        for match in _COMMENT.finditer(gap):
            if match.start() < first_end:
                trail = match[0].rstrip()
            else:
                lead.append(match[0].rstrip())
        trails.append(trail)
        leads.append(lead)
    # gap 0: a comment on the bracket's own line leads the first argument
    first = [trails[1]] if trails[1] else []
    yield [*first, *leads[1]], trails[2]
    for i in range(1, len(call.args)):
        yield leads[i + 1], trails[i + 2]
    yield leads[len(call.args) + 1], ""
