"""Each field of the output names the v1 fields that it came from: all of them, and only those."""

from __future__ import annotations

import copy
import functools
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trainjob.emit import TrainJob
from trainjob.findings import Location
from trainjob.kube.yaml import dotted
from trainjob.migrate import migrate_text
from trainjob.migrate.document import Record
from trainjob.migrate.job import Options, Source, migrate_job
from trainjob.migrate.kinds.registry import KIND_RULES
from trainjob.migrate.origin import FieldOrigin, Kind
from trainjob.migrate.provenance import leaves, trace
from trainjob.migrate.rules import RULES
from trainjob.targets import TARGETS, Target

CASES = Path(__file__).parents[2] / "migration" / "cases"
INPUTS = sorted(CASES.glob("*/before.*"))
EXAMPLE = Path(__file__).parents[2] / "examples" / "pytorchjob.yaml"
CODES = {rule.code for rule in (*RULES, *KIND_RULES)}
Key = tuple[str, str]


def explained(path: Path, target: Target | None = None) -> list[Record]:
    options = Options(explain=True) if target is None else Options(target, explain=True)
    result = migrate_text(path.read_bytes(), file=path.name, options=options)
    return [record for record in result.records if record.job is not None]


def flat(job: TrainJob) -> dict[Key, Any]:
    """Every leaf of the objects, by object and path."""
    return {(str(o["kind"]), dotted(p)): value for o in job.objects() for p, value in leaves(o)}


def field(fields: tuple[FieldOrigin, ...], path: str) -> FieldOrigin:
    (found,) = [f for f in fields if f.path.endswith(path)]
    return found


@pytest.mark.parametrize("path", INPUTS, ids=lambda p: p.parent.name)
def test_every_leaf_of_the_output_has_an_origin(path: Path) -> None:
    for record in explained(path):
        assert record.job is not None
        fields = {(f.object, f.path): f for f in record.fields}
        assert len(fields) == len(record.fields), "a field is told twice"
        leaf = flat(record.job)
        assert fields.keys() == leaf.keys()
        for key, origin in fields.items():
            assert origin.value == leaf[key], key
            if origin.kind is Kind.V1:
                assert origin.sources, key
                assert origin.rules, key
            else:
                assert origin.note, key
            assert set(origin.rules) <= CODES, key


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_other_targets_are_explained_too(target: Target) -> None:
    for path in INPUTS:
        for record in explained(path, target):
            assert record.job is not None
            assert {(f.object, f.path) for f in record.fields} == flat(record.job).keys(), path


@pytest.mark.parametrize("path", INPUTS, ids=lambda p: p.parent.name)
def test_a_source_is_a_place_that_holds_a_value(path: Path) -> None:
    """A carried text stands, as it is, in the line that its origin names."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for record in explained(path):
        for f in record.fields:
            assert all(0 < source.line <= len(lines) for source in f.sources), f
            if f.path.endswith(".image") and f.kind is Kind.V1:
                assert any(str(f.value) in lines[source.line - 1] for source in f.sources), f


def test_tracing_changes_nothing() -> None:
    for path in INPUTS:
        plain = migrate_text(path.read_bytes(), file=path.name)
        traced = migrate_text(path.read_bytes(), file=path.name, options=Options(explain=True))
        assert (traced.text, traced.findings) == (plain.text, plain.findings)


# --- mutation --------------------------------------------------------------------------------------


def _place(path: Any) -> Location:
    return Location("job.yaml", 1, 1, dotted(path))


SOURCE = Source(_place, lambda _: None, template=True)
# Whether a job has one pod or several decides the runtime: another number leads to the same one.
THRESHOLDS = {("TrainJob", "spec.runtimeRef.name")}


def _other(value: Any) -> Any:
    """A value of the same form with another meaning."""
    if isinstance(value, int):
        return value + 1
    if value.isdigit():
        return str(int(value) + 1)
    return f"7{value}" if value[-2:] in ("Gi", "Mi") else f"{value}x"


def _set(data: Any, path: tuple[Any, ...], value: Any) -> None:
    for key in path[:-1]:
        data = data[key]
    data[path[-1]] = value


def _twin(path: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The same field of the other role: roles that differ are another kind of job."""
    other = {"Master": "Worker", "Worker": "Master"}.get(path[2]) if len(path) > 3 else None
    return None if other is None or path[-1] == "replicas" else (*path[:2], other, *path[3:])


