"""get_job_logs: v1 gave ({pod: text}, {object: events}), and printed when it followed; v2 gives lines.

A rewritten call builds the same pair, so that what is done with it goes on working; its keys are step
names (node-0) in place of pod names (<job>-master-0), and places that use a key are marked.
"""

from __future__ import annotations

import libcst as cst

from trainjob.findings import Severity
from trainjob.sdkmod import codes
from trainjob.sdkmod.arguments import Arguments
from trainjob.sdkmod.client import Clients
from trainjob.sdkmod.methods import Choice, drop_timeout, pods_chosen
from trainjob.sdkmod.names import Kind
from trainjob.sdkmod.script import Script

_FIX = "the steps are called node-0 (v1's Master), node-1 (Worker 0), ..."


def get_job_logs(script: Script, clients: Clients, call: cst.Call, arguments: Arguments) -> None:
    """Rewrite one call by what is done with its result."""
    kind, _ = clients.kind_of(call, arguments)
    if kind != "PyTorchJob":
        script.source.mark(codes.KIND, call, f"get_job_logs is for a job of the kind {kind or '?'}: not rewritten", "")
        return
    if script.version < (1, 8):
        arguments.take("container")
    client = clients.receiver(call, arguments)
    name, follow, verbose = (arguments.take(n) for n in ("name", "follow", "verbose"))
    choice = pods_chosen(script, arguments, default_master=True)
    drop_timeout(script, arguments)
    script.leftovers(arguments, "get_job_logs")
    if name is None or choice is None:
        script.source.mark(
            codes.LOGS, call, "get_job_logs: it cannot be told which pods are meant, or v1 found none", _FIX
        )
        return
    following = script.literal(follow.value) if follow is not None else False
    if verbose is not None and script.literal(verbose.value) is not False:
        script.source.mark(
            codes.LOGS,
            call,
            "the events that verbose=True added come from get_job_events(name) now",
            "ask for them there",
            Severity.WARNING,
        )
    title = arguments.text(name)
    statement = script.source.parent(call)
    alone = isinstance(statement, cst.Expr) or script.version < (1, 8)
    if alone and isinstance(statement, cst.Expr):
        _alone(script, call, statement, client, title, choice, following is True or script.version < (1, 8), follow)
        return
    if following is not False:
        script.source.mark(
            codes.LOGS,
            call,
            "v1 printed the lines while it followed; the rewritten call waits for the end and prints none",
            "loop over get_job_logs(..., follow=True) and print",
            Severity.WARNING,
        )
    _pair(script, call, client, title, choice, ", follow=True" if following is True else "")


def _alone(
    script: Script,
    call: cst.Call,
    statement: cst.Expr,
    client: str,
    title: str,
    choice: Choice,
    prints: bool,
    follow: object,
) -> None:
    """A call whose result nobody reads: with follow v1 printed the lines."""
    source = script.source
    line = source.parent(statement)
    body = f"{client}.get_job_logs(name={title}, step={choice.step or 'step.name'}" + (
        ", follow=True)" if follow is not None else ")"
    )
    if not prints:
        source.edit(call, body if choice.step else f"{client}.get_job_logs(name={title})")
        script.rewritten(call)
        script.note(codes.LOGS, call, "the result of get_job_logs is not used, and nothing is printed without a loop")
        return
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1 or not choice.step:
        source.mark(
            codes.LOGS, call, "v1 printed the lines of several pods as they came", f"loop over each step; {_FIX}"
        )
        return
    indent, step, end = source.indent_of(call), source.module.default_indent, source.newline
    source.edit(statement, f"for line in {body}:{end}{indent}{step}print(line)", exact=True)
    script.rewritten(call)
    script.note(
        codes.LOGS, call, "v1 printed each line as it came: a loop does that now, without the pod's name before it"
    )


def _pair(script: Script, call: cst.Call, client: str, title: str, choice: Choice, follow: str) -> None:
    if choice.step:
        logs = f'{{{choice.step}: "\\n".join({client}.get_job_logs(name={title}, step={choice.step}{follow}))}}'
    else:
        condition = choice.condition or ' if step.name.startswith("node-")'
        lines = f'"\\n".join({client}.get_job_logs(name={title}, step=step.name{follow}))'
        end, inner = script.source.newline, script.source.indent_of(call) + script.source.module.default_indent
        logs = (
            f"{{{end}{inner}step.name: {lines}{end}{inner}for step in {client}.get_job(name={title}).steps"
            f"{end}{inner}{condition.strip()}{end}{script.source.indent_of(call)}}}"
        )
    source = script.source
    parent = source.parent(call)
    script.rewritten(call)
    script.warn(
        codes.LOGS,
        call,
        "the logs stand under step names now, not under pod names",
        f"where a key is used, change it: {_FIX}",
    )
    if isinstance(parent, cst.Subscript) and parent.value is call:
        index = script.literal(parent.slice[0].slice.value) if isinstance(parent.slice[0].slice, cst.Index) else None
        if index == 0 and len(parent.slice) == 1:
            source.edit(parent, logs)
            return
    if isinstance(parent, cst.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0].target, cst.Tuple):
        source.edit(call, f"{logs}, {{}}")
    else:
        source.edit(call, f"({logs}, {{}})")


def mark_key(script: Script, node: cst.Subscript) -> None:
    """Mark a place that takes a log by a pod's name."""
    if Kind.LOGS not in script.names.kind(node.value) or isinstance(node.value, cst.Call):
        return
    unpacked = isinstance(node.value, cst.Name) and _from_tuple(script, node.value)
    index = node.slice[0].slice
    if not unpacked and isinstance(index, cst.Index) and script.literal(index.value) in (0, 1):
        return  # the pair itself
    script.source.mark(codes.LOGS, node, "this key is a pod's name of v1", _FIX, Severity.WARNING)


def _from_tuple(script: Script, node: cst.Name) -> bool:
    """Whether a name was unpacked from the pair: it is the first dictionary then."""
    for assignment in script.names.assignments(node):
        target = getattr(assignment, "node", None)
        element = script.source.parent(target) if target is not None else None
        whole = script.source.parent(element) if isinstance(element, cst.Element) else None
        if whole is not None and isinstance(script.source.parent(whole), cst.AssignTarget):
            return True
    return False
