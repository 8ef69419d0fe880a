"""A Python text with its tree, the places of its nodes, and the edits that were decided so far.

Edits are ranges of the text. A node's text (`text_of`) already has the edits inside it, so an outer edit
takes the inner ones with it. What no edit touches stays byte for byte.
"""

from __future__ import annotations

import bisect
import re
import textwrap
from collections.abc import Iterator
from typing import Any, Final, TypeVar

import libcst as cst
from libcst.metadata import (
    MetadataWrapper,
    ParentNodeProvider,
    PositionProvider,
    ScopeProvider,
    WhitespaceInclusivePositionProvider,
)

from trainjob.findings import Finding, Location, Severity
from trainjob.sdkmod.codes import DYNAMIC

MARK: Final = "# TODO(trainjob):"
_WIDTH: Final = 100
N = TypeVar("N", bound=cst.CSTNode)


class Source:
    """One script. Raises `libcst.ParserSyntaxError` for a text that is no Python."""

    def __init__(self, text: str, file: str, first_line: int = 1) -> None:
        self.file, self.first_line = file, first_line
        # copies: the tree of a long text nests deeply, and a parsed module shares no nodes anyway
        self.wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
        self.module = self.wrapper.module
        self.text = text
        self.newline = self.module.default_newline
        self.places = self.wrapper.resolve(WhitespaceInclusivePositionProvider)
        self.exact = self.wrapper.resolve(PositionProvider)
        self.parents = self.wrapper.resolve(ParentNodeProvider)
        self.scopes = self.wrapper.resolve(ScopeProvider)
        self.findings: list[Finding] = []
        self._all: list[cst.CSTNode] = []
        self._by_type: dict[type[cst.CSTNode], list[Any]] = {}
        self._edits: dict[tuple[int, int], str] = {}
        self._marks: dict[int, dict[str, str]] = {}
        self._starts = [0, *(m.end() for m in re.finditer(r"\r\n|\n|\r", text))]

    # Places

    def _offset(self, line: int, column: int) -> int:
        return self._starts[line - 1] + column

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Start and end of an expression in the text, its parentheses included."""
        place = self.places[node]
        return self._offset(place.start.line, place.start.column), self._offset(place.end.line, place.end.column)

    def exact_span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Start and end of a node without the white space and comments that it owns."""
        place = self.exact[node]
        return self._offset(place.start.line, place.start.column), self._offset(place.end.line, place.end.column)

    def locate(self, node: cst.CSTNode) -> Location:
        place = self.exact[node].start
        return Location(self.file, place.line + self.first_line - 1, place.column + 1)

    def line_of(self, offset: int) -> int:
        """Number of the line, from 1, that holds an offset."""
        return bisect.bisect_right(self._starts, offset)

    def line_span(self, line: int) -> tuple[int, int]:
        """Start and end of a line, the end without its line end."""
        start = self._starts[line - 1]
        end = self._starts[line] if line < len(self._starts) else len(self.text)
        return start, start + len(self.text[start:end].rstrip("\r\n"))

    def line_text(self, line: int) -> str:
        start, end = self.line_span(line)
        return self.text[start:end]

    def indent_of(self, node: cst.CSTNode) -> str:
        """The white space before the line on which a node starts."""
        line = self.line_text(self.exact[node].start.line)
        return line[: len(line) - len(line.lstrip())]

    # The tree

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        return self.parents.get(node)

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        current = self.parent(node)
        while current is not None:
            yield current
            current = self.parent(current)

    def enclosing(self, node: cst.CSTNode, kind: type[N]) -> N | None:
        """The nearest ancestor of a type."""
        return next((a for a in self.ancestors(node) if isinstance(a, kind)), None)

    def all_nodes(self, root: cst.CSTNode | None = None) -> list[cst.CSTNode]:
        """All nodes, children before their parents."""
        if root is None:
            if not self._all:
                self._all = list(_walk(self.module))
            return self._all
        return list(_walk(root))

    def nodes(self, kind: type[N], root: cst.CSTNode | None = None) -> list[N]:
        """All nodes of a type, children before their parents."""
        if root is not None:
            return [n for n in self.all_nodes(root) if isinstance(n, kind)]
        if kind not in self._by_type:
            self._by_type[kind] = [n for n in self.all_nodes() if isinstance(n, kind)]
        return list(self._by_type[kind])

    def statement(self, node: cst.CSTNode) -> cst.CSTNode:
        """The statement that stands on lines of its own and holds the node."""
        best: cst.CSTNode = node
        for ancestor in self.ancestors(node):
            if isinstance(ancestor, cst.Decorator):
                return ancestor
            if isinstance(ancestor, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
                return ancestor
            best = ancestor
        return best

    # Edits

    def edit(self, node: cst.CSTNode, new: str, *, exact: bool = False) -> None:
        """Replace a node's text; edits inside it are gone."""
        start, end = self.exact_span(node) if exact else self.span(node)
        inside = self.enclosing(node, cst.FormattedString)
        if inside is not None:
            fitting = _for_f_string(new, inside.quote)
            if fitting is None:
                self.mark(
                    DYNAMIC,
                    node,
                    "this call stands inside an f-string and does not fit there",
                    "put it into a variable",
                )
                return
            new = fitting
        self.replace(start, end, new)

    def replace(self, start: int, end: int, new: str) -> None:
        for inner in [k for k in self._edits if start <= k[0] and k[1] <= end and k != (start, end)]:
            del self._edits[inner]
        self._edits[(start, end)] = new

    def text_of(self, node: cst.CSTNode) -> str:
        """The node's text with the edits inside it."""
        return self._applied(*self.span(node))

    def between(self, start: int, end: int) -> str:
        return self.text[start:end]

    def _applied(self, start: int, end: int) -> str:
        out, at = [], start
        for (s, e), new in sorted(self._edits.items()):
            if s >= at and s >= start and e <= end:
                out += [self.text[at:s], new]
                at = e
        return "".join(out) + self.text[at:end]

    def result(self) -> str:
        """The whole text with all edits and marks."""
        for line, marks in self._marks.items():
            start = self._starts[line - 1]
            indent = self.line_text(line)
            indent = indent[: len(indent) - len(indent.lstrip())]
            text = "".join(self._comment(code, reason, indent) for code, reason in marks.items())
            self._edits[(start, start)] = text + self._edits.get((start, start), "")
        return self._applied(0, len(self.text))

    def _comment(self, code: str, reason: str, indent: str) -> str:
        lines = textwrap.wrap(
            f"{MARK} {code} {reason}",
            max(40, _WIDTH - len(indent)),
            subsequent_indent="#   ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        return "".join(f"{indent}{line}{self.newline}" for line in lines)

    # Words

    def say(self, code: str, severity: Severity, node: cst.CSTNode, message: str, fix: str = "") -> None:
        self.findings.append(Finding(code, severity, message, self.locate(node), fix))

    def mark(
        self, code: str, node: cst.CSTNode, reason: str, fix: str = "", severity: Severity = Severity.ERROR
    ) -> None:
        """A finding, and a comment above the statement that says the same."""
        self.say(code, severity, node, reason, fix)
        line = self.exact[self.statement(node)].start.line
        if self._marked(line, code):
            return
        words = reason if not fix else f"{reason}; {fix}"
        here = self._marks.setdefault(line, {})
        if code in here and words not in here[code]:
            words = f"{here[code]}; {words}"
        here[code] = words

    def _marked(self, line: int, code: str) -> bool:
        """Whether the comments right above a line hold this mark."""
        for above in range(line - 1, 0, -1):
            text = self.line_text(above).strip()
            if not text.startswith("#"):
                return False
            if text.startswith(f"{MARK} {code}"):
                return True
        return False

    def open_marks(self) -> Iterator[tuple[int, str]]:
        """Line and words of marks that the text came with."""
        for line in range(1, len(self._starts) + 1):
            text = self.line_text(line).strip()
            if text.startswith(MARK):
                yield line, text[len(MARK) :].strip()


def _walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    for child in node.children:
        yield from _walk(child)
    yield node


def _for_f_string(text: str, quote: str) -> str | None:
    """A text that may stand inside an f-string in every Python (before 3.12: no quote of its own, no backslash)."""
    if "\\" in text or "\n" in text or "#" in text:
        return None
    mark = quote[0]
    other = "'" if mark == '"' else '"'
    if mark not in text:
        return text
    return text.replace(mark, other) if other not in text else None
