"""PyTorchJobs that a script writes out: migrated as `trainjob migrate` does, and put back as TrainJobs.

Expressions inside the object (an image in a variable) become placeholders on the way through the
migrator and stand in the TrainJob again; where one would be lost, nothing is rewritten.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import libcst as cst

from trainjob.findings import Finding, Severity
from trainjob.kube import yaml
from trainjob.migrate import Migration, Options, migrate_text
from trainjob.sdkmod import codes
from trainjob.sdkmod.data import Expr, NotWritten, Reader, python
from trainjob.sdkmod.layout import Group
from trainjob.sdkmod.script import Script

_PLACEHOLDER: Final = "trainjobexpr"
_SOURCE: Final = ("trainjob.dev/migrated-from", "trainjob.dev/source-sha256")


@dataclass(slots=True)
class Found:
    """A PyTorchJob of the script: `node` is the expression that makes it, `reader` knows what went into it."""

    node: cst.BaseExpression
    data: dict[str, Any]
    reader: Reader
    expressions: dict[str, str] = field(default_factory=dict)


def find(script: Script, node: cst.BaseExpression) -> Found:
    """The PyTorchJob behind an expression. Raises NotWritten."""
    reader = Reader(script)
    behind = node
    if isinstance(node, cst.Name):
        value = script.names.value_of(node)
        if value is None:
            raise NotWritten(f"{node.value} is a parameter, or is assigned more than once")
        behind = value
    data = reader.read(node)
    if not isinstance(data, dict):
        raise NotWritten(f"{script.text(node)} is not written out in this file")
    data.setdefault("apiVersion", "kubeflow.org/v1")
    data.setdefault("kind", "PyTorchJob")
    if data["kind"] != "PyTorchJob":
        raise NotWritten(f"it is a {data['kind'].text if isinstance(data['kind'], Expr) else data['kind']}")
    found = Found(behind, {}, reader)
    found.data = _plain(data, found.expressions)
    return found


def _plain(data: Any, expressions: dict[str, str]) -> Any:
    if isinstance(data, Expr):
        for placeholder, text in expressions.items():
            if text == data.text:
                return placeholder
        placeholder = f"{_PLACEHOLDER}{len(expressions)}x"
        expressions[placeholder] = data.text
        return placeholder
    if isinstance(data, dict):
        return {k: _plain(v, expressions) for k, v in data.items()}
    if isinstance(data, list):
        return [_plain(v, expressions) for v in data]
    return data


def migrated(script: Script, found: Found) -> tuple[str | Group, Migration]:
    """The TrainJob as Python. Raises NotWritten with the reason when it cannot stand in for the job."""
    result = migrate_text(json.dumps(found.data), file=script.source.file, options=Options())
    if not result.jobs:
        errors = [f for f in result.findings if f.severity is Severity.ERROR]
        raise NotWritten("; ".join(f"{f.code} {_words(f, found)}" for f in errors[:2]) or "it is refused")
    job = result.jobs[0]
    if job.runtime is not None:
        raise NotWritten("it needs a TrainingRuntime of its own")
    manifest = _without_source(job.manifest)
    written = json.dumps(manifest)
    lost = [text for placeholder, text in found.expressions.items() if placeholder not in written]
    namespace = found.data.get("metadata", {}).get("namespace")
    lost = [t for t in lost if found.expressions.get(str(namespace)) != t]
    if lost:
        raise NotWritten(f"{', '.join(lost)} would be lost")
    return python(manifest, found.expressions), result


def _without_source(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The TrainJob without the annotations that say which file it came from."""
    metadata = dict(manifest["metadata"])
    annotations = {k: v for k, v in metadata.pop("annotations", {}).items() if k not in _SOURCE}
    if annotations:
        metadata["annotations"] = annotations
    return {**manifest, "metadata": metadata}


def _words(finding: Finding, found: Found) -> str:
    message = finding.message
    for placeholder, text in found.expressions.items():
        message = message.replace(placeholder, text)
    return message


def summary(script: Script, result: Migration, found: Found, where: cst.CSTNode) -> None:
    """What the migrator said, at the place of the object: warnings as they are, the arithmetic as a note."""
    for finding in result.findings:
        if finding.severity is not Severity.NOTE or finding.code == "TJ101":
            script.say(finding.code, finding.severity, where, _words(finding, found), finding.fix)


def create(script: Script, call: cst.Call, node: cst.BaseExpression, put: Callable[[str], None], method: str) -> None:
    """Rewrite the object in its place and the call by `put(text of the object)`; or mark the call."""
    source = script.source
    try:
        found = find(script, node)
        body, result = migrated(script, found)
        if isinstance(node, cst.Name) and _used_elsewhere(script, node, call):
            raise NotWritten(f"{node.value} is also used elsewhere")
    except NotWritten as err:
        source.mark(
            codes.JOB_OBJECT,
            call,
            f"{method} gets a PyTorchJob that is not migrated in its place: {err}",
            "write the job as YAML, run `trainjob migrate`, and create the TrainJob with "
            "client.backend.custom_api.create_namespaced_custom_object",
        )
        return
    text = script.render(found.node, body) if isinstance(body, Group) else body
    if isinstance(node, cst.Name):
        source.edit(found.node, text)
        put(node.value)
    else:
        put(script.render(call, body) if isinstance(body, Group) else body)
    script.note(
        codes.JOB_OBJECT,
        found.node,
        f"the PyTorchJob is the TrainJob that `trainjob migrate` makes of it, on the runtime "
        f"{result.jobs[0].manifest['spec']['runtimeRef']['name']}",
    )
    summary(script, result, found, found.node)
    remove_parts(script, found.reader, found.node)


def _used_elsewhere(script: Script, node: cst.Name, call: cst.Call) -> bool:
    """Whether a variable is read at another place than in the call, or with attributes."""
    for access in script.names.accesses(node):
        if access is node:
            continue
        if call not in script.source.ancestors(access):
            return True
    return False


def remove_parts(script: Script, reader: Reader, node: cst.BaseExpression) -> None:
    """Take out variables that only the old object at `node` used."""
    source = script.source
    spans = [source.span(node)]
    again = True
    names = list(reader.used)
    while again:
        again = False
        for name in list(names):
            behind = script.names.value_of(name)
            if behind is None or behind is node:
                names.remove(name)
                continue
            line = source.statement(behind)
            places = [source.span(a)[0] for a in script.names.accesses(name)]
            if not all(any(s <= p < e for s, e in spans) for p in places):
                continue
            if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1:
                spans.append(source.span(behind))
                _remove(script, line)
                names = [n for n in names if script.names.value_of(n) is not behind]
                again = True
                break


def _remove(script: Script, line: cst.SimpleStatementLine) -> None:
    """Take out a statement with its line; comments above it stay."""
    source = script.source
    place = source.exact[line]
    start = source.line_span(place.start.line)[0]
    last = place.end.line
    end = source.line_span(last)[1] + len(source.newline)
    source.replace(start, min(end, len(source.text)), "")


def yaml_jobs(text: str) -> bool:
    """Whether a text is YAML (or JSON) that holds a PyTorchJob."""
    if "PyTorchJob" not in text or "kind" not in text:
        return False
    try:
        return any(
            isinstance(d, dict) and d.get("kind") == "PyTorchJob"
            for d in (yaml.parse(doc).data for doc in yaml.split(text, "<text>"))
        )
    except yaml.YamlError:
        return False
