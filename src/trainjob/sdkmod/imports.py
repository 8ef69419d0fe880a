"""The imports, after the calls: v1 names that nothing uses any more go, the v2 names come in their place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import libcst as cst
from libcst.helpers import get_full_name_for_node
from libcst.metadata import ImportAssignment

from trainjob.findings import Severity
from trainjob.sdkmod import codes, surface
from trainjob.sdkmod.names import Names
from trainjob.sdkmod.script import COMMON, OPTIONS, TRAINER
from trainjob.sdkmod.source import Source

_WIDTH: Final = 88


@dataclass(slots=True)
class _Place:
    """One v1 import statement, and what shall be imported there. `kept`: v1 names that are still used."""

    node: cst.ImportFrom | cst.Import
    kept: list[str] = field(default_factory=list)
    wanted: dict[str, tuple[str, str]] = field(default_factory=dict)


def rewrite_imports(source: Source, original: Source, introduced: dict[str, tuple[str, str]]) -> str:
    """The text with its imports in order. Findings go to `original`, where the reader's lines are."""
    names = Names(source)
    before = _imports(original)
    places: list[_Place] = []
    for i, node in enumerate(_imports(source)):
        if not _is_v1(node):
            continue
        place = _Place(node)
        _sort_names(source, names, place)
        places.append(place)
        if place.kept:
            verb = "is" if len(place.kept) == 1 else "are"
            reason = f"{', '.join(place.kept)} of the v1 SDK {verb} still used; kubeflow 0.5 has nothing for it"
            fix = "migrate the places that use it; until then install kubeflow-training beside it"
            if all(name.startswith("V1") for name in place.kept):
                fix = "import it from kubernetes.client if it is a model of Kubernetes"
            original.say(codes.V1_IMPORT, Severity.WARNING, before[i], reason, fix)
            source.mark(codes.V1_IMPORT, node, reason, fix)
    _assign_wanted(source, names, places, introduced)
    for place in places:
        _replace(source, place)
    missing = _unresolved(source, names, introduced)
    covered = {local for p in places for local in p.wanted}
    homeless = {local: introduced[local] for local in missing if local not in covered}
    if homeless:
        _insert(source, homeless)
    return source.result()


def _imports(source: Source) -> list[cst.ImportFrom | cst.Import]:
    found: list[cst.ImportFrom | cst.Import] = [*source.nodes(cst.ImportFrom), *source.nodes(cst.Import)]
    return sorted(found, key=source.span)


def _module(node: cst.ImportFrom) -> str:
    return "" if node.relative or node.module is None else (get_full_name_for_node(node.module) or "")


def _of_v1(full: str) -> bool:
    return any(full == p or full.startswith(f"{p}.") for p in surface.V1_PACKAGES)


def _is_v1(node: cst.ImportFrom | cst.Import) -> bool:
    if isinstance(node, cst.Import):
        return any(_of_v1(get_full_name_for_node(a.name) or "") for a in node.names)
    module = _module(node)
    if isinstance(node.names, cst.ImportStar):
        return _of_v1(module)
    return _of_v1(module) or (
        module == "kubeflow" and any(_of_v1(f"kubeflow.{get_full_name_for_node(a.name)}") for a in node.names)
    )


def _alias(alias: cst.ImportAlias) -> str:
    if alias.asname is not None and isinstance(alias.asname.name, cst.Name):
        return alias.asname.name.value
    return (get_full_name_for_node(alias.name) or "").split(".")[0]


def _used(source: Source, names: Names, node: cst.ImportFrom | cst.Import, local: str, full: str) -> bool:
    """Whether something reads the name that this import binds."""
    scope = names.scope(node)
    if scope is None or local not in scope:
        return False
    for assignment in scope[local]:
        if isinstance(assignment, ImportAssignment) and assignment.node is node:
            for access in assignment.references:
                if local == full or not isinstance(node, cst.Import):
                    return True
                text = _dotted(source, access.node)
                if text == full or text.startswith(f"{full}."):
                    return True
    return False


def _dotted(source: Source, node: cst.CSTNode) -> str:
    top = node
    while isinstance(parent := source.parent(top), cst.Attribute) and parent.value is top:
        top = parent
    return get_full_name_for_node(top) or ""


def _sort_names(source: Source, names: Names, place: _Place) -> None:
    node = place.node
    if isinstance(node, cst.ImportFrom) and isinstance(node.names, cst.ImportStar):
        rest = {
            n.value for n in source.nodes(cst.Name) if n.value.startswith("KubeflowOrgV1") and not names.assignments(n)
        }
        place.kept = sorted(rest)
        return
    assert not isinstance(node.names, cst.ImportStar)
    for alias in node.names:
        name = get_full_name_for_node(alias.name) or ""
        local = _alias(alias)
        full = name if alias.asname is None and isinstance(node, cst.Import) else local
        if name.rpartition(".")[2] == surface.CLIENT and isinstance(node, cst.ImportFrom):
            if alias.asname is not None and _used(source, names, node, local, full):
                place.wanted[local] = (TRAINER, "TrainerClient")
            continue
        mine = _of_v1(name) if isinstance(node, cst.Import) else _of_v1(f"{_module(node)}.{name}")
        if mine and _used(source, names, node, local, full):
            place.kept.append(local if isinstance(node, cst.ImportFrom) else full)


