"""What holds for every JAXJob, XGBoostJob and MPIJob: the jobs of the PyTorchJob strategies in other clothes."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.migrate.kinds.test_claims import lost
from tests.property.losses import objects
from tests.property.strategies import jobs
from trainjob.findings import Severity
from trainjob.kube import yaml
from trainjob.migrate import Migration, migrate_text
from trainjob.migrate.job import Options
from trainjob.report import footprint
from trainjob.targets import DEFAULT, TARGETS, Target
from trainjob.v1.kinds import JAX, MPI, PYTORCH, XGBOOST, Kind
from trainjob.validate import check_documents

Obj = dict[str, Any]
# How the roles of a PyTorchJob are called in each kind; a JAXJob takes the first of them.
ROLES = {"MPIJob": {"Master": "Launcher", "Worker": "Worker"}}


def dressed(job: Obj, kind: Kind) -> Obj:
    """The same pods as a job of another kind."""
    out: Obj = copy.deepcopy(job)
    out["kind"] = kind.name
    roles = out["spec"].pop(PYTORCH.specs)
    for field in ("nprocPerNode", "elasticPolicy"):
        out["spec"].pop(field, None)
    if kind is JAX:
        roles = {"Worker": next(iter(roles.values()))}
    else:
        roles.setdefault("Master", {**roles["Worker"], "replicas": 1} if "Worker" in roles else {})
        roles = {ROLES.get(kind.name, {}).get(key, key): roles[key] for key in sorted(roles)}
    for role in roles.values():
        for container in role["template"]["spec"]["containers"]:
            if container["name"] == PYTORCH.container:
                container["name"] = kind.container
        # v1 starts an MPIJob's ranks in the first container.
        role["template"]["spec"]["containers"].sort(key=lambda c: c["name"] != kind.container)
    out["spec"][kind.specs] = roles
    return out


@st.composite
def others(draw: st.DrawFn) -> tuple[Kind, Obj]:
    """A job of one of the kinds. The launcher of an MPIJob asks for no devices, or it would be refused for it."""
    kind = draw(st.sampled_from((JAX, XGBOOST, MPI)))
    job = dressed(draw(jobs()), kind)
    if kind is MPI:
        main = job["spec"][kind.specs]["Launcher"]["template"]["spec"]["containers"][0]
        main.pop("resources", None)
        main["command"] = ["mpirun", "-np", "2", "python", "train.py"]
        roles = job["spec"][kind.specs]
        if draw(st.integers(0, 3)):
            roles.setdefault("Worker", {**copy.deepcopy(roles["Launcher"]), "replicas": 2})
        worker = roles.get("Worker")
        if worker is not None and draw(st.integers(0, 3)):
            first = worker["template"]["spec"]["containers"][0]
            first.pop("args", None)
            first["command"] = ["sleep", "infinity"]
        if draw(st.booleans()):
            job["spec"]["slotsPerWorker"] = draw(st.integers(1, 8))
    return kind, job


def migrated(job: Obj, target: Target = DEFAULT, *, explain: bool = False) -> Migration:
    return migrate_text(json.dumps(job), file="job.json", options=Options(target, explain=explain))


@given(others(), st.sampled_from(TARGETS))
def test_converted_or_refused_with_a_reason(made: tuple[Kind, Obj], target: Target) -> None:
    """Never both, never neither, and never for a reason that is the migrator's own."""
    kind, job = made
    result = migrated(job, target)
    errors = [f for f in result.findings if f.severity is Severity.ERROR]
    assert (result.converted, result.refused) == ((0, 1) if errors else (1, 0))
    assert bool(result.text) == (not errors)
    assert not {"TJ900", "TJ901", "TJ902", "TJ915"} & {f.code for f in result.findings}, errors
    assert all(f.message and f.where and f.where.line for f in result.findings)
    if kind is not MPI and "jax" not in target.policies:
        assert [f.code for f in errors] == ["TJ110"]


@given(others())
def test_nothing_is_lost_without_a_finding(made: tuple[Kind, Obj]) -> None:
    """Each value of a converted job is in the output, or a finding names its place."""
    kind, job = made
    job["spec"].pop("slotsPerWorker", None)  # written under another name
    result = migrated(job)
    if result.converted:
        assert lost(kind, job, result) == []


@given(others(), st.sampled_from(TARGETS))
def test_pods_and_devices_are_kept_and_the_output_is_valid(made: tuple[Kind, Obj], target: Target) -> None:
    """As many pods and accelerators as v1 ran; nothing that the Trainer version would refuse."""
    _, job = made
    result = migrated(job, target)
    if not result.converted:
        return
    before, after = footprint.v1(job), footprint.v2(result.jobs[0])
    assert (before.pods, before.device_text) == (after.pods, after.device_text)
    found = check_documents(yaml.load(result.text), target, {})
    assert [f for f in found if f.severity is Severity.ERROR] == []


@given(others())
def test_stable_done_and_explained(made: tuple[Kind, Obj]) -> None:
    """A second run gives the same bytes; the output is migrated already; each field of it has an origin."""
    _, job = made
    result = migrated(job, explain=True)
    assert migrated(job).text == result.text
    if result.converted:
        assert migrate_text(result.text).text == result.text
        leaves = sum(1 for doc in objects(result) for _ in _leaves(doc))
        assert len(result.records[0].fields) == leaves
        assert all(f.sources or f.note for f in result.records[0].fields)


def _leaves(value: Any) -> Any:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    if not items:
        yield value
        return
    for item in items:
        yield from _leaves(item)
