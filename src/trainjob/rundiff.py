"""What differs between two states of a runtime, and whom each difference reaches.

Objects are compared as the API server stores them: defaults of the CRD filled in, its own metadata
left out, lists of keyed things by key, quantities by amount. Whom a change reaches was tried on
Trainer 2.3.0 with JobSet 0.12.0 and Kueue 0.17.0 (tests/e2e/test_upgrade.py) and is read from the
CRD where it is a rule (`self == oldSelf`).
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from trainjob.kube import quantity
from trainjob.kube.schema import Schema, raw
from trainjob.targets import GROUP, TARGETS, Target

KINDS: Final = ("ClusterTrainingRuntime", "TrainingRuntime")
SUPPORT: Final = f"{GROUP}/support"
# Labels of the runtime that something reads: the webhook, the Python SDK.
_READ_LABELS: Final = frozenset({SUPPORT, f"{GROUP}/framework", f"{GROUP}/webhook-validation"})
# metav1.ObjectMeta fields that the server sets. `ownerReferences` belong to an operator.
_SERVER_METADATA: Final = frozenset(
    {"managedFields", "uid", "resourceVersion", "generation", "creationTimestamp", "selfLink",
     "deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences", "namespace", "name"}
)  # fmt: skip
_SERVER_ANNOTATIONS: Final = frozenset({"kubectl.kubernetes.io/last-applied-configuration"})
# Trainer 2.2 and older (kubeflow/trainer v2.2.0 pkg/constants/constants.go:293).
_SERVER_FINALIZERS: Final = frozenset({f"{GROUP}/resource-in-use"})
_JOBS: Final = ("spec", "template", "spec", "replicatedJobs")
# What Kueue compares (kueue v0.17.0 pkg/util/equality/podset.go, comparePodTemplate).
_COUNTED: Final = frozenset({"containers", "initContainers", "tolerations"})

Path = tuple[str, ...]


class Effect(StrEnum):
    """Whom a change reaches, worst first."""

    NEW_NAME = "new-name"
    STRANDS_JOBS = "strands-jobs"
    RUNNING_JOBS = "running-jobs"
    RESTARTS_QUEUED_JOBS = "restarts-queued-jobs"
    NEW_JOBS = "new-jobs"
    NO_JOB = "no-job"


MEANS: Final[Mapping[Effect, str]] = {
    Effect.NEW_NAME: "the API server refuses it in place (Value is immutable): give the runtime a new name",
    Effect.STRANDS_JOBS: "running jobs go on and restart as before, but every update of a job that names it is "
    "refused until it is back: a suspended or queued one cannot start",
    Effect.RUNNING_JOBS: "Trainer before 2.3 keeps no copy of a job's runtime: running jobs are rendered anew from it",
    Effect.RESTARTS_QUEUED_JOBS: "at the next event of a running job that Kueue admitted, Kueue stops it and starts it "
    "again, in its old form, and counts the new one; jobs without a queue see nothing",
    Effect.NEW_JOBS: "jobs created from then on see it, others do not",
    Effect.NO_JOB: "no job sees it",
}


@dataclass(frozen=True, slots=True)
class Change:
    """One difference. `op` is add, remove, replace or order; `path` has list entries as `[key]`."""

    path: Path
    op: str
    effect: Effect
    old: Any = None
    new: Any = None
    # The server will not let anybody change the field again.
    immutable: bool = False

    @property
    def where(self) -> str:
        """The path as text: `spec.template.spec.replicatedJobs[node].template`."""
        out = ""
        for part in self.path:
            if part.startswith("["):
                out += part
            elif re.fullmatch(r"[A-Za-z_$][\w$-]*", part):
                out += f".{part}" if out else part
            else:
                out += f'["{part}"]'
        return out

    def to_dict(self) -> dict[str, Any]:
        out: dict[str, Any] = {"path": self.where, "op": self.op, "effect": self.effect.value}
        if self.op != "add":
            out["old"] = self.old
        if self.op != "remove":
            out["new"] = self.new
        return out | ({"immutable": True} if self.immutable else {})


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs in one runtime. `status`: changed, added (only in the second), removed."""

    kind: str
    name: str
    status: str
    changes: tuple[Change, ...] = field(default=())
    effect: Effect = Effect.NO_JOB
    new_name: str = ""

    def to_dict(self) -> dict[str, Any]:
        out: dict[str, Any] = {"kind": self.kind, "name": self.name, "status": self.status, "effect": self.effect.value}
        if self.new_name:
            out["newName"] = self.new_name
        return out | {"changes": [c.to_dict() for c in self.changes]}