def _unresolved(source: Source, names: Names, introduced: Iterable[str]) -> dict[str, list[cst.Name]]:
    """Names that were brought in and that nothing binds yet."""
    out: dict[str, list[cst.Name]] = {}
    wanted = set(introduced)
    for node in source.nodes(cst.Name):
        if node.value not in wanted or names.scope(node) is None:
            continue
        parent = source.parent(node)
        if isinstance(parent, (cst.Attribute, cst.Arg)) and parent.value is not node:
            continue  # behind a dot, or a keyword
        if isinstance(parent, (cst.Param, cst.ImportAlias)) or names.assignments(node):
            continue
        out.setdefault(node.value, []).append(node)
    return out


def _assign_wanted(source: Source, names: Names, places: list[_Place], introduced: dict[str, tuple[str, str]]) -> None:
    """Give each name that is needed to the v1 import whose names its place could see."""
    by_function: dict[int | None, _Place] = {}
    for place in places:
        function = source.enclosing(place.node, cst.FunctionDef)
        by_function.setdefault(id(function) if function else None, place)
    for local, nodes in _unresolved(source, names, introduced).items():
        for node in nodes:
            home = by_function.get(None)
            for ancestor in source.ancestors(node):
                if isinstance(ancestor, cst.FunctionDef) and id(ancestor) in by_function:
                    home = by_function[id(ancestor)]
                    break
            if home is not None:
                home.wanted[local] = introduced[local]


def _statements(indent: str, newline: str, wanted: dict[str, tuple[str, str]]) -> list[str]:
    out = []
    for module in (COMMON, TRAINER, OPTIONS):
        shown = sorted(
            name if name == local else f"{name} as {local}" for local, (home, name) in wanted.items() if home == module
        )
        if not shown:
            continue
        line = f"from {module} import {', '.join(shown)}"
        if len(indent) + len(line) > _WIDTH:
            inner = "".join(f"{indent}    {name},{newline}" for name in shown)
            line = f"from {module} import ({newline}{inner}{indent})"
        out.append(line)
    return out


def _replace(source: Source, place: _Place) -> None:
    node = place.node
    indent = source.indent_of(node)
    lines = _statements(indent, source.newline, place.wanted)
    remain = _remaining(source, place)
    line = source.parent(node)
    alone = isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1
    texts = [*([remain] if remain else []), *lines]
    if texts:
        source.edit(node, f"{source.newline}{indent}".join(texts) if alone else "; ".join(texts), exact=True)
    elif alone and not _only_statement(source, line):
        at = source.exact[node].start.line
        end_line = source.exact[node].end.line
        start, end = source.line_span(at)[0], source.line_span(end_line)[1]
        after = source.between(source.exact_span(node)[1], end).strip()
        source.replace(
            start, min(len(source.text), end + len(source.newline)), f"{indent}{after}{source.newline}" if after else ""
        )
    else:
        source.edit(node, "pass", exact=True)


def _only_statement(source: Source, line: cst.CSTNode | None) -> bool:
    """Whether a block holds nothing but imports of the v1 SDK, and would be empty without them."""
    block = source.parent(line) if line is not None else None
    return isinstance(block, cst.IndentedBlock) and all(
        isinstance(each, cst.SimpleStatementLine)
        and all(isinstance(s, (cst.Import, cst.ImportFrom)) and _is_v1(s) for s in each.body)
        for each in block.body
    )


def _remaining(source: Source, place: _Place) -> str:
    """The import of what is not ours or still used."""
    node = place.node
    if isinstance(node, cst.ImportFrom) and isinstance(node.names, cst.ImportStar):
        return source.text_of(node) if place.kept else ""
    assert not isinstance(node.names, cst.ImportStar)
    kept = []
    for alias in node.names:
        name = get_full_name_for_node(alias.name) or ""
        if isinstance(node, cst.ImportFrom):
            keep = _alias(alias) in place.kept or not _of_v1(f"{_module(node)}.{name}")
        else:
            keep = (name if alias.asname is None else _alias(alias)) in place.kept or not _of_v1(name)
        if keep:
            text = source.between(*source.exact_span(alias)).strip().rstrip(",").strip()
            kept.append(text)
    if not kept:
        return ""
    if len(kept) == len(node.names):
        return source.between(*source.exact_span(node))
    if isinstance(node, cst.ImportFrom):
        return f"from {_module(node)} import {', '.join(kept)}"
    return f"import {', '.join(kept)}"


def _insert(source: Source, wanted: dict[str, tuple[str, str]]) -> None:
    """Import at the top, behind the docstring and the first imports."""
    last: cst.CSTNode | None = None
    for statement in source.module.body:
        if not isinstance(statement, cst.SimpleStatementLine):
            break
        first = statement.body[0]
        is_doc = isinstance(first, cst.Expr) and isinstance(first.value, (cst.SimpleString, cst.ConcatenatedString))
        if isinstance(first, (cst.Import, cst.ImportFrom)) or (is_doc and last is None):
            last = statement
        else:
            break
    text = source.newline.join(_statements("", source.newline, wanted)) + source.newline
    if last is None:
        at = source.exact_span(source.module.body[0])[0] if source.module.body else 0
        source.replace(at, at, text)
        return
    end = source.line_span(source.exact[last].end.line)[1]
    if end == len(source.text):
        source.replace(end, end, source.newline + text)
    else:
        start_next = end + len(source.newline)
        source.replace(start_next, start_next, text)
