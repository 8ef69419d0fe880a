"""What the names of a script stand for: v1 clients, the jobs and logs that they gave."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from typing import Final

import libcst as cst
from libcst.helpers import get_full_name_for_node
from libcst.metadata import Assignment, BaseAssignment, GlobalScope, QualifiedNameSource, Scope

from trainjob.sdkmod import surface
from trainjob.sdkmod.source import Source

Key = tuple[int, str]
_JOB: Final = frozenset({"get_job", "get_pytorchjob", "wait_for_job_conditions"})
_JOBS: Final = frozenset({"list_jobs", "list_pytorchjobs"})


class Kind(Enum):
    """What a value is."""

    CLIENT = auto()
    JOB = auto()
    JOBS = auto()
    LOGS = auto()


class Names:
    """The names of one script."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.star = any(
            isinstance(i.names, cst.ImportStar) and _module(i).startswith("kubeflow.training")
            for i in source.nodes(cst.ImportFrom)
        )
        self.kinds: dict[Key, set[Kind]] = {}
        self.makers: dict[Key, list[cst.Call]] = {}
        self._returns: dict[str, set[Kind]] = {}
        self._functions = {f.name.value: f for f in source.nodes(cst.FunctionDef)}
        self.constructors = [c for c in source.nodes(cst.Call) if self.v1_name(c.func) == surface.CLIENT]
        self._only_v1()
        size = -1
        while size != (size := sum(map(len, self.kinds.values())) + sum(map(len, self._returns.values()))):
            self._spread()

    # Names

    def scope(self, node: cst.CSTNode) -> Scope | None:
        found = self.source.scopes.get(node)
        if found is None:
            found = next((s for a in self.source.ancestors(node) if (s := self.source.scopes.get(a))), None)
        return found

    def qualified(self, node: cst.CSTNode) -> set[str]:
        """The full names that an expression may have by its imports."""
        scope = self.scope(node)
        if scope is None or get_full_name_for_node(node) is None:
            return set()
        return {q.name for q in scope.get_qualified_names_for(node) if q.source is QualifiedNameSource.IMPORT}

    def v1_name(self, node: cst.CSTNode) -> str:
        """The last part of a name of the v1 SDK, empty for all others."""
        for name in self.qualified(node):
            if name.startswith(tuple(f"{p}." for p in surface.V1_PACKAGES)):
                return name.rpartition(".")[2]
        if self.star and isinstance(node, cst.Name) and not self.assignments(node):
            name = node.value
            if name == surface.CLIENT or name == "constants" or name.startswith("KubeflowOrgV1"):
                return name
        return ""

    def assignments(self, node: cst.Name) -> list[BaseAssignment]:
        scope = self.scope(node)
        return list(scope[node.value]) if scope is not None and node.value in scope else []

    def key(self, node: cst.CSTNode) -> Key | None:
        """A variable, or a dotted name such as self.client."""
        if isinstance(node, cst.Name):
            found = self.assignments(node)
            return (id(found[0].scope), node.value) if found else None
        if isinstance(node, cst.Attribute):
            full = get_full_name_for_node(node)
            if full is None:
                return None
            holder = self.source.enclosing(node, cst.ClassDef) if full.split(".")[0] in ("self", "cls") else None
            return (id(holder), full)
        return None

    def kind(self, node: cst.BaseExpression) -> set[Kind]:
        """What an expression gives, as far as it can be told."""
        if isinstance(node, (cst.Name, cst.Attribute)):
            key = self.key(node)
            return self.kinds.get(key, set()) if key else set()
        if isinstance(node, cst.NamedExpr):
            return self.kind(node.value)
        if isinstance(node, cst.IfExp):
            return self.kind(node.body) | self.kind(node.orelse)
        if isinstance(node, cst.BooleanOperation):
            return self.kind(node.left) | self.kind(node.right)
        if isinstance(node, cst.Call):
            if self.v1_name(node.func) == surface.CLIENT:
                return {Kind.CLIENT}
            if isinstance(node.func, cst.Attribute) and Kind.CLIENT in self.kind(node.func.value):
                return _given(node.func.attr.value)
            name = get_full_name_for_node(node.func) or ""
            return self._returns.get(name.rpartition(".")[2], set())
        return set()

    def is_client(self, node: cst.BaseExpression) -> bool:
        return Kind.CLIENT in self.kind(node)

    def made_by(self, node: cst.BaseExpression) -> list[cst.Call]:
        """The calls of TrainingClient that may have made a client, empty when that cannot be told."""
        if isinstance(node, cst.Call) and self.v1_name(node.func) == surface.CLIENT:
            return [node]
        key = self.key(node)
        if key and key in self.makers:
            return self.makers[key]
        return self.constructors if len(self.constructors) == 1 else []

    def value_of(self, node: cst.BaseExpression) -> cst.BaseExpression | None:
        """The expression behind a name that is assigned once."""
        if not isinstance(node, cst.Name):
            return node
        found = self.assignments(node)
        if len(found) != 1 or not isinstance(found[0], Assignment):
            return None
        target = self.source.parent(found[0].node)
        if isinstance(target, cst.AnnAssign):
            return target.value
        assign = self.source.parent(target) if isinstance(target, cst.AssignTarget) else None
        return assign.value if isinstance(assign, cst.Assign) and len(assign.targets) == 1 else None

    def default_of(self, node: cst.BaseExpression) -> cst.BaseExpression | None:
        """The default of the parameter that a name stands for."""
        if not isinstance(node, cst.Name):
            return None
        found = self.assignments(node)
        if len(found) != 1 or not isinstance(found[0], Assignment):
            return None
        param = found[0].node
        return param.default if isinstance(param, cst.Param) else None

    def function(self, node: cst.BaseExpression) -> cst.FunctionDef | None:
        """The function of this script that a name stands for."""
        if not isinstance(node, cst.Name):
            return None
        found = self.assignments(node)
        if len(found) == 1 and isinstance(found[0], Assignment) and isinstance(found[0].node, cst.FunctionDef):
            return found[0].node
        return None

    def is_local(self, call: cst.Call) -> bool:
        """Whether a call goes to a function of this script."""
        return (get_full_name_for_node(call.func) or "").rpartition(".")[2] in self._functions

    def accesses(self, node: cst.Name) -> list[cst.CSTNode]:
        """Every place that reads a variable."""
        return [a.node for assignment in self.assignments(node) for a in assignment.references]

    def usable_at(self, value: cst.BaseExpression, place: cst.CSTNode) -> bool:
        """Whether an expression means the same at an earlier place: a literal, or a name set before it."""
        if isinstance(value, cst.SimpleString):
            return True
        if not isinstance(value, cst.Name):
            return False
        found = self.assignments(value)
        if len(found) != 1 or not isinstance(found[0], Assignment):
            return False
        scope, here = found[0].scope, self.scope(place)
        before = self.source.exact[found[0].node].start.line < self.source.exact[place].start.line
        if isinstance(scope, GlobalScope):
            return before or here is not scope
        return here is scope and (before or isinstance(found[0].node, cst.Param))

    # How kinds spread

    def _add(self, node: cst.CSTNode, kinds: set[Kind]) -> None:
        key = self.key(node)
        if key and kinds:
            self.kinds.setdefault(key, set()).update(kinds)

    def _only_v1(self) -> None:
        """Names on which a method is called that only TrainingClient has."""
        if not self.constructors and not self.star and not any(self._v1_imports()):
            return
        if any(_module(i) == "kubeflow.trainer" for i in self.source.nodes(cst.ImportFrom)):
            return  # such a name may be what an earlier run left
        for call in self.source.nodes(cst.Call):
            if isinstance(call.func, cst.Attribute) and call.func.attr.value in surface.ONLY_V1:
                self._add(call.func.value, {Kind.CLIENT})

    def _v1_imports(self) -> Iterator[cst.CSTNode]:
        for node in self.source.nodes(cst.ImportFrom):
            if _module(node).startswith(surface.V1_PACKAGES):
                yield node
        for plain in self.source.nodes(cst.Import):
            if any((get_full_name_for_node(a.name) or "").startswith(surface.V1_PACKAGES) for a in plain.names):
                yield plain

    def _spread(self) -> None:
        for assign in self.source.nodes(cst.Assign):
            for target in assign.targets:
                self._assign(target.target, assign.value)
        for annotated in self.source.nodes(cst.AnnAssign):
            if annotated.value is not None:
                self._assign(annotated.target, annotated.value)
        for named in self.source.nodes(cst.NamedExpr):
            self._assign(named.target, named.value)
        loops: list[cst.For | cst.CompFor] = [*self.source.nodes(cst.For), *self.source.nodes(cst.CompFor)]
        for loop in loops:
            if Kind.JOBS in self.kind(loop.iter):
                self._add(loop.target, {Kind.JOB})
        for function in self.source.nodes(cst.FunctionDef):
            self._function(function)
        for call in self.source.nodes(cst.Call):
            self._arguments(call)

    def _assign(self, target: cst.BaseExpression, value: cst.BaseExpression) -> None:
        kinds = self.kind(value)
        if isinstance(target, cst.Tuple):
            if Kind.LOGS in kinds and target.elements:
                self._add(target.elements[0].value, {Kind.LOGS})
            return
        self._add(target, kinds)
        key = self.key(target)
        if Kind.CLIENT in kinds and key:
            made = self.made_by(value)
            known = self.makers.setdefault(key, [])
            known += [m for m in made if m not in known]

    def _function(self, function: cst.FunctionDef) -> None:
        for param in _params(function):
            if param.annotation is not None and self._names_client(param.annotation.annotation):
                self._add(param.name, {Kind.CLIENT})
        name = function.name.value
        kinds: set[Kind] = set()
        if function.returns is not None and self._names_client(function.returns.annotation):
            kinds.add(Kind.CLIENT)
        for given in self.source.nodes(cst.Return, function.body):
            if given.value is not None and self.source.enclosing(given, cst.FunctionDef) is function:
                kinds |= self.kind(given.value)
        if kinds:
            self._returns.setdefault(name, set()).update(kinds)

    def _names_client(self, annotation: cst.BaseExpression) -> bool:
        if isinstance(annotation, cst.SimpleString):
            return bool(self.constructors or any(self._v1_imports())) and surface.CLIENT in annotation.value
        found = [annotation, *self.source.nodes(cst.Name, annotation), *self.source.nodes(cst.Attribute, annotation)]
        return any(self.v1_name(n) == surface.CLIENT for n in found)

    def _callback(self, call: cst.Call) -> None:
        """The job that wait_for_job_conditions hands to its callback."""
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "wait_for_job_conditions":
            return
        for arg in call.args:
            if arg.keyword is None or arg.keyword.value != "callback":
                continue
            if isinstance(arg.value, cst.Lambda) and arg.value.params.params:
                self._add(arg.value.params.params[0].name, {Kind.JOB})
            function = self.function(arg.value)
            if function is not None and function.params.params:
                self._add(function.params.params[0].name, {Kind.JOB})

    def _arguments(self, call: cst.Call) -> None:
        self._callback(call)
        function = self._functions.get((get_full_name_for_node(call.func) or "").rpartition(".")[2])
        if function is None:
            return
        params = list(_params(function))
        if params and params[0].name.value in ("self", "cls") and isinstance(call.func, cst.Attribute):
            params = params[1:]
        by_name = {p.name.value: p for p in params}
        for i, arg in enumerate(call.args):
            kinds = self.kind(arg.value) - {Kind.LOGS}
            if not kinds or arg.star:
                continue
            param = (
                by_name.get(arg.keyword.value) if arg.keyword is not None else (params[i] if i < len(params) else None)
            )
            if param is not None:
                self._add(param.name, kinds)


def _given(method: str) -> set[Kind]:
    if method in _JOB:
        return {Kind.JOB}
    if method in _JOBS:
        return {Kind.JOBS}
    return {Kind.LOGS} if method == "get_job_logs" else set()


def _params(function: cst.FunctionDef) -> Iterator[cst.Param]:
    yield from function.params.posonly_params
    yield from function.params.params
    yield from function.params.kwonly_params


def _module(node: cst.ImportFrom) -> str:
    return "" if node.relative or node.module is None else (get_full_name_for_node(node.module) or "")
