"""What holds for every v1 job, realistic or broken."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.property.losses import lost, objects
from tests.property.strategies import broken, jobs, torn_texts
from trainjob import emit
from trainjob.catalog import catalog
from trainjob.findings import Severity
from trainjob.kube import quantity, yaml
from trainjob.migrate import Migration, migrate_text
from trainjob.targets import DEFAULT, TARGETS, Target
from trainjob.validate import check_documents

Obj = dict[str, Any]


def migrated(job: Obj, target: Target = DEFAULT) -> Migration:
    return migrate_text(json.dumps(job), file="job.json", target=target)


def split(result: Migration) -> tuple[Obj, Obj | None]:
    """(TrainJob, TrainingRuntime or None)"""
    found = objects(result)
    assert [o["kind"] for o in found] in (["TrainJob"], ["TrainingRuntime", "TrainJob"])
    return found[-1], found[0] if len(found) > 1 else None


# --- nothing is lost ---------------------------------------------------------------------------


@given(jobs(), st.sampled_from(TARGETS))
def test_nothing_is_lost_without_a_finding(job: Obj, target: Target) -> None:
    """Each value of a converted job is in the output, or a finding names its place."""
    result = migrated(job, target)
    if result.converted:
        assert lost(job, result) == []


@given(jobs(), st.sampled_from(TARGETS))
def test_a_job_is_converted_or_refused_with_a_reason(job: Obj, target: Target) -> None:
    """Never both, never neither; and no job fails for a reason that is the migrator's own."""
    result = migrated(job, target)
    errors = [f for f in result.findings if f.severity is Severity.ERROR]
    assert (result.converted, result.refused) == ((0, 1) if errors else (1, 0))
    assert bool(result.text) == (not errors)
    assert not {"TJ900", "TJ901", "TJ902", "TJ915"} & {f.code for f in result.findings}, errors
    assert all(f.message and f.where and f.where.line for f in result.findings)


# --- the same training -------------------------------------------------------------------------


def v1_devices(job: Obj) -> tuple[int, int]:
    """(pods, accelerators) that the v1 job asks for."""
    pods = devices = 0
    for role in job["spec"]["pytorchReplicaSpecs"].values():
        main = next(c for c in role["template"]["spec"]["containers"] if c["name"] == "pytorch")
        pods += role["replicas"]
        devices += role["replicas"] * int(sum(quantity.accelerators(main.get("resources", {})).values()))
    return pods, devices


def v2_devices(train_job: Obj, runtime: Obj | None) -> tuple[int, int]:
    """The same of a TrainJob with the runtime that was made for it."""
    trainer = train_job["spec"]["trainer"]
    parallel = (runtime or {}).get("spec", {}).get("template", {}).get("spec", {}).get("replicatedJobs", [])
    if len(parallel) < 2:
        each = int(sum(quantity.accelerators(trainer.get("resourcesPerNode", {})).values()))
        return trainer["numNodes"], trainer["numNodes"] * each
    pods = devices = 0
    for replicated in parallel:
        count = replicated.get("replicas", 1)
        containers = replicated["template"]["spec"]["template"]["spec"]["containers"]
        main = next(c for c in containers if c["name"] == "node")
        pods += count
        devices += count * int(sum(quantity.accelerators(main.get("resources", {})).values()))
    return pods, devices


def environments(train_job: Obj, runtime: Obj | None) -> list[dict[str, Obj]]:
    """The env of each kind of training container: that of the TrainJob, or of both jobs."""
    parallel = (runtime or {}).get("spec", {}).get("template", {}).get("spec", {}).get("replicatedJobs", [])
    lists = [train_job["spec"]["trainer"].get("env", [])]
    if len(parallel) == 2:
        lists = [
            next(c for c in r["template"]["spec"]["template"]["spec"]["containers"] if c["name"] == "node").get(
                "env", []
            )
            for r in parallel
        ]
    assert all(len({e["name"] for e in env}) == len(env) for env in lists)
    return [{e["name"]: e for e in env} for env in lists]


@given(jobs(), st.sampled_from(TARGETS))
def test_world_size_and_devices_are_kept(job: Obj, target: Target) -> None:
    """As many pods, as many accelerators, and v1's WORLD_SIZE wherever it is set."""
    result = migrated(job, target)
    if not result.converted:
        return
    train_job, runtime = split(result)
    assert v2_devices(train_job, runtime) == v1_devices(job)
    nproc = job["spec"].get("nprocPerNode", "auto")
    world = v1_devices(job)[0] * (int(nproc) if nproc.isdecimal() else 1)
    for env in environments(train_job, runtime):
        if "WORLD_SIZE" in env:
            assert env["WORLD_SIZE"] == {"name": "WORLD_SIZE", "value": str(world)}
        # Without a Master the v1 operator set neither, and a value of the user's own held.
        if "Master" in job["spec"]["pytorchReplicaSpecs"] and "MASTER_ADDR" in env:
            assert env["MASTER_ADDR"]["value"] == "demo-node-0-0.demo"
            assert env["RANK"]["valueFrom"]["fieldRef"]["fieldPath"].startswith("metadata.annotations['")


