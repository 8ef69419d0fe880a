"""Whether an object is valid for its CRD, offline: unknown fields, types, bounds, duplicates, CEL.

The facts are the CRDs of kubeflow/trainer v2.0.1 to v2.3.0 and of the Training Operator v1.9.4
(manifests/base/crds), vendored by tools/vendor_crds.py. Checked is what an API server checks
under strict field validation, except rules that compare with a stored object.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Final

from trainjob.kube import cel
from trainjob.targets import API_VERSION, TARGETS, Target

if TYPE_CHECKING:
    import jsonschema_rs

Path = tuple[str | int, ...]
Schema = Mapping[str, Any]

VENDOR: Final = FilePath(__file__).parent.parent / "_vendor"
V1_RELEASE: Final = "v1.9.4"
V1_API_VERSION: Final = "kubeflow.org/v1"


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that a server would refuse. `rule` is the JSON Schema keyword that failed, or
    `unknown-field`, `duplicate` or `cel`."""

    path: Path
    message: str
    rule: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class _Kind:
    project: str
    plural: str
    api_version: str


KINDS: Final[Mapping[str, _Kind]] = {
    "TrainJob": _Kind("trainer", "trainjobs", API_VERSION),
    "TrainingRuntime": _Kind("trainer", "trainingruntimes", API_VERSION),
    "ClusterTrainingRuntime": _Kind("trainer", "trainingruntimes", API_VERSION),
    "PyTorchJob": _Kind("training-operator", "pytorchjobs", V1_API_VERSION),
    "JAXJob": _Kind("training-operator", "jaxjobs", V1_API_VERSION),
    "MPIJob": _Kind("training-operator", "mpijobs", V1_API_VERSION),
    "XGBoostJob": _Kind("training-operator", "xgboostjobs", V1_API_VERSION),
}


def releases(kind: str) -> tuple[str, ...]:
    """The upstream releases whose schema of `kind` is vendored, oldest first."""
    return tuple(t.release for t in TARGETS) if KINDS[kind].project == "trainer" else (V1_RELEASE,)


def _release(kind: str, target: Target | None) -> str:
    if KINDS[kind].project != "trainer":
        return V1_RELEASE
    if target is None:
        raise ValueError(f"a {kind} needs a target")
    return target.release


def raw(kind: str, target: Target | None = None) -> Schema:
    """The structural schema of a kind as vendored. It is shared: read it, do not change it.

    `target` is ignored for the kinds of v1. Raises KeyError for a kind that is not in KINDS.
    """
    return _load(KINDS[kind].project, _release(kind, target), KINDS[kind].plural)


def lookup(schema: Schema, path: Path) -> Schema | None:
    """The schema node that describes the value at `path`, or None for an unknown field."""
    node: Any = schema
    for key in path:
        if isinstance(key, int):
            node = node.get("items")
        else:
            node = node.get("properties", {}).get(key) or node.get("additionalProperties")
        if not isinstance(node, Mapping):
            return None
    return node  # type: ignore[no-any-return]


def check(obj: Any, kind: str, target: Target | None = None) -> Iterator[Violation]:
    """Everything that makes `obj` invalid for the CRD of `kind`; nothing when it is valid.

    Null values of fields count as absent, as they do for the API server.
    """
    compiled = _compiled(kind, _release(kind, target))
    valid = True
    for violation in _structure(obj, kind, target, compiled):
        valid = False
        yield violation
    if isinstance(obj, Mapping):
        found: list[Violation] = []
        _walk(compiled.plan, obj, (), valid, found)
        yield from found


def _structure(obj: Any, kind: str, target: Target | None, compiled: _Compiled) -> Iterator[Violation]:
    try:
        if compiled.validator.is_valid(obj):
            return
        obj = _without_nulls(obj, compiled.strict)
        # Once per object and keyword: `required` comes once per missing field.
        errors = dict.fromkeys(
            (_exact(obj, e.instance_path), str(e.schema_path[-1]) if e.schema_path else "")
            for e in compiled.validator.iter_errors(obj)
        )
    except (TypeError, ValueError, OverflowError, RecursionError) as err:
        yield Violation((), f"not plain data: {str(err)[:100]}", "type")
        return
    from trainjob.kube import explain

    told: set[tuple[Path, str]] = set()
    for path, keyword in errors:
        for violation in explain.violations(obj, path, keyword, kind, target, compiled.strict):
            if (violation.path, violation.message) not in told:
                told.add((violation.path, violation.message))
                yield violation


