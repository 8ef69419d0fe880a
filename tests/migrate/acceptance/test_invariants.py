"""What holds for every input of migration/cases, whatever its own row says."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from tests.migrate.acceptance.inputs import (
    ALL,
    CONVERTING,
    MAY_BE_REFUSED,
    REFUSED,
    RESERVED,
    UNREADABLE,
    prune,
    quantity,
    source,
    walk,
)
from tests.migrate.acceptance.oracle import (
    MANAGER,
    RANKS,
    OutputLoader,
    cases,
    migrate,
    result,
)

every = pytest.mark.parametrize("number", ALL)
converting = pytest.mark.parametrize("number", CONVERTING)


def own_objects(number: int) -> list[dict[str, Any]]:
    """The TrainJobs and generated runtimes of an output."""
    return [*result(number).jobs, *result(number).own_runtimes]


@every
def test_result_is_deterministic(number: int) -> None:
    """The same input gives the same bytes and the same findings, twice."""
    origin = source(number)
    again = migrate(origin.text, origin.file)
    first = result(number).migration
    assert again.text == first.text
    assert list(again.documents) == list(first.documents)
    assert again.findings == first.findings
    assert again.exit_code == first.exit_code


@pytest.mark.parametrize("number", [1, 36, 51])
def test_bytes_are_read_like_text(number: int) -> None:
    """An input given as bytes gives the same output."""
    origin = source(number)
    assert migrate(origin.path.read_bytes(), origin.file).text == result(number).text


@every
def test_findings_are_complete(number: int) -> None:
    """Each finding has a code and a message, and each error a file, a line and a field path."""
    got = result(number)
    for finding in got.migration.findings:
        assert re.fullmatch(r"TJ\d{3}", finding.code)
        assert str(finding.severity) in RANKS
        assert finding.message.strip()
        body = finding.to_dict()
        assert body["code"] == finding.code
        if str(finding.severity) == "error":
            assert finding.where is not None
            assert finding.where.file == got.source.file
            if number != 41:
                assert finding.where.line > 0
            if number not in {13, 35, 41, 51}:
                assert finding.where.path


@every
def test_exit_code_follows_from_the_findings(number: int) -> None:
    """2 for unreadable input, 1 for anything at or above a warning, else 0."""
    got = result(number)
    severities = {str(f.severity) for f in got.migration.findings}
    if number in UNREADABLE:
        assert got.migration.exit_code == 2
    elif number not in REFUSED | MAY_BE_REFUSED:
        assert got.migration.exit_code == (1 if severities & {"warning", "error"} else 0)
    if severities & {"warning", "error"}:
        assert got.migration.exit_code != 0


@every
def test_documents_make_up_the_text(number: int) -> None:
    """The list of documents and the output stream hold the same objects in the same order."""
    got = result(number)
    parsed = [d for t in got.migration.documents for d in yaml.load_all(t, Loader=OutputLoader) if d is not None]
    assert parsed == got.docs


@every
def test_converted_counts_the_train_jobs(number: int) -> None:
    """`converted` is the number of TrainJobs that came out; refused inputs give none."""
    got = result(number)
    assert got.migration.converted == len(got.jobs)
    if number in REFUSED:
        assert not got.jobs
    elif number not in MAY_BE_REFUSED:
        assert got.jobs


@converting
def test_second_migration_changes_nothing(number: int) -> None:
    """The output holds nothing to convert; refused jobs in it are refused again."""
    got = result(number)
    if not got.jobs:
        return
    again = migrate(got.text, got.source.file)
    assert again.converted == 0
    if number == 53:
        assert again.text in ("", got.text)
    else:
        assert again.text == got.text


@converting
def test_pods_and_accelerators_stay_equal(number: int) -> None:
    """Nodes times the accelerators of each equal v1's totals, role by role."""
    for got in cases(number):
        assert sum(role.pods for role in got.roles.values()) == got.v1.pods
        assert got.accelerators == got.v1.accelerators
        for v1_role in got.v1.roles.values():
            asked = got.role_for(v1_role.name).main.get("resources") or {}
            for part, wanted in (v1_role.main.get("resources") or {}).items():
                for key, value in wanted.items():
                    if quantity(value):
                        assert quantity(asked[part][key]) == quantity(value), (part, key)


@converting
def test_requests_stay_below_limits(number: int) -> None:
    """What a runtime adds to the job's own resources never makes the pod invalid."""
    for got in cases(number):
        for role in got.roles.values():
            asked = role.main.get("resources") or {}
            for key, limit in (asked.get("limits") or {}).items():
                request = (asked.get("requests") or {}).get(key, limit)
                assert quantity(request) <= quantity(limit), key


@converting
def test_train_job_has_no_zero_values(number: int) -> None:
    """Nothing empty, false or zero that Kueue's typed update would drop; `emptyDir: {}` may stay."""
    for job in result(number).jobs:
        assert prune(job) == job