def differences(
    old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]], target: Target, *, common: bool = False
) -> Iterator[Difference]:
    """Every runtime that is not the same in both, in order of name.

    One runtime on each side is compared whatever it is called. `common`: leave out those that only
    one side has.
    """
    if len(old) == len(new) == 1 and (found := _changed(old[0], new[0], target)):
        yield found
        return
    if len(old) == len(new) == 1:
        return
    before, after = ({identity(o): o for o in side} for side in (old, new))
    for key in sorted(before.keys() | after.keys()):
        if key in before and key in after:
            if found := _changed(before[key], after[key], target):
                yield found
        elif not common:
            gone = key in before
            effect = Effect.STRANDS_JOBS if gone else Effect.NEW_JOBS
            yield Difference(*key, "removed" if gone else "added", effect=effect)


def identity(obj: Mapping[str, Any]) -> tuple[str, str]:
    """(kind, name) of a runtime."""
    return str(obj["kind"]), str(obj["metadata"]["name"])


def _changed(old: Mapping[str, Any], new: Mapping[str, Any], target: Target) -> Difference | None:
    (kind, name), (new_kind, new_name) = identity(old), identity(new)
    renamed = (kind, name) != (new_kind, new_name)
    schema = raw(new_kind, target)
    found = _compare(stored(old, target), stored(new, target), schema, (), False)
    changes = tuple(_with_effect(change, target, renamed) for change in found)
    if not changes and not renamed:
        return None
    effects = [c.effect for c in changes] or [Effect.NEW_JOBS if renamed else Effect.NO_JOB]
    worst = min(effects, key=list(Effect).index)
    other = "" if not renamed else new_name if new_kind == kind else f"{new_kind} {new_name}"
    return Difference(kind, name, "changed", changes, worst, other)


# --- as the server stores it ---------------------------------------------------------------------------


def stored(obj: Mapping[str, Any], target: Target) -> dict[str, Any]:
    """Labels, annotations and spec with the defaults of the CRD; without name and the server's own."""
    metadata = {k: copy.deepcopy(v) for k, v in obj.get("metadata", {}).items() if k not in _SERVER_METADATA}
    annotations = {k: v for k, v in (metadata.pop("annotations", None) or {}).items() if k not in _SERVER_ANNOTATIONS}
    finalizers = [f for f in metadata.pop("finalizers", None) or [] if f not in _SERVER_FINALIZERS]
    if annotations:
        metadata["annotations"] = annotations
    if finalizers:
        metadata["finalizers"] = finalizers
    schema = raw(str(obj["kind"]), target).get("properties", {}).get("spec", {})
    out = {"metadata": _without_nulls(metadata), "spec": _filled(obj.get("spec", {}), schema)}
    return {k: v for k, v in out.items() if v}


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _without_nulls(v) for k, v in value.items() if v is not None}
    return value


def _filled(value: Any, node: Any) -> Any:
    """A copy without nulls and with the schema's defaults."""
    node = node if isinstance(node, Mapping) else {}
    if isinstance(value, Mapping):
        known, extra = node.get("properties", {}), node.get("additionalProperties")
        out = {k: _filled(v, known.get(k, extra)) for k, v in value.items() if v is not None}
        for key, child in known.items():
            if key not in out and "default" in child:
                out[key] = _filled(copy.deepcopy(child["default"]), child)
        return out
    if isinstance(value, list):
        return [_filled(item, node.get("items")) for item in value]
    return value


# --- comparison ------------------------------------------------------------------------------------------