def _exact(obj: Any, path: Iterable[str | int]) -> Path:
    """A path of the validator, which gives the key "0" or "01" of a mapping as the number 0 or 1."""
    out: list[str | int] = []
    for key in path:
        if isinstance(key, int) and isinstance(obj, Mapping):
            key = next(k for k in obj if isinstance(k, str) and k.isdecimal() and int(k) == key)
        obj = obj[key]
        out.append(key)
    return tuple(out)


def _without_nulls(value: Any, node: Any) -> Any:
    """A copy without the nulls that an API server drops: those of fields that the schema knows."""
    if not isinstance(node, Mapping):
        return value
    if isinstance(value, Mapping):
        known, extra = node.get("properties", {}), node.get("additionalProperties")
        return {
            key: _without_nulls(child, known.get(key, extra))
            for key, child in value.items()
            if child is not None or not isinstance(known.get(key, extra), Mapping)
        }
    if isinstance(value, list):
        return [_without_nulls(child, node.get("items")) for child in value]
    return value


# Facts, compiled once per kind and release.


@functools.cache
def _load(project: str, release: str, plural: str) -> Schema:
    import json

    data: dict[str, Any] = json.loads((VENDOR / "crds" / project / release / f"{plural}.json").read_bytes())
    return data


@dataclass(frozen=True, slots=True)
class _Compiled:
    strict: Schema
    validator: jsonschema_rs.Validator
    plan: _Plan


@functools.cache
def _compiled(kind: str, release: str) -> _Compiled:
    import jsonschema_rs

    schema = _load(KINDS[kind].project, release, KINDS[kind].plural)
    strict = strict_schema(kind, schema)
    # Formats count: `time` of a runtimePatch must be a date and time.
    validator = jsonschema_rs.validator_for(dict(strict), validate_formats=True)
    return _Compiled(strict, validator, _plan(schema) or _Plan())


# What a CRD leaves to the API server: the metadata of an object
# (kubernetes v1.34 staging/src/k8s.io/apimachinery/pkg/api/validation/objectmeta.go).
_SUBDOMAIN: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
QUALIFIED_NAME: Final = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
)
LABEL_VALUE: Final = r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$"
_KEYED: Final = {"type": "object", "propertyNames": {"pattern": QUALIFIED_NAME, "maxLength": 317}}
_LABELS: Final = {**_KEYED, "additionalProperties": {"type": "string", "pattern": LABEL_VALUE}}
_ANNOTATIONS: Final = {**_KEYED, "additionalProperties": {"type": "string"}}
_METADATA: Final = {
    "type": "object",
    "additionalProperties": False,
    "anyOf": [{"required": ["name"]}, {"required": ["generateName"]}],
    "properties": {
        "annotations": _ANNOTATIONS,
        "creationTimestamp": {"type": "string"},
        "deletionGracePeriodSeconds": {"type": "integer"},
        "deletionTimestamp": {"type": "string"},
        "finalizers": {"type": "array", "items": {"type": "string"}},
        "generateName": {"type": "string"},
        "generation": {"type": "integer"},
        "labels": _LABELS,
        "managedFields": {"type": "array", "items": {"type": "object"}},
        "name": {"type": "string", "minLength": 1, "maxLength": 253, "pattern": _SUBDOMAIN},
        "namespace": {"type": "string", "maxLength": 63, "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$"},
        "ownerReferences": {"type": "array", "items": {"type": "object"}},
        "resourceVersion": {"type": "string"},
        "selfLink": {"type": "string"},
        "uid": {"type": "string"},
    },
}
_COPIED: Final = (
    "enum", "maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength", "minProperties",
    "minimum", "pattern", "required", "type",
)  # fmt: skip


def strict_schema(kind: str, schema: Schema) -> dict[str, Any]:
    """A structural schema as JSON Schema that refuses what a server refuses under strict validation."""
    out = _strict(schema, "", "")
    metadata = dict(_METADATA)
    if any("self.metadata.name" in r["rule"] for r in schema.get("x-kubernetes-validations", ())):
        # The CRD has its own, stricter rule for the name: one message is enough.
        name = {"type": "string", "minLength": 1}
        metadata["properties"] = {**_METADATA["properties"], "name": name}  # type: ignore[dict-item]
    out["properties"] = {
        **out["properties"],
        "apiVersion": {"const": KINDS[kind].api_version},
        "kind": {"const": kind},
        "metadata": metadata,
    }
    out["required"] = sorted({*out.get("required", ()), "apiVersion", "kind", "metadata", "spec"})
    return out


