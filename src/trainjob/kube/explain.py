"""Schema errors in words: what is wrong, and what the writer probably meant.

Loaded only when there is something to explain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from trainjob.kube import schema as facts
from trainjob.kube.schema import Path, Schema, Violation
from trainjob.targets import TARGETS, Target

_TYPES: Final = {
    "array": "a list", "boolean": "true or false", "integer": "an integer", "number": "a number",
    "object": "a mapping", "string": "a string",
}  # fmt: skip
_QUANTITY_MARK: Final = "KMGTPE]i"


def show(value: Any, limit: int = 40) -> str:
    """A value for a message, shortened: text in quotes, containers by name."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        text = value if len(value) <= limit else value[: limit - 3] + "..."
        return '"' + text.replace("\n", "\\n") + '"'
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return str(value)[:limit]


def violations(
    obj: Any, path: Path, keyword: str, kind: str, target: Target | None, strict: Schema
) -> Iterator[Violation]:
    """One JSON Schema error, given as the path of the value and the keyword, as Violations."""
    value = obj
    for key in path:
        value = value[key]
    node = facts.lookup(strict, path) or {}
    if keyword == "additionalProperties":
        for name in value:
            if name not in node.get("properties", {}):
                yield unknown_field(kind, target, path, str(name), node)
    elif keyword == "required":
        for name in node["required"]:
            if name not in value:
                yield Violation((*path, name), f'missing field "{name}"', keyword)
    elif keyword == "anyOf":
        yield Violation((*path, "name"), 'missing field "name" (or "generateName")', "required")
    elif keyword in ("pattern", "maxLength") and isinstance(value, Mapping):
        for name in value:
            if not _qualified(name):
                message = f"{show(name)} is not a valid label or annotation key"
                yield Violation((*path, name), message, keyword)
    else:
        message, fix = _words(value, keyword, node, path)
        yield Violation(path, message, keyword, fix)


def _qualified(name: str) -> bool:
    import re

    return len(name) <= 317 and re.match(facts.QUALIFIED_NAME.removesuffix("$") + r"\Z", name) is not None


def _words(value: Any, keyword: str, node: Schema, path: Path) -> tuple[str, str]:
    bound = node.get(keyword)
    if keyword == "type":
        return _type(value, node)
    if keyword == "pattern":
        return _pattern(value, node, path)
    if keyword == "format":
        return f"{show(value)} is not a date and time", "write it like 2026-01-31T12:00:00Z"
    if keyword == "const":
        return f"must be {show(bound)}, not {show(value)}", ""
    if keyword == "enum":
        return f"must be one of {', '.join(map(show, bound or ()))}, not {show(value)}", ""
    texts: dict[str, Callable[[], str]] = {
        "minimum": lambda: f"must be at least {bound}, not {show(value)}",
        "maximum": lambda: f"must be at most {bound}, not {show(value)}",
        "minLength": lambda: "must not be empty" if bound == 1 else f"must have at least {bound} characters",
        "maxLength": lambda: f"has {len(value)} characters, at most {bound} are allowed",
        "minItems": lambda: "must not be empty" if bound == 1 else f"needs at least {bound} entries",
        "maxItems": lambda: f"has {len(value)} entries, at most {bound} are allowed",
        "minProperties": lambda: "must not be empty",
        "maxProperties": lambda: f"has {len(value)} fields, at most {bound} are allowed",
    }
    return (texts[keyword]() if keyword in texts else f"is not valid ({keyword})"), ""


def _type(value: Any, node: Schema) -> tuple[str, str]:
    wanted = node.get("type", ())
    if _QUANTITY_MARK in node.get("pattern", ""):
        return f"must be a quantity, not {show(value)}", 'write it as text such as "500m" or "16Gi"'
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    text = f"must be {' or '.join(_TYPES.get(n, n) for n in names if n != 'null')}, not {show(value)}"
    if names == ["string"] and isinstance(value, bool | int | float):
        return text, "put it in quotes"
    if names and names[0] in ("integer", "boolean") and isinstance(value, str):
        return text, "remove the quotes" if value.lstrip("-").isdigit() or value in ("true", "false") else ""
    if names == ["array"] and isinstance(value, str | int):
        return text, "write it as a list"
    return text, ""


def _pattern(value: Any, node: Schema, path: Path) -> tuple[str, str]:
    pattern = node["pattern"]
    if _QUANTITY_MARK in pattern:
        return f"{show(value)} is not a quantity", "write it like 2, 500m or 16Gi"
    if pattern == facts.LABEL_VALUE:
        return (
            f"{show(value)} is not a valid label value",
            "use at most 63 letters, digits, '-', '_' or '.', with a letter or digit at both ends",
        )
    if path[:1] == ("metadata",):
        return f"{show(value)} is not a valid name", "use lower case letters, digits and '-'"
    return f"{show(value)} does not match {pattern}", ""


# Unknown fields.