# --- valid, stable, done -----------------------------------------------------------------------


@given(jobs(), st.sampled_from(TARGETS))
def test_output_is_valid_for_its_target(job: Obj, target: Target) -> None:
    """Schema, webhooks and merged pods: nothing that the Trainer version would refuse."""
    result = migrated(job, target)
    runtimes = {name: emit.for_target(r.manifest, target) for name, r in catalog().items()}
    found = check_documents(yaml.load(result.text), target, runtimes)
    # A mount of another job's Kueue-wide empties never matters for acceptance: errors do.
    assert [f for f in found if f.severity is Severity.ERROR] == []
    assert "TJ521" not in {f.code for f in found}


@given(jobs())
def test_output_is_canonical_and_stable(job: Obj) -> None:
    """Reading and writing the output changes no byte; neither does a second run."""
    result = migrated(job)
    assert yaml.dump_all(objects(result)) == result.text
    again = migrated(job)
    assert (again.text, again.findings) == (result.text, result.findings)


@given(jobs(), st.sampled_from(TARGETS))
def test_migrating_the_output_changes_nothing(job: Obj, target: Target) -> None:
    """A migrated file is recognised, passes through byte for byte and ends with exit code 0."""
    result = migrated(job, target)
    if result.converted:
        again = migrate_text(result.text, target=target)
        assert again.text == result.text
        assert (again.converted, again.refused, again.exit_code) == (0, 0, 0)


@given(jobs())
def test_yaml_and_json_give_the_same(job: Obj) -> None:
    """The notation of the input does not matter."""
    as_yaml = migrate_text(yaml.dump(job), file="job.json").text
    assert _without_hash(as_yaml) == _without_hash(migrated(job).text)


def _without_hash(text: str) -> list[str]:
    """The lines without the hash of the source's bytes."""
    return [line for line in text.splitlines() if "trainjob.dev/source-sha256: " not in line]


# --- no exception ------------------------------------------------------------------------------


@given(broken(), st.sampled_from(TARGETS))
def test_broken_jobs_are_findings(job: Any, target: Target) -> None:
    """Whatever is deleted, replaced or inserted: findings, never an exception; output only without errors."""
    result = migrate_text(json.dumps(job), target=target)
    assert result.findings
    assert result.exit_code in (0, 1, 2)
    if any(f.unreadable for f in result.findings):
        assert result.text == ""
        assert result.exit_code == 2
    elif not result.converted:
        assert result.exit_code == (0 if result.text else 1)
    else:
        found = check_documents(yaml.load(result.text), target)
        assert [f for f in found if f.severity is Severity.ERROR] == []


@given(torn_texts())
def test_torn_manifests_are_findings(text: str) -> None:
    """A public manifest that an editor damaged: findings, never an exception; the same ones twice."""
    result = migrate_text(text, file="torn.yaml")
    assert result.findings
    assert result.exit_code == max(result.exit_code, 2 * any(f.unreadable for f in result.findings))
    assert migrate_text(text, file="torn.yaml").findings == result.findings
    if result.converted:
        assert not any(f.unreadable for f in result.findings)
        # A document without a job passes through, broken as it may be; each TrainJob can be read.
        written = [doc for doc in yaml.split(result.text) if "kind: TrainJob" in doc.text]
        assert sum("trainer.kubeflow.org/v1alpha1" in str(yaml.parse(doc).data) for doc in written) > 0


@given(st.one_of(st.text(), st.binary(), st.text(alphabet="kind: PyTorchJob\n-{}[]&*#|>'\"\t ")))
def test_garbage_is_a_finding(text: str | bytes) -> None:
    """Any text and any bytes: at least one finding, no output, no exception."""
    result = migrate_text(text)
    assert result.findings
    assert result.text == ""


@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.text()),
        lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(), inner, max_size=4)),
        max_leaves=12,
    )
)
def test_dump_and_load_are_inverse(value: Any) -> None:
    """Every text, number and nesting survives writing and reading, and the second writing is the first."""
    data = {"value": value}
    text = yaml.dump(data)
    (doc,) = yaml.load(text)
    assert doc.data == data
    assert yaml.dump(doc.data) == text
