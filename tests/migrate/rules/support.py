"""One job from a few keywords, one rule run alone on it, or the whole chain."""

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from trainjob.findings import Finding, Severity
from trainjob.kube import schema, yaml
from trainjob.kube.objectmeta import with_object_meta
from trainjob.migrate import check_v1, migrate_text
from trainjob.migrate.origin import MIGRATED_FROM, SOURCE_SHA256
from trainjob.migrate.rule import Draft, RefusedError, RoleDraft, Rule
from trainjob.targets import DEFAULT, Target
from trainjob.v1.normalise import normalise
from trainjob.v1.pytorchjob import PyTorchJob

Obj = dict[str, Any]
GPU = {"resources": {"limits": {"nvidia.com/gpu": 1}}}
SPECS = "spec.pytorchReplicaSpecs"
MASTER = f"{SPECS}.Master"
POD = f"{MASTER}.template.spec"
MAIN = f"{POD}.containers[0]"
WORKER = f"{SPECS}.Worker"
WORKER_POD = f"{WORKER}.template.spec"


def template(container: Obj | None = None, pod: Obj | None = None, pod_metadata: Obj | None = None) -> Obj:
    """A pod template with one training container."""
    main = {"name": "pytorch", "image": "reg.io/img:1", "command": ["python", "train.py"], **(container or {})}
    out: Obj = {"spec": {"containers": [{k: v for k, v in main.items() if v is not None}], **(pod or {})}}
    return {"metadata": pod_metadata, **out} if pod_metadata else out


def v1(
    container: Obj | None = None,
    pod: Obj | None = None,
    *,
    pod_metadata: Obj | None = None,
    role: Obj | None = None,
    master: bool = True,
    workers: int = 0,
    worker: Obj | None = None,
    metadata: Obj | None = None,
    spec: Obj | None = None,
    **top: Any,
) -> Obj:
    """A v1 job. `worker` overrides parts of the template (container, pod, pod_metadata) and `role` for the Workers."""
    parts = {"container": container, "pod": pod, "pod_metadata": pod_metadata}
    roles: Obj = {}
    if master:
        roles["Master"] = {"replicas": 1, "template": template(**parts), **(role or {})}
    if workers:
        own = dict(worker or {})
        own_role = own.pop("role", role) or {}
        roles["Worker"] = {"replicas": workers, "template": template(**{**parts, **own}), **own_role}
    return copy.deepcopy(
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "PyTorchJob",
            "metadata": {"name": "demo"} if metadata is None else metadata,
            "spec": {"pytorchReplicaSpecs": roles, **(spec or {})},
            **top,
        }
    )


@dataclass(frozen=True)
class Ran:
    """The draft after one rule, and what the rule said."""

    draft: Draft
    findings: list[Finding]

    @property
    def role(self) -> RoleDraft:
        return self.draft.roles[0]

    def says(self, severity: str, pattern: str, at: str | None = None) -> Finding:
        """The only finding that matches; `at` is its path."""
        return says(self.findings, severity, pattern, at)

    @property
    def summary(self) -> list[tuple[str, str]]:
        """(severity, path) of every finding, in order."""
        return [(f.severity.value, f.where.path if f.where else "") for f in self.findings]


def says(findings: Iterable[Finding], severity: str, pattern: str, at: str | None = None) -> Finding:
    """The only finding of a severity whose message or fix matches."""
    found = [f for f in findings if f.severity is Severity(severity) and re.search(pattern, f"{f.message}\n{f.fix}")]
    assert len(found) == 1, [f.text() for f in findings]
    if at is not None:
        assert found[0].where is not None
        assert found[0].where.path == at
    return found[0]


def _start(data: Obj, target: Target, scripts: Mapping[str, Mapping[str, str]]) -> tuple[PyTorchJob, Draft]:
    (doc,) = yaml.load(yaml.dump(data), "job.yaml")
    clean = normalise(doc.data, with_object_meta(schema.raw("PyTorchJob")), doc.source)
    assert not clean.wrong
    job = PyTorchJob.of(clean.data, doc.locate, scripts)
    draft = Draft(target, [])
    list(check_v1.roles_of(job, draft.roles, nameless=False))
    return dataclasses.replace(job, roles={d.replica.role: d.replica for d in draft.roles}), draft