_PATCHES: Final = ("podSpecOverrides", "podTemplateOverrides", "runtimePatches")
_V1: Final = ("pytorchReplicaSpecs", "runPolicy", "elasticPolicy", "nprocPerNode")
_TRAINER: Final = {
    "image": "spec.trainer.image", "command": "spec.trainer.command", "args": "spec.trainer.args",
    "resources": "spec.trainer.resourcesPerNode",
}  # fmt: skip
_RUNTIME_ONLY: Final = frozenset({
    "activeDeadlineSeconds", "automountServiceAccountToken", "backoffLimit", "completions", "dnsConfig",
    "dnsPolicy", "envFrom", "failurePolicy", "hostIPC", "hostNetwork", "hostPID", "imagePullPolicy",
    "lifecycle", "livenessProbe", "network", "parallelism", "podFailurePolicy", "ports", "priorityClassName",
    "readinessProbe", "replicas", "restartPolicy", "runtimeClassName", "schedulerName",
    "shareProcessNamespace", "startupPolicy", "startupProbe", "subdomain", "successPolicy", "template",
    "topologySpreadConstraints", "volumeClaimPolicies", "workingDir",
})  # fmt: skip


def unknown_field(kind: str, target: Target | None, path: Path, name: str, node: Schema) -> Violation:
    hint, fix = _hint(kind, target, path, name, node)
    message = f'unknown field "{name}"' + (f": {hint}" if hint else "")
    return Violation((*path, name), message, "unknown-field", fix)


def _hint(kind: str, target: Target | None, path: Path, name: str, node: Schema) -> tuple[str, str]:
    """(what is known about the field, what to write instead)"""
    if target is not None:
        known = _known(kind, target, path, name)
        if known is not None:
            return known
        elsewhere = [t for t in TARGETS if _has(kind, t, path, name)]
        if elsewhere:
            return f"Trainer {_span(elsewhere)} {'have' if len(elsewhere) > 1 else 'has'} it", ""
    names = tuple(node.get("properties", {}))
    close = _closest(name, names)
    if close:
        return f'did you mean "{close}"?', ""
    if kind == "TrainJob" and len(path) <= 2 and target is not None:
        place = _place(facts.raw(kind, target), name)
        if place:
            return f"it belongs in {place}", f"move it to {place}"
    return "", ""


def _known(kind: str, target: Target, path: Path, name: str) -> tuple[str, str] | None:
    if kind == "TrainJob":
        if path == ("spec",) and name in _PATCHES:
            fix = f"write {target.patches}; its shape differs too"
            return f"Trainer {target} calls it {target.patches}", fix
        if path == ("spec",) and name in ("labels", "annotations"):
            place = "runtimePatches[].trainingRuntimeSpec.template.metadata"
            return "removed in Trainer 2.2", f"write them in {place}"
        if path == ("spec",) and name in _V1:
            return "a field of PyTorchJob v1", "convert the job with `trainjob migrate`"
        if name == "ttlSecondsAfterFinished":
            return "Trainer v2 has no TTL", "let something outside the cluster delete finished TrainJobs"
        if _PATCHES[0] in path or _PATCHES[1] in path or _PATCHES[2] in path:
            if "containers" in path and name in _TRAINER:
                return "a patch cannot set it", f"for the training container use {_TRAINER[name]}"
            if name in _RUNTIME_ONLY and not any(_has(kind, t, path, name) for t in TARGETS):
                return "a patch cannot set it", "only a runtime can"
        elif name in _RUNTIME_ONLY and not any(_has(kind, t, path, name) for t in TARGETS):
            return "a TrainJob cannot set it", "only a runtime can"
    elif path[-1:] == ("torch",) and name == "numProcPerNode":
        return (
            "removed in Trainer 2.2",
            "write `torch: {}`; a TrainJob may set spec.trainer.numProcPerNode",
        )
    elif path[-1:] == ("torch",) and name == "elasticPolicy":
        return "removed in Trainer 2.2, it never had an effect", "delete it"
    return None


def _has(kind: str, target: Target, path: Path, name: str) -> bool:
    node = facts.lookup(facts.raw(kind, target), path)
    return node is not None and name in node.get("properties", {})


def _span(targets: list[Target]) -> str:
    names = [t.name for t in targets]
    if targets[-1] is TARGETS[-1] and len(names) > 1:
        return f"{names[0]} and later"
    return " and ".join(names) if len(names) < 3 else f"{names[0]} to {names[-1]}"


def _closest(name: str, names: tuple[str, ...]) -> str:
    import difflib

    plain = name.replace("_", "").replace("-", "").lower()
    for candidate in names:
        if candidate.lower() == plain:
            return candidate
    return next(iter(difflib.get_close_matches(name, names, 1, 0.8)), "")


def _place(schema: Schema, name: str) -> str:
    """Where in the first levels of a spec a field of this name stands, if in one place only."""
    places = []
    spec = schema["properties"]["spec"]["properties"]
    for outer, node in {"": {"properties": spec}, **spec}.items():
        if name in node.get("properties", {}):
            places.append(".".join(p for p in ("spec", outer, name) if p))
    return places[0] if len(places) == 1 else ""
