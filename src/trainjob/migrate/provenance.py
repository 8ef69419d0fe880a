"""From which v1 field, and by which rule, each field of the output came.

Nothing here repeats what rules and emitter do: the same code runs once more on values that name
their source (v1/traced.py). After each rule the draft is compared with what it was, which gives the
rule; the emitter then carries the marked values to their places in the output.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from trainjob import emit
from trainjob.catalog import Runtime
from trainjob.intent import Failure, Policy
from trainjob.kube.yaml import Path, dotted
from trainjob.migrate import check_v1, gitops
from trainjob.migrate.fields import ClaimTree, claim_tree
from trainjob.migrate.job import MANAGER, Options, Source, choose_runtime, clean_copy, intent_of, rules_for
from trainjob.migrate.origin import MIGRATED_FROM, SOURCE_SHA256, FieldOrigin, Kind
from trainjob.migrate.rule import Draft
from trainjob.v1.kinds import kind_of, role_specs
from trainjob.v1.pytorchjob import PyTorchJob
from trainjob.v1.traced import Traced, mark, sources, wrap

_DRAFT: Final = (
    "name", "generate_name", "namespace", "labels", "annotations", "procs_per_node", "backoff_limit",
    "active_deadline_seconds", "suspend", "managed_by", "env_targets",
)  # fmt: skip
_ROLE: Final = (
    "pods", "image", "command", "args", "env", "resources", "labels", "annotations", "spec", "container",
    "init_containers", "sidecars",
)  # fmt: skip
# Fields that the emitter writes from `Lifetime.failure`, which is no value that could be carried.
_FAILURE: Final = ("restartPolicy", "backoffLimit", "podFailurePolicy")

# What the emitter writes for a decision of a rule: (part of the output's path, rule).
_CONSTANTS: Final = (("successPolicy", "TJ102"), ("containers", "TJ210"))
_MPI: Final = (("successPolicy", "TJ112"), ("dependsOn", "TJ217"), ("replicatedJobs", "TJ112"))


@dataclass(frozen=True, slots=True)
class _Written:
    """A leaf of the draft: the rules that wrote it, and the v1 fields that its value is from."""

    leaf: Any
    rules: tuple[str, ...]
    sources: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class _InRuntime:
    """A leaf that the catalogue's runtime brings."""

    path: Path