def _compare(old: Any, new: Any, node: Schema | None, path: Path, fixed: bool) -> Iterator[Change]:
    """`fixed`: the server refuses to change this value, since a rule on it or above it says so."""
    fixed = fixed or _is_fixed(node)
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted(old.keys() | new.keys()):
            yield from _entry(old, new, key, _child(node, key), (*path, key), fixed)
    elif isinstance(old, list) and isinstance(new, list) and (keys := _keys(node, old, new)):
        before, after = ({_key(item, keys): item for item in side} for side in (old, new))
        for key in [*before, *(k for k in after if k not in before)]:
            yield from _entry(before, after, key, _child(node, None), (*path, f"[{key}]"), fixed)
        kept, moved = ([k for k in side if k in before and k in after] for side in (before, after))
        if kept != moved:
            yield Change(path, "order", Effect.NO_JOB, kept, moved, fixed)
    elif not _same(old, new, path):
        yield Change(path, "replace", Effect.NO_JOB, old, new, fixed)


def _entry(
    old: Mapping[str, Any], new: Mapping[str, Any], key: str, node: Schema | None, path: Path, fixed: bool
) -> Iterator[Change]:
    if key not in new:
        # A rule on the field itself does not see that it comes or goes; one above does.
        yield Change(path, "remove", Effect.NO_JOB, old=old[key], immutable=fixed)
    elif key not in old:
        yield Change(path, "add", Effect.NO_JOB, new=new[key], immutable=fixed)
    else:
        yield from _compare(old[key], new[key], node, path, fixed)


def _is_fixed(node: Schema | None) -> bool:
    rules = node.get("x-kubernetes-validations", ()) if node else ()
    return any(str(rule.get("rule", "")).replace(" ", "") == "self==oldSelf" for rule in rules)


def _child(node: Schema | None, key: str | None) -> Schema | None:
    if node is None:
        return None
    found = node.get("items") if key is None else node.get("properties", {}).get(key, node.get("additionalProperties"))
    return found if isinstance(found, Mapping) else None


def _keys(node: Schema | None, *sides: list[Any]) -> tuple[str, ...]:
    """The fields that identify the entries, when they do so on both sides."""
    if not all(isinstance(item, Mapping) for side in sides for item in side):
        return ()
    told = tuple((node or {}).get("x-kubernetes-list-map-keys", ())) or ("name",)
    for keys in (told, ("name",), ("mountPath",)):
        if all(len({_key(i, keys) for i in s}) == len(s) and all(k in i for i in s for k in keys) for s in sides):
            return keys
    return ()


def _key(item: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    return "/".join(str(item.get(k, "")) for k in keys)


def _same(old: Any, new: Any, path: Path) -> bool:
    if old == new and isinstance(old, bool) == isinstance(new, bool):
        return True
    amount = len(path) > 1 and (path[-2] in ("requests", "limits") or path[-1] in ("sizeLimit", "storage"))
    try:
        return amount and quantity.parse(old) == quantity.parse(new)
    except ValueError:
        return False


# --- whom it reaches -----------------------------------------------------------------------------------


def _with_effect(change: Change, target: Target, renamed: bool) -> Change:
    effect = _effect(change, target)
    if renamed and effect is not Effect.NO_JOB:
        effect = Effect.NEW_JOBS
    return Change(change.path, change.op, effect, change.old, change.new, change.immutable)


def _effect(change: Change, target: Target) -> Effect:
    path = change.path
    if change.immutable:
        return Effect.NEW_NAME
    if path[0] == "metadata":
        return Effect.NEW_JOBS if _READ_LABELS & set(path) else Effect.NO_JOB
    if TARGETS.index(target) < TARGETS.index(_SNAPSHOT):
        return Effect.RUNNING_JOBS
    if path[:2] == ("spec", "mlPolicy"):
        # The number of pods, and variables that a plug-in writes into the containers.
        return Effect.RESTARTS_QUEUED_JOBS
    if path[: len(_JOBS)] == _JOBS and (len(path) <= len(_JOBS) + 1 or _COUNTED & set(path)):
        return Effect.RESTARTS_QUEUED_JOBS
    return Effect.NEW_JOBS


# kubeflow/trainer v2.3.0 pkg/runtime/core/snapshot.go; 2.2.0 has none.
_SNAPSHOT: Final = next(t for t in TARGETS if t.name == "2.3")