def _strict(node: Schema, name: str, parent: str) -> dict[str, Any]:
    if parent == "metadata" and name in ("labels", "annotations"):
        return dict(_LABELS if name == "labels" else _ANNOTATIONS)
    out = {key: node[key] for key in _COPIED if key in node}
    if node.get("x-kubernetes-int-or-string"):
        out["type"] = ["integer", "string"]
    form = node.get("format")
    if form in ("int32", "int64"):
        limit = 2 ** (31 if form == "int32" else 63)
        out["minimum"] = max(out.get("minimum", -limit), -limit)
        out["maximum"] = min(out.get("maximum", limit - 1), limit - 1)
    elif form:
        out["format"] = form
    if node.get("nullable"):
        out["type"] = [out["type"], "null"] if isinstance(out["type"], str) else [*out["type"], "null"]
    extra = node.get("additionalProperties")
    if "properties" in node:
        out["properties"] = {key: _strict(child, key, name) for key, child in node["properties"].items()}
    if isinstance(extra, Mapping):
        out["additionalProperties"] = _strict(extra, "", name)
    elif node.get("type") == "object" and extra is not True:
        # Also for an object without properties, such as `jax: {}`: a server prunes what is in it.
        out["additionalProperties"] = bool(node.get("x-kubernetes-preserve-unknown-fields"))
    if "items" in node:
        out["items"] = _strict(node["items"], "", name)
    return out


# Duplicate keys and CEL: the few nodes of a schema that have such a rule, as a tree.


@dataclass(slots=True)
class _Plan:
    properties: dict[str, _Plan] | None = None
    items: _Plan | None = None
    extra: _Plan | None = None
    keys: tuple[str, ...] | None = None  # () for a set
    defaults: tuple[Any, ...] = ()
    rules: tuple[tuple[str, str, cel.Predicate], ...] = ()


def _plan(node: Schema) -> _Plan | None:
    plan = _Plan()
    properties = {}
    for name, child in node.get("properties", {}).items():
        if (below := _plan(child)) is not None:
            properties[name] = below
    plan.properties = properties or None
    if isinstance(node.get("items"), Mapping):
        plan.items = _plan(node["items"])
    if isinstance(node.get("additionalProperties"), Mapping):
        plan.extra = _plan(node["additionalProperties"])
    if node.get("x-kubernetes-list-type") == "map":
        plan.keys = tuple(node["x-kubernetes-list-map-keys"])
        fields = node["items"].get("properties", {})
        plan.defaults = tuple(fields.get(key, {}).get("default") for key in plan.keys)
    elif node.get("x-kubernetes-list-type") == "set":
        plan.keys = ()
    plan.rules = tuple(
        (entry["rule"], entry.get("message", entry["rule"]), cel.RULES[entry["rule"]])
        for entry in node.get("x-kubernetes-validations", ())
        if entry["rule"] in cel.RULES
    )
    used = plan.properties or plan.items or plan.extra or plan.rules or plan.keys is not None
    return plan if used else None


def _walk(plan: _Plan, value: Any, path: Path, valid: bool, found: list[Violation]) -> None:
    if value is None:
        return
    if plan.rules:
        for rule, message, predicate in plan.rules:
            try:
                holds = bool(predicate(value))
            except (TypeError, KeyError, AttributeError, IndexError):
                # CEL treats an error as a refusal; if the structure is wrong, that was reported.
                holds = not valid or "self.metadata.name" in rule
            if not holds:
                at = (*path, "metadata", "name") if "self.metadata.name" in rule else path
                found.append(Violation(at, message, "cel"))
    if isinstance(value, Mapping):
        if plan.properties:
            for name, below in plan.properties.items():
                if name in value:
                    _walk(below, value[name], (*path, name), valid, found)
        if plan.extra:
            for name, item in value.items():
                _walk(plan.extra, item, (*path, name), valid, found)
    elif isinstance(value, list):
        if plan.keys is not None and len(value) > 1:
            _duplicates(plan, value, path, found)
        if plan.items:
            for index, item in enumerate(value):
                _walk(plan.items, item, (*path, index), valid, found)


def _duplicates(plan: _Plan, items: list[Any], path: Path, found: list[Violation]) -> None:
    seen: dict[Any, int] = {}
    for index, item in enumerate(items):
        key: Any = item
        if plan.keys:
            if not isinstance(item, Mapping):
                continue
            key = tuple(
                item.get(k) if item.get(k) is not None else d for k, d in zip(plan.keys, plan.defaults, strict=True)
            )
            if None in key:
                continue
        try:
            first = seen.setdefault(key, index)
        except TypeError:  # a wrong type, reported by the schema
            continue
        if first != index:
            named = ", ".join(f'{k} "{v}"' for k, v in zip(plan.keys or (), key, strict=False))
            at = (*path, index, plan.keys[0]) if plan.keys and len(plan.keys) == 1 else (*path, index)
            text = f"duplicate {named or item}: entry {first} of the list has it too"
            found.append(Violation(at, text, "duplicate"))