def alone(
    rule: Rule,
    data: Obj,
    *,
    after: tuple[Rule, ...] = (),
    target: Target = DEFAULT,
    scripts: Mapping[str, Mapping[str, str]] | None = None,
) -> Ran:
    """Run one rule, after those that it builds on."""
    job, draft = _start(data, target, scripts or {})
    for each in after:
        list(each.apply(job, draft))
    findings = list(rule.apply(job, draft))
    assert all(f.code == rule.code for f in findings)
    assert all(f.where is not None and f.where.line > 0 and f.subject.startswith("PyTorchJob") for f in findings)
    return Ran(draft, findings)


def refusal(rule: Rule, data: Obj, *, after: tuple[Rule, ...] = (), target: Target = DEFAULT) -> Finding:
    """The error with which a rule refuses the job."""
    with pytest.raises(RefusedError) as caught:
        alone(rule, data, after=after, target=target)
    finding = caught.value.finding
    assert (finding.code, finding.severity) == (rule.code, Severity.ERROR)
    return finding


def noop(rule: Rule, data: Obj | None = None, *, after: tuple[Rule, ...] = ()) -> None:
    """The rule says nothing and changes nothing."""
    job, draft = _start(v1() if data is None else data, DEFAULT, {})
    for each in after:
        list(each.apply(job, draft))
    before = copy.deepcopy(dataclasses.asdict(draft))
    assert list(rule.apply(job, draft)) == []
    assert dataclasses.asdict(draft) == before


@dataclass(frozen=True)
class Chain:
    """The result of all rules: the objects that are written, and everything that was said."""

    job: Obj
    runtime: Obj | None
    findings: tuple[Finding, ...]

    @property
    def trainer(self) -> Obj:
        return self.job["spec"]["trainer"]

    @property
    def env(self) -> dict[str, Obj]:
        return {e["name"]: e for e in self.trainer.get("env", [])}

    @property
    def patch(self) -> Obj:
        """The pod template of the only runtime patch (Trainer 2.2 and later)."""
        (entry,) = self.job["spec"]["runtimePatches"]
        (replicated,) = entry["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
        return replicated["template"]["spec"]["template"]

    def batch(self, name: str = "node") -> Obj:
        """The Job spec of a replicatedJob of the generated runtime."""
        assert self.runtime is not None
        jobs = self.runtime["spec"]["template"]["spec"]["replicatedJobs"]
        return next(j for j in jobs if j["name"] == name)["template"]["spec"]

    def pod(self, name: str = "node") -> Obj:
        return self.batch(name)["template"]["spec"]

    def container(self, name: str = "node") -> Obj:
        return next(c for c in self.pod(name)["containers"] if c["name"] == "node")

    def says(self, code: str, severity: str, pattern: str) -> Finding:
        return says([f for f in self.findings if f.code == code], severity, pattern)


def chain(data: Obj, target: Target = DEFAULT) -> Chain:
    """Migrate the job with every rule; it must be converted."""
    result = migrate_text(yaml.dump(data), file="job.yaml", target=target)
    assert result.converted == 1, [f.text() for f in result.findings]
    objects = [doc.data for doc in yaml.load(result.text)]
    job = without_origin(objects[-1])
    return Chain(job, objects[0] if len(objects) > 1 else None, result.findings)


def without_origin(job: Obj) -> Obj:
    """A TrainJob without the annotations that name its source; tests/migrate/test_origin.py looks at those."""
    metadata = dict(job["metadata"])
    notes = metadata.pop("annotations")
    assert {MIGRATED_FROM, SOURCE_SHA256} <= notes.keys()
    rest = {k: v for k, v in notes.items() if k not in (MIGRATED_FROM, SOURCE_SHA256)}
    return {**job, "metadata": {**metadata, **({"annotations": rest} if rest else {})}}