def trace(data: Mapping[str, Any], source: Source, options: Options, built: emit.TrainJob) -> tuple[FieldOrigin, ...]:
    """Every leaf of the objects that `migrate_job` made of `data`, with its origin."""
    clean = clean_copy(data, source).data
    job = PyTorchJob.of(_with_default_replicas(mark(clean)), source.locate, source.scripts)
    draft = Draft(options.target, [])
    list(check_v1.roles_of(job, draft.roles, nameless=source.template))
    job = replace(job, roles={d.replica.role: d.replica for d in draft.roles})
    written, failure = _run(job, draft)
    draft.annotations |= source.origin
    runtime, _ = choose_runtime(job, draft, options)
    _mark_draft(draft, written)
    marked = emit.build(intent_of(draft), _mark_runtime(runtime), options.target, manager=MANAGER)
    marked = gitops.ordered(marked, argo=options.argo)
    return tuple(_Resolver(job, clean, draft, runtime, failure).resolve(built, marked))


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every leaf with its path; an empty mapping or list is a leaf too."""
    items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list | tuple) else ()
    empty = True
    for key, item in items:
        empty = False
        yield from leaves(item, (*path, key))
    if empty:
        yield path, value


def _with_default_replicas(data: Any) -> Any:
    """A role without `replicas` has 1: the number then names the place where it is missing."""
    kind = kind_of(data)
    for key, spec in role_specs(data).items():
        if isinstance(spec, dict):
            count = kind.replicas(str(key).capitalize())
            spec.setdefault("replicas", wrap(count, ((*kind.path, key, "replicas"),)))
    return data


# --- rules ---------------------------------------------------------------------------------------


def _run(job: PyTorchJob, draft: Draft) -> tuple[dict[Path, _Written], _Written]:
    """Run all rules; per leaf of the draft who wrote it from what, and the same for `failure`."""
    rules = rules_for(job)
    claims = claim_tree(rules)
    state = {
        path: _Written(leaf, _claimed(claims, leaf, job.kind.path), sources(leaf)) for path, leaf in _leaves(draft)
    }
    born: dict[int, tuple[Any, str]] = {}
    known = {id(leaf) for leaf in _replica_leaves(draft)}
    failure = _Written(None, (), ())
    for rule in rules:
        was = _failures(draft)
        list(rule.apply(job, draft))
        state = dict(_after(draft, state, rule.code, born))
        for leaf in _replica_leaves(draft):
            if id(leaf) not in known:  # the rule rewrote what later rules read
                known.add(id(leaf))
                born[id(leaf)] = (leaf, rule.code)
        if _failures(draft) != was:
            policies = [(*r.path, "restartPolicy") for r in job.roles.values() if "restartPolicy" in r.data]
            # The kind's own default then: the place where it is missing.
            policies = policies or [(*r.path, "restartPolicy") for r in job.roles.values()]
            failure = _Written(None, (rule.code,), tuple(policies))
    return state, failure


def _failures(draft: Draft) -> list[Failure]:
    return [draft.failure, *(role.failure or Failure.RUNTIME for role in draft.roles)]


def _leaves(draft: Draft) -> Iterator[tuple[Path, Any]]:
    for name in _DRAFT:
        yield from leaves(getattr(draft, name), (name,))
    for i, role in enumerate(draft.roles):
        for name in _ROLE:
            yield from leaves(getattr(role, name), ("roles", i, name))


def _replica_leaves(draft: Draft) -> Iterator[Any]:
    for role in draft.roles:
        for _, leaf in leaves(role.replica.data):
            if isinstance(leaf, Traced):
                yield leaf


def _claimed(claims: ClaimTree, leaf: Any, roles: Path) -> tuple[str, ...]:
    """The rules that answer for the v1 fields of a value that was there before any rule."""
    found = (
        claims.find(tuple("*" if path[:i] == roles else "[]" if isinstance(p, int) else p for i, p in enumerate(path)))
        for path in sources(leaf)
    )
    return tuple(dict.fromkeys(entry[0].code for entry in found if entry is not None))


def _after(
    draft: Draft, before: Mapping[Path, _Written], code: str, born: Mapping[int, tuple[Any, str]]
) -> Iterator[tuple[Path, _Written]]:
    """The state after a rule. A leaf that only moved keeps its writers."""
    moved = {(id(w.leaf), path[-1]): w for path, w in before.items()}
    for path, leaf in _leaves(draft):
        old = before.get(path)
        if old is not None and old.leaf is leaf:
            yield path, old
            continue
        same = moved.get((id(leaf), path[-1])) if leaf not in (None, "", False) else None
        if same is not None and same.leaf is leaf:
            yield path, same
            continue
        writers = [born[id(leaf)][1]] if id(leaf) in born else []
        found = sources(leaf)
        if old is not None and old.leaf not in (None, False) and isinstance(leaf, str | int):
            writers += old.rules if set(found) & set(old.sources) else []
        yield path, _Written(leaf, tuple(dict.fromkeys([*writers, code])), found)


def _mark_draft(draft: Draft, written: Mapping[Path, _Written]) -> None:
    def note(path: Path, leaf: Any) -> Any:
        return written.get(path) or _Written(leaf, (), sources(leaf))

    for name in _DRAFT:
        setattr(draft, name, mark(getattr(draft, name), note, (name,)))
    for i, role in enumerate(draft.roles):
        for name in _ROLE:
            setattr(role, name, mark(getattr(role, name), note, ("roles", i, name)))


def _mark_runtime(runtime: Runtime) -> Runtime:
    manifest = mark(runtime.manifest, lambda path, _: _InRuntime(path))
    return replace(runtime, name=wrap(runtime.name, (_InRuntime(("metadata", "name")),)), manifest=manifest)


# --- output --------------------------------------------------------------------------------------


class _Resolver:
    """Looks each leaf of the real output up in the marked one."""

    def __init__(
        self, job: PyTorchJob, clean: Mapping[str, Any], draft: Draft, runtime: Runtime, failure: _Written
    ) -> None:
        self.job, self.clean, self.runtime, self.failure = job, clean, runtime, failure
        self.fails = any(f is not Failure.RUNTIME for f in _failures(draft))
        policy = {"mlPolicy": "TJ110", "labels": "TJ110"} if draft.policy is not Policy.TORCH else {}
        self.constants = (*policy.items(), *(_MPI if draft.policy is Policy.MPI else _CONSTANTS))
        # Equal roles are one pod template: what the Master says, the Worker says too.
        merged = len(job.roles) == 2 and not draft.two_roles
        self.twins = [r.path for r in job.roles.values()] if merged else []

    def resolve(self, built: emit.TrainJob, marked: emit.TrainJob) -> Iterator[FieldOrigin]:
        fields: list[FieldOrigin] = []
        if built.runtime is not None and marked.runtime is not None:
            fields = [
                self._field("TrainingRuntime", built.runtime, marked.runtime, p) for p, _ in leaves(built.runtime)
            ]
            content = tuple(dict.fromkeys(s for f in fields if f.path.startswith("spec") for s in f.sources))
            fields = [self._named(f, content) if f.path == "metadata.name" else f for f in fields]
            yield from fields
        else:
            content = ()
        for path, _ in leaves(built.manifest):
            found = self._field("TrainJob", built.manifest, marked.manifest, path)
            if path[:2] == ("spec", "runtimeRef") and built.runtime is not None:
                found = self._named(found, content)
            elif path[:2] == ("spec", "runtimeRef"):
                found = self._chosen(found)
            yield found

    def _named(self, found: FieldOrigin, content: tuple[Any, ...]) -> FieldOrigin:
        note = "a runtime of the job's own"
        if found.path.endswith("name"):
            note = "named by the content of the generated runtime's spec"
            return replace(found, kind=Kind.CONTENT, sources=content, rules=(), note=note)
        return replace(found, kind=Kind.CONTRACT, note=note)

    def _chosen(self, found: FieldOrigin) -> FieldOrigin:
        if not found.path.endswith(".name"):
            return found
        pods = tuple(self.job.locate((*r.path, "replicas")) for r in self.job.roles.values())
        return replace(
            found, kind=Kind.RUNTIME, rules=("TJ101",), sources=pods, note="the runtime for this number of pods"
        )

    def _field(self, what: str, real: Any, marked: Any, path: Path) -> FieldOrigin:
        value, at = _get(real, path), dotted(path)
        if path[-1] in (MIGRATED_FROM, SOURCE_SHA256):
            return FieldOrigin(what, at, value, Kind.ORIGIN, note="where this object came from")
        if path in (("apiVersion",), ("kind",)):
            return FieldOrigin(
                what,
                at,
                value,
                Kind.CONTRACT,
                ("TJ107",),
                (self.job.locate(path),),
                f"what {self.job.kind.one} becomes",
            )
        found = self._sources(marked, path, value)
        inherited = [s for s in found if isinstance(s, _InRuntime)]
        written = [s for s in found if isinstance(s, _Written)]
        paths = self._with_twins([p for w in written for p in w.sources])
        rules = tuple(dict.fromkeys(code for w in written for code in w.rules))
        if paths:
            return FieldOrigin(what, at, value, Kind.V1, rules, tuple(self.job.locate(p) for p in paths))
        if inherited and not written:
            return FieldOrigin(what, at, value, Kind.RUNTIME, note=f"{self.runtime.name} {dotted(inherited[0].path)}")
        if any(part in _FAILURE for part in path) and self.fails:
            places = tuple(self.job.locate(p) for p in self.failure.sources)
            return FieldOrigin(what, at, value, Kind.V1, self.failure.rules, places)
        if str(path[-1]).startswith("argocd.argoproj.io/"):
            return FieldOrigin(what, at, value, Kind.CONTRACT, rules, note="Argo CD applies the runtime before the job")
        rules = rules or tuple(code for part, code in self.constants if part in path)
        return FieldOrigin(what, at, value, Kind.CONTRACT, rules, note="set by the rule" if rules else "always so")

    def _sources(self, marked: Any, path: Path, value: Any) -> tuple[Any, ...]:
        node = _get(marked, path)
        if isinstance(node, Traced):
            return node.sources
        if value not in ({}, []):
            return ()
        # An empty mapping has nothing to carry a mark: its place follows from its neighbours.
        for depth in range(1, len(path)):
            around = _get(marked, path[:-depth])
            for at, leaf in leaves(around):
                if isinstance(leaf, Traced):
                    placed = self._beside(leaf.sources[0], at, path[-depth:])
                    if placed is not None:
                        return (placed,)
        return ()

    def _beside(self, source: Any, at: Path, wanted: Path) -> Any:
        """The mark of the field at `wanted`, told from that of a leaf at `at` of the same fragment."""
        if isinstance(source, _InRuntime):
            base = source.path[: len(source.path) - len(at)]
            known = _get(self.runtime.manifest, (*base, *wanted)) is not None
            return _InRuntime((*base, *wanted)) if known and source.path[len(base) :] == at else None
        for path in source.sources if isinstance(source, _Written) else ():
            base = path[: len(path) - len(at)]
            if path[len(base) :] == at and _get(self.clean, (*base, *wanted)) is not None:
                return replace(source, sources=((*base, *wanted),))
        return None

    def _with_twins(self, paths: list[Path]) -> list[Path]:
        out: dict[Path, None] = {}
        for path in paths:
            out[path] = None
            for role in self.twins:
                for other in self.twins:
                    if path[: len(role)] == role and role != other and path[-1] != "replicas":
                        twin = (*other, *path[len(role) :])
                        if _get(self.clean, twin) == _get(self.clean, path):
                            out[twin] = None
        return list(out)


def _get(data: Any, path: Path) -> Any:
    """The value at a path, or None."""
    for key in path:
        if isinstance(data, Mapping):
            data = data.get(key)
        elif isinstance(data, list | tuple) and isinstance(key, int) and key < len(data):
            data = data[key]
        else:
            return None
    return data
