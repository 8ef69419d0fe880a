"""One v1 job: normalise, check, rules, build, validate. Nothing here knows of files or streams."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from trainjob import emit
from trainjob.catalog import V1_COMPAT, V1_COMPAT_MULTINODE, Runtime, catalog
from trainjob.findings import Finding, Location, Severity
from trainjob.intent import Lifetime, PodParts, Policy, Program, Role, TrainingIntent
from trainjob.kube import schema
from trainjob.kube.objectmeta import with_object_meta
from trainjob.kube.yaml import Path
from trainjob.migrate import check_v1, codes, gitops, placeholders
from trainjob.migrate.fields import claim_tree
from trainjob.migrate.kinds.registry import rules_of
from trainjob.migrate.origin import FieldOrigin
from trainjob.migrate.rule import Draft, RefusedError, RoleDraft, Rule, Say
from trainjob.migrate.rules import RULES
from trainjob.targets import DEFAULT, Target
from trainjob.v1.kinds import PYTORCH, kind_of
from trainjob.v1.normalise import Normalised, normalise
from trainjob.v1.pytorchjob import API_VERSION, PyTorchJob
from trainjob.validate import check_runtime, check_trainjob

MANAGER: Final = "trainjob.dev/migrate"
_ROLE: Final = re.compile(r"(?<=ReplicaSpecs\.)\w+")


@dataclass(frozen=True, slots=True)
class Options:
    """How to migrate. `runtime`: name of another runtime for jobs that need none of their own."""

    target: Target = DEFAULT
    runtime: str | None = None
    # Trace each field of the output to the v1 fields that it came from: about twice the work.
    explain: bool = False
    # Argo CD applies the output: generated runtimes get a sync-wave before their jobs.
    argo: bool = False


@dataclass(slots=True)
class Source:
    """Where a job stands. Paths given to both functions start at the job's own root.

    `template`: the job is part of another object that names it, so it may have no name.
    """

    locate: Callable[[Path], Location]
    text: Callable[[Path], str | None]
    template: bool = False
    scripts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # Annotations that say where the job came from.
    origin: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JobResult:
    """`job` is None when the job is refused; the findings then hold an error."""

    job: emit.TrainJob | None
    findings: tuple[Finding, ...]
    nodes: int = 0
    fields: tuple[FieldOrigin, ...] = ()


def migrate_job(data: Mapping[str, Any], source: Source, options: Options) -> JobResult:
    """Turn one v1 object (as read) into a TrainJob, or refuse it with a reason."""
    findings: list[Finding] = []
    try:
        job = _read(data, source, findings)
        draft = Draft(options.target, [])
        findings.extend(check_v1.roles_of(job, draft.roles, nameless=source.template))
        job = replace(job, roles={d.replica.role: d.replica for d in draft.roles})
        rules = rules_for(job)
        _apply(job, draft, rules, findings)
        draft.annotations |= source.origin
        findings.extend(_unclaimed(job, rules))
        if any(f.severity is Severity.ERROR for f in findings):
            return JobResult(None, tuple(findings))
        runtime, notes = choose_runtime(job, draft, options)
        findings.extend(notes)
        built = emit.build(intent_of(draft), runtime, options.target, manager=MANAGER)
        built = gitops.ordered(built, argo=options.argo)
        findings.extend(_gate(job, built, runtime))
        findings.extend(_validate(job, built, runtime, options.target))
    except RefusedError as refused:
        findings.append(refused.finding)
        return JobResult(None, tuple(findings))
    failed = any(f.severity is Severity.ERROR for f in findings)
    return JobResult(None if failed else built, _once(findings), draft.nodes)


def _once(findings: list[Finding]) -> tuple[Finding, ...]:
    """Two equal roles say the same thing twice: the first place is enough."""
    seen: dict[tuple[str, str, str], Finding] = {}
    for finding in findings:
        path = finding.where.path if finding.where else ""
        seen.setdefault((finding.code, finding.message, _ROLE.sub("*", path)), finding)
    return tuple(seen.values())


@functools.cache
def _schema(kind: str) -> dict[str, Any]:
    return with_object_meta(schema.raw(kind, None))


def rules_for(job: PyTorchJob) -> tuple[Rule, ...]:
    """The rules that read this kind of job."""
    return RULES if job.kind is PYTORCH else rules_of(job.kind)


def _read(data: Mapping[str, Any], source: Source, findings: list[Finding]) -> PyTorchJob:
    """The v1 view of a clean copy, with findings for everything that the v1 server would change."""
    hard = _placeholders(data, source, findings)
    clean = clean_copy(data, source)
    job = PyTorchJob.of(clean.data or {}, source.locate, source.scripts)
    if hard:
        raise RefusedError(findings.pop())
    for path in clean.unknown:
        say = Say(codes.UNKNOWN_FIELD, job)
        findings.append(
            say.warning(
                path,
                f"{path[-1]!r} is no field of a v1 {job.kind.name} here: v1 ignored it, and it is not applied",
                "remove it, or move it where it belongs",
            )
        )
    for path, text in clean.unquoted:
        say = Say(codes.UNQUOTED, job)
        findings.append(say.note(path, f"{text} stands without quotes where text belongs; it is written as {text!r}"))
    errors = [
        Say(codes.WRONG_TYPE, job).error(path, f"expected {expected}, found {got}", "v1's API server refuses this too")
        for path, expected, got in clean.wrong
    ]
    if errors:
        findings.extend(errors[:-1])
        raise RefusedError(errors[-1])
    return job


def clean_copy(data: Mapping[str, Any], source: Source) -> Normalised:
    """The object as the v1 API server would have kept it."""
    return normalise(data, _schema(kind_of(data).name), source.text)


def _placeholders(data: Mapping[str, Any], source: Source, findings: list[Finding]) -> bool:
    """Report placeholders; True when one makes the job unreadable (then all of them are errors)."""
    found = placeholders.find(data)
    hard = any(p.hard for p in found)
    readable = data if isinstance(data.get("spec"), Mapping) else {"kind": data.get("kind")}
    subject = PyTorchJob.of(readable, source.locate).subject
    for p in found:
        where = source.locate(p.path)
        if hard:
            findings.append(placeholders.unfilled(p, where, subject))
        else:
            findings.append(
                Finding(
                    codes.PLACEHOLDER,
                    Severity.WARNING,
                    f"{p.text} is kept as text: without a shell Kubernetes does not expand it. Is it left from a "
                    "template?",
                    where,
                    "Kubernetes expands $(NAME); a shell needs `sh -c`",
                    subject,
                )
            )
    return hard


def _apply(job: PyTorchJob, draft: Draft, rules: tuple[Rule, ...], findings: list[Finding]) -> None:
    """Run the rules. A refusal ends the run of that job: what follows builds on what was refused."""
    for rule in rules:
        findings.extend(rule.apply(job, draft))


def _unclaimed(job: PyTorchJob, rules: tuple[Rule, ...]) -> Iterator[Finding]:
    say = Say(codes.UNCLAIMED, job)
    for path in claim_tree(rules).unclaimed(job.data):
        yield say.error(path, "no rule answers for this field, so it would be lost", "please report the field")


def intent_of(draft: Draft) -> TrainingIntent:
    """Freeze a draft."""
    roles = [_role(r) for r in draft.roles]
    return TrainingIntent(
        role=roles[0],
        worker=roles[1] if draft.two_roles else None,
        name=draft.name,
        generate_name=draft.generate_name,
        namespace=draft.namespace,
        labels=draft.labels,
        annotations=draft.annotations,
        procs_per_node=None if draft.two_roles and draft.policy is not Policy.MPI else draft.procs_per_node,
        lifetime=Lifetime(
            draft.failure, draft.backoff_limit, draft.active_deadline_seconds, draft.suspend, draft.managed_by
        ),
        env_targets=tuple(draft.env_targets),
        policy=draft.policy,
    )


def _role(draft: RoleDraft) -> Role:
    program = Program(
        draft.image,
        None if draft.command is None else tuple(draft.command),
        None if draft.args is None else tuple(draft.args),
        tuple(draft.env),
        draft.resources,
    )
    pod = PodParts(
        draft.labels,
        draft.annotations,
        draft.spec,
        draft.container,
        tuple(draft.init_containers),
        tuple(draft.sidecars),
    )
    return Role(draft.pods, program, pod, draft.failure)


def choose_runtime(job: PyTorchJob, draft: Draft, options: Options) -> tuple[Runtime, list[Finding]]:
    """The catalogue runtime that adds nothing to a v1 job, or the one asked for."""
    ours = catalog()[V1_COMPAT if draft.nodes == 1 else V1_COMPAT_MULTINODE]
    if options.runtime is not None and draft.policy is not Policy.TORCH:
        text = f"the runtime {options.runtime!r} is for PyTorchJobs; this {job.kind.name} gets one of its own"
        return ours, [Say(codes.FOREIGN_RUNTIME, job).note(("kind",), text)]
    if options.runtime is None:
        return ours, []
    if options.runtime in catalog():
        return catalog()[options.runtime], []
    say = Say(codes.FOREIGN_RUNTIME, job)
    if draft.name is None:
        raise say.refuse(
            ("metadata",),
            "a job without a fixed name takes its rank-0 address from the runtime's env; "
            f"{options.runtime!r} is not ours",
            f"use {ours.name}",
        )
    foreign = Runtime(options.runtime, "ClusterTrainingRuntime", ours.manifest, ours.file)
    note = say.note(
        (), f"the runtime {options.runtime!r} is not in the catalogue: what it adds to the job is not checked"
    )
    return foreign, [note]


def _gate(job: PyTorchJob, built: emit.TrainJob, runtime: Runtime) -> Iterator[Finding]:
    """The product's opinion on several nodes, and what a cluster with our overlays wants before it admits them."""
    several = built.manifest["spec"]["trainer"].get("numNodes", 1) > 1
    opened = f"oc label namespace {job.namespace or 'NAMESPACE'} trainjob.dev/multi-node=allowed"
    first = "see first whether one node with as many GPUs would do: it needs no network between ranks"
    if built.runtime is None and runtime.gated:
        yield Say(codes.GATED, job).note(
            job.kind.path,
            f"the TrainJob names {runtime.name}, which only the component multi-node installs",
            f"kustomize build overlays/prod-multi-node | oc apply -f -; {opened}; {first}",
        )
    elif several:
        yield Say(codes.GATED, job).note(
            job.kind.path,
            "several nodes: where the component multi-node-gate is installed, the namespace has to be open for them",
            f"{opened}; {first}",
        )


def _validate(job: PyTorchJob, built: emit.TrainJob, runtime: Runtime, target: Target) -> Iterator[Finding]:
    """The output against the CRD and webhooks of its target; only what would be refused is told."""
    live = built.runtime if built.runtime is not None else emit.for_target(runtime.manifest, target)
    manifest = built.manifest
    if "metadata" not in manifest or not {"name", "generateName"} & manifest["metadata"].keys():
        # Inside a template another object names the job later.
        manifest = {**manifest, "metadata": {"name": "template", **manifest.get("metadata", {})}}
    found = [("TrainJob", f) for f in check_trainjob(manifest, target, live)]
    if built.runtime is not None:
        found += [("generated runtime", f) for f in check_runtime(built.runtime, target)]
    for what, finding in found:
        if finding.severity is Severity.ERROR:
            path = finding.where.path if finding.where else ""
            yield Say(codes.INVALID_OUTPUT, job).error(
                (), f"the {what} would be refused ({finding.code}): {finding.message} at {path}", finding.fix
            )


__all__ = ["API_VERSION", "JobResult", "Options", "Source", "migrate_job"]