@converting
def test_env_is_admitted(number: int) -> None:
    """No reserved name in trainer.env, no name twice, no apiVersion in a fieldRef."""
    for job in result(number).jobs:
        names = [entry["name"] for entry in job["spec"]["trainer"].get("env", [])]
        assert not RESERVED & set(names)
        for patch in job["spec"].get("runtimePatches", []):
            for node in walk(patch):
                if node.get("name") == "node" and "volumeMounts" in node:
                    mounted = [m["name"] for m in node["volumeMounts"]]
                    assert len(mounted) == len(set(mounted)), "the patch's mounts are keyed by name"
                assert not (node.get("name") == "node" and "env" in node), "env is forbidden there"
    for node in (n for o in own_objects(number) for n in walk(o)):
        if isinstance(node.get("env"), list):
            names = [entry["name"] for entry in node["env"]]
            assert len(names) == len(set(names))
        if isinstance(node.get("fieldRef"), dict):
            assert set(node["fieldRef"]) == {"fieldPath"}


@converting
def test_patches_have_one_manager(number: int) -> None:
    """All patches of a TrainJob are the migrator's own, in one entry."""
    for job in result(number).jobs:
        managers = [p["manager"] for p in job["spec"].get("runtimePatches", [])]
        assert managers in ([], [MANAGER])


@converting
def test_mounts_have_their_volumes(number: int) -> None:
    """Every volumeMount of every container names a volume of its pod."""
    for got in cases(number):
        for role in got.roles.values():
            for container in role.pod["containers"] + (role.pod.get("initContainers") or []):
                for mount in container.get("volumeMounts") or []:
                    assert mount["name"] in role.volume_names


@converting
def test_runtime_reference_resolves(number: int) -> None:
    """A generated runtime stands right before its TrainJob; any other is in the catalogue."""
    got = result(number)
    for one in cases(number):
        if one.runtime["kind"] == "ClusterTrainingRuntime":
            wanted = "torch-v1-compat" + ("-multinode" if one.v1.pods > 1 else "")
            assert one.runtime["metadata"]["name"] == wanted
            continue
        assert "runtimePatches" not in one.spec
        holder = next(i for i, o in enumerate(got.objects) if any(n is one.job for n in walk(o)))
        assert got.objects[holder - 1] is one.runtime
        job_namespace = (one.job.get("metadata") or {}).get("namespace")
        if number != 23:
            assert one.runtime["metadata"].get("namespace") == job_namespace


@converting
def test_generated_runtimes_are_well_formed(number: int) -> None:
    """Labels, policy, names and containers of a generated runtime are what Trainer requires."""
    for one in cases(number):
        if one.runtime["kind"] != "TrainingRuntime":
            continue
        metadata, spec = one.runtime["metadata"], one.runtime["spec"]
        assert metadata["labels"]["trainer.kubeflow.org/framework"] == "torch"
        assert "resource-in-use" not in str(metadata)
        assert spec["mlPolicy"]
        inner = spec["template"]["spec"]
        assert not {"ttlSecondsAfterFinished", "suspend", "managedBy"} & set(inner)
        assert "subdomain" not in (inner.get("network") or {})
        ancestors = []
        for job in inner["replicatedJobs"]:
            labels = (job["template"].get("metadata") or {}).get("labels") or {}
            ancestors += [job["name"]] * (labels.get("trainer.kubeflow.org/trainjob-ancestor-step") == "trainer")
            assert all(c.get("image") for c in job["template"]["spec"]["template"]["spec"]["containers"])
            if job["name"] == "node":
                assert job.get("replicas", 1) == 1
        assert ancestors == ["node"]


@converting
def test_names_fit(number: int) -> None:
    """A TrainJob's name leaves room for the names of its pods."""
    for one in cases(number):
        name = (one.job.get("metadata") or {}).get("name", "")
        assert len(name) <= 48


@converting
def test_nothing_of_v1_is_left(number: int) -> None:
    """No container called pytorch, no v1 label, no v1 restart and no TTL in what is written."""
    assert "ttlSecondsAfterFinished" not in result(number).text
    for one in own_objects(number):
        assert "training.kubeflow.org/" not in str(one)
        assert "pytorchReplicaSpecs" not in str(one)
        for node in walk(one):
            for container in node.get("containers") or []:
                assert container["name"] != "pytorch"
            assert node.get("restartPolicy") != "Always"
    for one in cases(number):
        assert one.trainer["numNodes"] >= 1


@pytest.mark.parametrize("number", [11, 14, 17, 21, 22])
def test_other_documents_keep_every_byte(number: int) -> None:
    """What is no PyTorchJob comes out as it went in, and in its place."""
    got = result(number)
    if got.jobs:
        got.passes_through()
        before = [d["kind"] for d in yaml.safe_load_all(got.source.text) if d]
        after = [kind for kind in got.kinds if kind != "TrainingRuntime"]
        assert after == ["TrainJob" if kind == "PyTorchJob" else kind for kind in before]