def _mutations(data: Any) -> Iterator[tuple[set[str], Any]]:
    """Copies of a job with one field changed (in both roles): (paths changed, copy)."""
    there = dict(leaves(data))
    for path, value in there.items():
        fixed = path in (("apiVersion",), ("kind",)) or path[0] == "status"
        if fixed or isinstance(value, bool) or not isinstance(value, str | int) or value == "":
            continue
        if path[-1] == "replicas" and value == 0:
            continue  # a role that takes no part: with 1 it is another job
        copied = copy.deepcopy(data)
        twin = _twin(path)
        places = [path] + ([twin] if twin is not None and there.get(twin) == value else [])
        for place in places:
            _set(copied, place, _other(value))
        yield {dotted(place) for place in places}, copied


def _mutate(data: Any) -> tuple[int, list[str]]:
    """(number of fields changed, what did not fit) for one job."""
    base = migrate_job(data, SOURCE, Options())
    assert base.job is not None
    before = flat(base.job)
    named: defaultdict[str, set[Key]] = defaultdict(set)
    for f in trace(data, SOURCE, Options(), base.job):
        for source in f.sources:
            named[source.path].add((f.object, f.path))
    tried, wrong = 0, []
    for changed, mutated in _mutations(data):
        result = migrate_job(mutated, SOURCE, Options())
        after = flat(result.job) if result.job is not None else {}
        if after.keys() != before.keys():
            continue  # refused, or another shape: env, roles or a runtime of its own
        tried += 1
        moved = {key for key in after if after[key] != before[key]}
        wanted = {key for path in changed for key in named[path]}
        if moved - wanted:
            wrong.append(f"{sorted(changed)} changes {sorted(moved - wanted)}, which do not name it")
        if (wanted - moved) - THRESHOLDS:
            wrong.append(f"{sorted(changed)} is named by {sorted(wanted - moved)} and does not change it")
    return tried, wrong


JOBS = [
    (f"{path.parent.name}-{i}", record.data)
    for path in INPUTS
    for i, record in enumerate(migrate_text(path.read_bytes(), file=path.name).records)
    if record.job is not None
]


@functools.cache
def _mutated(index: int) -> tuple[int, list[str]]:
    return _mutate(JOBS[index][1])


@pytest.mark.parametrize("index", range(len(JOBS)), ids=[name for name, _ in JOBS])
def test_a_changed_v1_field_changes_what_names_it_and_nothing_else(index: int) -> None:
    tried, wrong = _mutated(index)
    assert not [w for w in wrong if not w.startswith(_LOOKED_UP)]
    assert tried


# The reference to a v1 pod label becomes one of two texts; a longer label name leads to none of them or the same.
_LOOKED_UP = (
    *(
        f"['spec.pytorchReplicaSpecs.{role}.template.spec.containers[1].env[0].valueFrom.fieldRef.fieldPath'"
        for role in ("Master", "Worker")
    ),
    "['spec.jaxReplicaSpecs.worker.template.spec.containers[0].env[2].valueFrom.fieldRef.fieldPath'",
)


def test_there_are_enough_mutations() -> None:
    assert sum(_mutated(i)[0] for i in range(len(JOBS))) > 1000


# --- single fields ---------------------------------------------------------------------------------


def test_what_rules_compute_names_all_it_was_computed_from() -> None:
    (record,) = explained(EXAMPLE)
    nodes = field(record.fields, "spec.trainer.numNodes")
    assert [s.path for s in nodes.sources] == [
        "spec.pytorchReplicaSpecs.Master.replicas",
        "spec.pytorchReplicaSpecs.Worker.replicas",
    ]
    assert nodes.rules == ("TJ101", "TJ102")
    address = next(f for f in record.fields if f.value == "llama-sft-node-0-0.llama-sft")
    assert ([s.path for s in address.sources], address.rules) == (["metadata.name"], ("TJ206",))
    ttl = field(record.fields, 'annotations["trainjob.dev/v1-ttl-seconds-after-finished"]')
    assert [(s.path, s.line) for s in ttl.sources] == [("spec.runPolicy.ttlSecondsAfterFinished", 13)]


