"""YAML the way Kubernetes reads it, with positions; and the one canonical way to write it.

Reading differs from plain PyYAML where kubectl differs: a plain scalar becomes what go-yaml
(sigs.k8s.io/yaml v1.4, goyaml.v2 resolve.go) makes of it, so `0400` is 256, `1e3` is a number,
and a date or `12:30` stays text. Of duplicate keys the last one wins and all are reported.
Nothing is executed: tags other than the core ones are refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import yaml
from yaml.constructor import BaseConstructor
from yaml.cyaml import CParser  # type: ignore[attr-defined]
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.resolver import BaseResolver

from trainjob.findings import Location
from trainjob.kube.dump import dump, dump_all
from trainjob.kube.scalars import plain

__all__ = ["Document", "Path", "YamlError", "dotted", "dump", "dump_all", "load", "parse", "split", "split_lines"]

Path = tuple[str | int, ...]

# etcd refuses objects over 1.5 MiB; a List dumped from a big cluster may be larger.
MAX_DOCUMENT_BYTES: Final = 32 * 1024 * 1024
# Values in a document after aliases are expanded. 300 live PyTorchJobs in one List are about 150,000.
MAX_NODES: Final = 1_000_000
MAX_DEPTH: Final = 100

_TAG: Final = "tag:yaml.org,2002:"
_PLAIN: Final = "?"
_CORE_TAGS: Final[dict[str, tuple[type, ...]]] = {
    f"{_TAG}int": (int,), f"{_TAG}float": (int, float), f"{_TAG}bool": (bool,), f"{_TAG}null": (type(None),),
}  # fmt: skip


class YamlError(ValueError):
    """Input that cannot be read. `where` says the place, `fix` what to do about it."""

    def __init__(self, message: str, where: Location, fix: str = "") -> None:
        super().__init__(message)
        self.message, self.where, self.fix = message, where, fix


class _Loader(CParser, BaseConstructor, BaseResolver):
    """libyaml composes the nodes; scalars are resolved here, not by PyYAML's YAML 1.1 rules."""

    def __init__(self, stream: str) -> None:
        CParser.__init__(self, stream)
        BaseConstructor.__init__(self)
        BaseResolver.__init__(self)

    def resolve(self, kind: type[Node], value: Any, implicit: Any) -> str:  # noqa: ARG002
        if kind is ScalarNode:
            return _PLAIN if implicit[0] else _TAG + "str"
        return _TAG + ("map" if kind is MappingNode else "seq")


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A key that stands twice in one mapping; the last value is used, as kubectl does."""

    key: str
    where: Location
    first_line: int


@dataclass(slots=True)
class Document:
    """One document of a stream: its data, its exact text, and where each value stands.

    The texts of all documents, joined, are the stream byte for byte.
    """

    file: str
    index: int
    text: str
    first_line: int
    data: Any = None
    duplicates: tuple[Duplicate, ...] = ()
    anchors: bool = False
    node: Node | None = field(default=None, repr=False)

    def locate(self, path: Path) -> Location:
        """The place of the value at `path`, or of its nearest existing ancestor."""
        mark = self._mark(path)
        return Location(self.file, mark[0], mark[1], dotted(path))

    def source(self, path: Path) -> str | None:
        """The text of the scalar at `path` as it was written, when it stands without quotes."""
        node = self.find(path)
        return node.value if isinstance(node, ScalarNode) and node.tag == _PLAIN else None

    def comments(self, start: int = 0) -> bool:
        """True when the document holds a comment from `start` on, which a canonical dump cannot keep."""
        return any(line.lstrip().startswith("#") or " #" in line for line in self.text[start:].splitlines())

    def _mark(self, path: Path) -> tuple[int, int]:
        node, parent = self.node, self.node
        if node is None:
            return self.first_line, 1
        for key in path:
            child = _child(node, key)
            if child is None:
                break
            parent, node = (child[0] or child[1]), child[1]
        start = (parent if parent is not None else node).start_mark
        assert start is not None
        return start.line + self.first_line, start.column + 1

    def find(self, path: Path) -> Node | None:
        """The node at `path`."""
        node = self.node
        for key in path:
            child = _child(node, key) if node is not None else None
            if child is None:
                return None
            node = child[1]
        return node


def _child(node: Node, key: str | int) -> tuple[Node | None, Node] | None:
    """(key node, value node) of a mapping or (None, item) of a sequence; merges are followed."""
    if isinstance(node, SequenceNode):
        if isinstance(key, int) and -1 < key < len(node.value):
            return None, node.value[key]
        return None
    if not isinstance(node, MappingNode):
        return None
    for k, v in reversed(node.value):
        if not isinstance(k, ScalarNode):
            continue
        if k.value == "<<" and k.tag == _PLAIN:
            for source in v.value if isinstance(v, SequenceNode) else [v]:
                merged = _child(source, key)
                if merged is not None:
                    return merged
        elif k.value == key:
            return k, v
    return None


def dotted(path: Path) -> str:
    """`("spec", "containers", 0)` as `spec.containers[0]`; keys with dots or slashes are quoted."""
    out = ""
    for part in path:
        if isinstance(part, int):
            out += f"[{part}]"
        elif re.fullmatch(r"[A-Za-z_$][\w$-]*", part):
            out += f".{part}" if out else part
        else:
            out += f'["{part}"]'
    return out


_MARKER = re.compile(r"(?:---|\.\.\.)(?:[ \t\r\n]|\Z)")


def split(text: str, file: str = "<stdin>") -> Iterator[Document]:
    """Cut a stream into documents without parsing it. Memory grows with one document only.

    `---` and `...` in the first column always end a document, inside block and quoted scalars
    too (YAML 1.2 section 9.1.2), so a scan of the lines is enough.
    """
    yield from split_lines(_lines(text), file)


def _lines(text: str) -> Iterator[str]:
    start = 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        yield text[start:end]
        start = end


def split_lines(lines: Iterator[str], file: str) -> Iterator[Document]:
    """`split` over an iterator of lines that keep their line ends."""
    buffer: list[str] = []
    first, number, index, size = 1, 0, 0, 0
    # A `---` with only comments after it is a document too: the next marker ends it.
    opened = content = False
    for number, line in enumerate(lines, 1):
        if number == 1:
            line = line.removeprefix("\ufeff")
        marker = bool(_MARKER.match(line))
        ends = marker and (content or opened)
        if ends and line.startswith("---"):
            yield Document(file, index, "".join(buffer), first)
            buffer, first, index, size, content = [], number, index + 1, 0, False
        buffer.append(line)
        if ends and line.startswith("..."):  # the last line of the document that it ends
            yield Document(file, index, "".join(buffer), first)
            buffer, first, index, size, opened, content = [], number + 1, index + 1, 0, False, False
            continue
        opened = opened or (marker and line.startswith("---"))
        size += len(line)
        if size > MAX_DOCUMENT_BYTES:
            raise YamlError(
                f"one document is larger than {MAX_DOCUMENT_BYTES // 2**20} MiB",
                Location(file, first, 1),
                "a Kubernetes object is at most 1.5 MiB; split a large List, for example by namespace",
            )
        stripped = line.strip()
        if (
            stripped
            and not stripped.startswith(("#", "%", "..."))
            and (not line.startswith("---") or (stripped != "---" and not stripped[3:].lstrip().startswith("#")))
        ):
            content = True
    if buffer:
        yield Document(file, index, "".join(buffer), first)


def parse(doc: Document) -> Document:
    """Fill in `data` of a document that `split` gave. Raises YamlError."""
    try:
        return _compose(doc, doc.text)
    except YamlError:
        # JSON that is indented with tabs is valid JSON, yet YAML forbids the tabs.
        if doc.text.lstrip().startswith(("{", "[")) and "\t" in doc.text:
            try:
                json.loads(doc.text)
            except ValueError:
                pass
            else:
                return _compose(doc, doc.text.replace("\t", " "))
        raise


def load(text: str, file: str = "<stdin>") -> list[Document]:
    """All documents of a text, parsed; empty ones (only comments) have data None."""
    return [parse(doc) for doc in split(text, file)]


def _compose(doc: Document, text: str) -> Document:
    _guard_depth(doc, text)
    loader = None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
    except yaml.MarkedYAMLError as err:
        raise _yaml_error(doc, err) from None
    except yaml.reader.ReaderError as err:
        line = text.count("\n", 0, err.position) + doc.first_line
        raise YamlError(
            f"the character {chr(err.character) if isinstance(err.character, int) else err.character!r} "
            "is not allowed in YAML",
            Location(doc.file, line, 1),
            "this is not a YAML text file",
        ) from None
    finally:
        if loader is not None:
            loader.dispose()
    doc.node = node
    if node is not None:
        built = _Builder(doc)
        doc.data = built.value(node, 0)[0]
        doc.duplicates = tuple(built.duplicates)
        doc.anchors = built.shared
    return doc


def _yaml_error(doc: Document, err: yaml.MarkedYAMLError) -> YamlError:
    mark = err.problem_mark or err.context_mark
    line = (mark.line if mark else 0) + doc.first_line
    column = (mark.column if mark else 0) + 1
    problem = err.problem or "not valid YAML"
    lines = doc.text.splitlines()
    at = lines[line - doc.first_line] if 0 <= line - doc.first_line < len(lines) else ""
    fix = ""
    if at[: len(at) - len(at.lstrip())].count("\t"):
        problem, fix = "a tab is used for indentation", "indent with spaces; YAML forbids tabs there"
    elif "\t" in at and "cannot start any token" in problem:
        fix = "replace the tab by spaces"
    elif problem == "second occurrence":
        problem, fix = "an anchor is defined twice", "give each anchor its own name (or is a `---` line missing?)"
    elif "undefined alias" in problem:
        fix = "anchors are known only in their own document: define it there"
    return YamlError(f"YAML error: {problem}", Location(doc.file, line, column), fix)


def _guard_depth(doc: Document, text: str) -> None:
    """libyaml composes recursively: refuse absurd nesting before it exhausts the stack."""
    if text.count("[") + text.count("{") < 500 and not re.search(r"^(?: {200}|(?:- ?){50})", text, re.M):
        return
    depth = 0
    try:
        for event in yaml.parse(text, Loader=yaml.CLoader):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > MAX_DEPTH:
                    mark = event.start_mark
                    assert mark is not None
                    raise YamlError(
                        f"nested deeper than {MAX_DEPTH} levels",
                        Location(doc.file, mark.line + doc.first_line, mark.column + 1),
                        "no Kubernetes object is nested like this",
                    )
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
    except yaml.MarkedYAMLError as err:
        raise _yaml_error(doc, err) from None


class _Builder:
    """Nodes to values. Aliases share one value; their expanded size is counted against a bomb."""

    def __init__(self, doc: Document) -> None:
        self.doc, self.shared = doc, False
        self.duplicates: list[Duplicate] = []
        self._done: dict[int, tuple[Any, int]] = {}
        self._open: set[int] = set()

    def _where(self, node: Node) -> Location:
        return Location(self.doc.file, node.start_mark.line + self.doc.first_line, node.start_mark.column + 1)

    def value(self, node: Node, depth: int) -> tuple[Any, int]:
        if isinstance(node, ScalarNode):
            return self._scalar(node), 1
        known = self._done.get(id(node))
        if known is not None:
            self.shared = True
            return known
        if id(node) in self._open:
            raise YamlError("an alias contains itself", self._where(node), "write the value out")
        if depth > MAX_DEPTH:
            raise YamlError(f"nested deeper than {MAX_DEPTH} levels", self._where(node))
        if node.tag not in (_TAG + "map", _TAG + "seq", "!"):
            raise YamlError(f"the tag {node.tag} is not allowed", self._where(node), "remove the tag")
        self._open.add(id(node))
        out: Any
        if isinstance(node, SequenceNode):
            out, size = [], 1
            for item in node.value:
                v, n = self.value(item, depth + 1)
                out.append(v)
                size += n
        else:
            out, size = self._mapping(node, depth)
        if size > MAX_NODES:
            raise YamlError(
                f"aliases expand to more than {MAX_NODES:,} values",
                self._where(node),
                "this looks like a YAML alias bomb; write the values out",
            )
        self._open.discard(id(node))
        self._done[id(node)] = (out, size)
        return out, size

    def _mapping(self, node: Node, depth: int) -> tuple[dict[str, Any], int]:
        out: dict[str, Any] = {}
        lines: dict[str, int] = {}
        size = 1
        for k, v in node.value:
            if not isinstance(k, ScalarNode):
                raise YamlError("a mapping key is not a scalar", self._where(k), "Kubernetes keys are text")
            value, n = self.value(v, depth + 1)
            size += n
            if k.tag == _PLAIN and k.value == "<<":
                # go-yaml merges where `<<` stands: it wins over earlier keys, later keys win over it.
                for mk, mv in self._merged(k, value).items():
                    if mk in lines:
                        self.duplicates.append(Duplicate(mk, self._where(k), lines[mk]))
                    out[mk] = mv
                continue
            if k.value in lines:
                self.duplicates.append(Duplicate(k.value, self._where(k), lines[k.value]))
                del out[k.value]
            lines[k.value] = k.start_mark.line + self.doc.first_line
            out[k.value] = value
        return out, size

    def _merged(self, key: Node, value: Any) -> dict[str, Any]:
        """What `<<` brings: of several mappings the first one wins."""
        out: dict[str, Any] = {}
        for source in value if isinstance(value, list) else [value]:
            if not isinstance(source, dict):
                raise YamlError("`<<` merges something that is not a mapping", self._where(key))
            out = {**source, **out}
        return out

    def _scalar(self, node: Node) -> Any:
        tag, text = node.tag, node.value
        if tag == _PLAIN:
            return plain(text)
        if tag == _TAG + "str" or tag == "!":
            return text
        if tag not in _CORE_TAGS:
            raise YamlError(f"the tag {tag} is not allowed", self._where(node), "remove the tag")
        value = plain(text)
        if type(value) not in _CORE_TAGS[tag]:
            raise YamlError(f"{text!r} does not fit its tag {tag}", self._where(node), "remove the tag")
        return value
