"""Checks of single objects and of streams in which runtimes stand beside the jobs that use them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, runtime_checkable

from trainjob.findings import Finding, Location
from trainjob.kube.schema import Path
from trainjob.targets import GROUP, Target
from trainjob.validate import empties, jobset, patches, pods, runtime, torchtune, trainjob
from trainjob.validate.case import Case, Checker, Locate, check_schema, path_only
from trainjob.validate.storage import KnownClaim, check_storage
from trainjob.validate.view import dig, mapping, text

# After the schema, in this order.
TRAINJOB_CHECKS: Final[tuple[Checker, ...]] = (
    trainjob.check_runtime_ref,
    trainjob.check_name,
    trainjob.check_trainer_present,
    trainjob.check_topology,
    trainjob.check_numbers,
    trainjob.check_processes,
    trainjob.check_env,
    trainjob.check_initializers,
    trainjob.check_trainer_reaches,
    trainjob.check_frameworks,
    torchtune.check_torchtune,
    empties.check_empties,
    patches.check_managers,
    patches.check_patch_names,
    patches.check_patch_env,
    patches.check_patched_once,
    patches.check_tolerations,
    pods.check_merged_pods,
    pods.check_alone,
)
RUNTIME_CHECKS: Final[tuple[Checker, ...]] = (
    runtime.check_metadata,
    runtime.check_policy,
    runtime.check_steps,
    runtime.check_overwritten,
    runtime.check_gang,
    runtime.check_sdk,
    jobset.check_restart,
    jobset.check_failure_policy,
    jobset.check_success_policy,
    jobset.check_depends_on,
    jobset.check_volume_claims,
    pods.check_runtime_pods,
)


_KINDS: Final = ("TrainJob", *trainjob.RUNTIME_KINDS)


def check_trainjob(
    obj: Mapping[str, Any],
    target: Target,
    runtime: Mapping[str, Any] | None = None,
    locate: Locate = path_only,
) -> list[Finding]:
    """What a server of this Trainer version refuses of a TrainJob, or would do unexpectedly.

    Without the runtime manifest that it refers to, only what needs none is checked.
    """
    return _run(TRAINJOB_CHECKS, Case(obj, "TrainJob", target, runtime, locate))


def check_runtime(obj: Mapping[str, Any], target: Target, locate: Locate = path_only) -> list[Finding]:
    """The same for a TrainingRuntime or ClusterTrainingRuntime, as `kind` says."""
    kind = "TrainingRuntime" if obj.get("kind") == "TrainingRuntime" else "ClusterTrainingRuntime"
    return _run(RUNTIME_CHECKS, Case(obj, kind, target, None, locate))


def check_job_storage(
    obj: Mapping[str, Any], target: Target, runtime: Mapping[str, Any] | None, claims: Iterable[KnownClaim]
) -> list[Finding]:
    """TJ580 to TJ584 of a valid TrainJob, where `claims` are all whose access mode the author knows."""
    # Only who checks an object without its file needs it, and it brings PyYAML.
    from trainjob.kube.yaml import dotted

    name = f"TrainJob/{text(dig(obj, 'metadata', 'name'))}"
    case = Case(obj, "TrainJob", target, runtime, lambda path: Location(name, path=dotted(path)))
    return list(check_storage(case, claims, complete=True))


def _run(checks: tuple[Checker, ...], case: Case) -> list[Finding]:
    out = list(check_schema(case))
    if case.plain:
        out += [finding for check in checks for finding in check(case)]
    return out


@runtime_checkable
class Source(Protocol):
    """A document that knows where its values stand, such as trainjob.kube.yaml.Document."""

    data: Any

    def locate(self, path: Path) -> Location: ...


@dataclass(frozen=True, slots=True)
class _Item:
    obj: Mapping[str, Any]
    kind: str
    locate: Locate

    @property
    def name(self) -> str:
        return text(dig(self.obj, "metadata", "name"))

    @property
    def namespace(self) -> str:
        return text(dig(self.obj, "metadata", "namespace"))


def check_documents(
    docs: Iterable[Source | Mapping[str, Any]],
    target: Target,
    catalogue: Mapping[str, Mapping[str, Any]] | None = None,
    claims: Iterable[KnownClaim] = (),
) -> list[Finding]:
    """Check every Trainer object of a stream; objects of other kinds are passed over.

    A runtimeRef is resolved in the stream first, then in `catalogue` (ClusterTrainingRuntime
    manifests by name). A `List` is opened. `claims` are PersistentVolumeClaims from elsewhere, beside
    those of the stream.
    """
    docs = list(docs)
    items = [item for doc in docs for item in _items(doc)]
    known_claims = (*claims, *claims_of(docs))
    out: list[Finding] = []
    for item in items:
        if item.kind == "TrainJob":
            case, known = _case(item, items, target, catalogue or {})
            out += _run(TRAINJOB_CHECKS, case)
            if case.plain:
                out += check_storage(case, known_claims)
            if not known:
                out.append(_not_found(case, items, catalogue or {}))
        else:
            out += _run(RUNTIME_CHECKS, Case(item.obj, item.kind, target, None, item.locate))
    return out


def train_jobs(
    docs: Iterable[Source | Mapping[str, Any]],
    target: Target,
    catalogue: Mapping[str, Mapping[str, Any]] | None = None,
) -> Iterator[Case]:
    """Every TrainJob of a stream with its runtime, found as `check_documents` finds it."""
    items = [item for doc in docs for item in _items(doc)]
    for item in items:
        if item.kind == "TrainJob":
            yield _case(item, items, target, catalogue or {})[0]


def _case(
    job: _Item, items: list[_Item], target: Target, catalogue: Mapping[str, Mapping[str, Any]]
) -> tuple[Case, bool]:
    """The job under check; False when its runtime was looked for and not found."""
    found, known = _resolve(job, items, catalogue)
    return Case(job.obj, "TrainJob", target, found, job.locate), known


def trainer_objects(doc: Source | Mapping[str, Any]) -> int:
    """How many objects of a document `check_documents` looks at."""
    return sum(1 for _ in _items(doc))


def claims_of(docs: Iterable[Source | Mapping[str, Any]]) -> tuple[KnownClaim, ...]:
    """The PersistentVolumeClaims of a stream."""
    found = (KnownClaim.read(obj, str(locate(()))) for doc in docs for obj, locate in _objects(doc))
    return tuple(claim for claim in found if claim is not None)


def _items(doc: Source | Mapping[str, Any]) -> Iterator[_Item]:
    for obj, locate in _objects(doc):
        kind = obj.get("kind")
        if kind in _KINDS and (obj.get("apiVersion") is None or text(obj["apiVersion"]).startswith(f"{GROUP}/")):
            yield _Item(obj, str(kind), locate)


def _objects(doc: Source | Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], Locate]]:
    if isinstance(doc, Mapping):
        yield from _open(doc, path_only)
    elif isinstance(doc.data, Mapping):
        yield from _open(doc.data, doc.locate)


def _open(obj: Mapping[str, Any], locate: Locate) -> Iterator[tuple[Mapping[str, Any], Locate]]:
    kind = obj.get("kind")
    items = obj.get("items")
    if isinstance(kind, str) and kind.endswith("List") and isinstance(items, list):
        for index, item in enumerate(items):
            if isinstance(item, Mapping):
                yield from _open(item, _inside(locate, ("items", index)))
    else:
        yield obj, locate


def _inside(locate: Locate, prefix: Path) -> Locate:
    return lambda path: locate((*prefix, *path))


def _resolve(
    job: _Item, items: list[_Item], catalogue: Mapping[str, Mapping[str, Any]]
) -> tuple[Mapping[str, Any] | None, bool]:
    """(runtime or None, True unless it was looked for and not found)"""
    group, kind, name = trainjob.runtime_ref(job.obj)
    if group != GROUP or kind not in trainjob.RUNTIME_KINDS or not name:
        return None, True
    for item in reversed(items):  # of two with one name the later one is applied last
        if (
            item.kind == kind
            and item.name == name
            and (kind == "ClusterTrainingRuntime" or _same_namespace(item.namespace, job.namespace))
        ):
            return item.obj, True
    if kind == "ClusterTrainingRuntime" and name in catalogue:
        return mapping(catalogue[name]), True
    return None, False


def _same_namespace(one: str, other: str) -> bool:
    """An object without namespace goes to the one of the command line, which may be the other's."""
    return not one or not other or one == other


def _not_found(case: Case, items: list[_Item], catalogue: Mapping[str, Mapping[str, Any]]) -> Finding:
    import difflib

    _, kind, name = trainjob.runtime_ref(case.obj)
    known = [item.name for item in items if item.kind == kind]
    if kind == "ClusterTrainingRuntime":
        known += list(catalogue)
    close = difflib.get_close_matches(name, known, 1, 0.7)
    return case.find(
        "TJ511", ("spec", "runtimeRef", "name"),
        f'{kind} "{name}" is neither in the input nor in the catalogue: checks that need it were left out',
        f'did you mean "{close[0]}"?' if close else "put the runtime beside the TrainJob to check both",
    )  # fmt: skip