def test_a_missing_number_of_replicas_is_a_source_too() -> None:
    text = EXAMPLE.read_text(encoding="utf-8").replace("      replicas: 1\n", "")
    nodes = field(migrate_text(text, options=Options(explain=True)).records[0].fields, "spec.trainer.numNodes")
    assert [(s.path, s.line) for s in nodes.sources] == [
        ("spec.pytorchReplicaSpecs.Master.replicas", 15),
        ("spec.pytorchReplicaSpecs.Worker.replicas", 44),
    ]


def test_two_programs_in_one_script_name_both() -> None:
    (record,) = explained(CASES / "19-double-dollar-args-differ" / "before.yaml")
    script = next(f for f in record.fields if "PET_NODE_RANK" in str(f.value))
    assert {s.path.split(".")[2] for s in script.sources} == {"Master", "Worker"}
    assert script.rules == ("TJ102", "TJ203")


def test_a_restart_policy_explains_the_runtime_that_it_needs() -> None:
    records = [r for p in INPUTS for r in explained(p) if "restartPolicy: Never" in r.text]
    (found,) = [f for f in records[0].fields if f.path.endswith("template.spec.backoffLimit")]
    assert found.rules == ("TJ401",)
    assert found.sources[0].path.endswith(".restartPolicy")


def test_an_empty_mapping_has_its_own_source() -> None:
    text = EXAMPLE.read_text(encoding="utf-8").replace("emptyDir: {medium: Memory, sizeLimit: 16Gi}", "emptyDir: {}")
    assert "emptyDir: {}" in text
    result = migrate_text(text, options=Options(explain=True))
    found = field(result.records[0].fields, "volumes[1].emptyDir")
    assert (found.value, found.kind) == ({}, Kind.V1)
    assert found.sources[0].path.endswith("Master.template.spec.volumes[1].emptyDir")


def test_what_the_catalogue_brings_names_the_runtime() -> None:
    records = [r for p in INPUTS for r in explained(p) if r.job is not None and r.job.runtime is not None]
    brought = [f for f in records[0].fields if f.kind is Kind.RUNTIME and f.object == "TrainingRuntime"]
    assert brought
    assert all(f.note.startswith("torch-v1-compat") for f in brought)


def test_the_name_of_a_generated_runtime_follows_its_content() -> None:
    records = [r for p in INPUTS for r in explained(p) if r.job is not None and r.job.runtime is not None]
    for record in records:
        names = [f for f in record.fields if f.kind is Kind.CONTENT]
        assert [(f.object, f.path) for f in names] == [
            ("TrainingRuntime", "metadata.name"),
            ("TrainJob", "spec.runtimeRef.name"),
        ]
        assert names[0].sources == names[1].sources


@pytest.mark.parametrize(
    ("annotation", "kind"), [("sync-wave: '3'", Kind.V1), ("sync-options: Prune=false", Kind.CONTRACT)]
)
def test_the_order_for_argo_cd_is_from_the_wave_of_the_job(annotation: str, kind: Kind) -> None:
    text = (CASES / "48-run-policy-exitcode" / "before.yaml").read_text(encoding="utf-8")
    name = next(line for line in text.splitlines() if line.startswith("  name:"))
    text = text.replace(name, f"{name}\n  annotations:\n    argocd.argoproj.io/{annotation}", 1)
    (record,) = migrate_text(text, options=Options(explain=True)).records
    wave = next(f for f in record.fields if f.object == "TrainingRuntime" and "sync-wave" in f.path)
    assert wave.kind is kind
    assert [s.path for s in wave.sources] == (
        ['metadata.annotations["argocd.argoproj.io/sync-wave"]'] if kind is Kind.V1 else []
    )
