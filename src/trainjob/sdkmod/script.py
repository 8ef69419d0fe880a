"""What the parts of the rewrite share: the text, its names, and the v2 names that it needs."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any, Final

import libcst as cst

from trainjob.findings import Severity
from trainjob.sdkmod import codes, surface
from trainjob.sdkmod.arguments import Arguments
from trainjob.sdkmod.layout import Group, Part
from trainjob.sdkmod.names import Names
from trainjob.sdkmod.source import Source

TRAINER: Final = "kubeflow.trainer"
OPTIONS: Final = "kubeflow.trainer.options"
COMMON: Final = "kubeflow.common.utils"
# The functions of kubeflow.training.utils.utils that kubeflow 0.5 has, too, and that mean the same.
IN_COMMON: Final = frozenset({"get_default_target_namespace", "is_running_in_k8s"})
_IN_OPTIONS: Final = frozenset(
    {
        "Name",
        "Labels",
        "Annotations",
        "TrainerCommand",
        "TrainerArgs",
        "RuntimePatch",
        "TrainingRuntimeSpecPatch",
        "JobSetTemplatePatch",
        "JobSetSpecPatch",
        "ReplicatedJobPatch",
        "JobTemplatePatch",
        "JobSpecPatch",
        "PodTemplatePatch",
        "PodSpecPatch",
        "ContainerPatch",
    }
)
_SINGLETONS: Final = {"True": True, "False": False, "None": None}


@dataclass(slots=True)
class Script:
    """One script on its way. `introduced`: local name -> (module, name) for the imports that it will need."""

    source: Source
    names: Names
    runtime: str
    version: tuple[int, int]
    introduced: dict[str, tuple[str, str]] = field(default_factory=dict)
    calls: int = 0
    touched: set[int] = field(default_factory=set)
    packages: bool = False

    # Names and texts

    def need(self, name: str) -> str:
        """The local name of something of kubeflow.trainer, which the imports will provide."""
        module = OPTIONS if name in _IN_OPTIONS else COMMON if name in IN_COMMON else TRAINER
        local = name
        while self._taken(local, f"{module}.{name}"):
            local = f"Trainer{local}"
        self.introduced[local] = (module, name)
        return local

    def _taken(self, local: str, full: str) -> bool:
        for scope in {s for s in self.source.scopes.values() if s is not None}:
            for assignment in scope[local]:
                if full not in {q.name for q in assignment.get_qualified_names_for(local)}:
                    return True
        return False

    def text(self, node: cst.CSTNode) -> str:
        return self.source.text_of(node)

    def arguments(self, call: cst.Call, method: str, shown: str = "") -> Arguments | None:
        """The arguments of a call, None (with a mark) when they cannot be read."""
        arguments = Arguments(self.source, call, surface.positional(method, self.version) or ())
        if arguments.problem:
            self.source.mark(
                codes.DYNAMIC, call, f"{shown or method} is not rewritten: {arguments.problem}", "name the arguments"
            )
            return None
        return arguments

    def put(self, call: cst.CSTNode, group: Group, *, tall: bool = False) -> None:
        """Replace a call by another one."""
        self.source.edit(call, self.render(call, group, tall=tall))
        self.rewritten(call)

    def render(self, place: cst.CSTNode, group: Group, *, tall: bool = False) -> str:
        """A call as text at the place of a node."""
        start = self.source.exact[place].start
        used = start.column
        return group.text(
            self.source.indent_of(place), self.source.module.default_indent, self.source.newline, used, tall=tall
        )

    def rewritten(self, node: cst.CSTNode) -> None:
        if id(node) not in self.touched:
            self.touched.add(id(node))
            self.calls += 1

    # Values

    def literal(self, node: cst.BaseExpression | None) -> Any:
        """The Python value of an expression that is written out, also behind a name; `Unknown` otherwise."""
        if node is None:
            return UNKNOWN
        if isinstance(node, cst.Name) and node.value in _SINGLETONS:
            return _SINGLETONS[node.value]
        behind = self.names.value_of(node)
        if behind is None:
            return UNKNOWN
        try:
            return ast.literal_eval(self.source.text_of(behind).strip())
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            pass
        name = self.names.v1_name(behind)
        if name.endswith("JOB_KIND"):
            return {f"{k.upper()}_KIND": k for k in ("PyTorchJob", *surface.OTHER_KINDS)}.get(name, UNKNOWN)
        return UNKNOWN

    def say(self, code: str, severity: Severity, node: cst.CSTNode, message: str, fix: str = "") -> None:
        self.source.say(code, severity, node, message, fix)

    def note(self, code: str, node: cst.CSTNode, message: str, fix: str = "") -> None:
        self.source.say(code, Severity.NOTE, node, message, fix)

    def warn(self, code: str, node: cst.CSTNode, message: str, fix: str = "") -> None:
        self.source.say(code, Severity.WARNING, node, message, fix)

    def leftovers(self, arguments: Arguments, method: str) -> None:
        """Mark arguments that nothing answered for."""
        for name, argument in list(arguments.all.items()):
            if arguments.take(name) is None:
                continue
            self.source.mark(
                codes.ARGUMENT,
                arguments.call,
                f"the argument {name}={self.source.text_of(argument.value)} of {method} has no counterpart and is gone",
                "see whether the job needs it",
                Severity.WARNING,
            )


class _Unknown:
    """A value that stands nowhere in the text."""

    def __bool__(self) -> bool:
        return False


UNKNOWN: Final = _Unknown()


def simple(key: str, value: str) -> Part:
    """An argument without comments."""
    return Part(key, value)


def quoted(text: str) -> str:
    """A Python string in double quotes where that needs no escape."""
    shown = repr(text)
    return f'"{text}"' if shown[0] == "'" and '"' not in text and "\\" not in shown else shown
