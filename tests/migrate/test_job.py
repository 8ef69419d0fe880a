"""One job through all rules: what is said about the input as a whole, and which runtime it gets."""

from __future__ import annotations

from typing import Any

import pytest

from tests.migrate.rules.support import GPU, chain, says, v1
from trainjob.kube import yaml
from trainjob.migrate import Migration, Options, migrate_text
from trainjob.targets import DEFAULT, TARGETS, Target, target


def run(data: Any, **options: Any) -> Migration:
    return migrate_text(yaml.dump(data), file="job.yaml", options=Options(**options))


def job(result: Migration) -> Any:
    return yaml.load(result.text)[-1].data


def test_unknown_fields_are_dropped_with_a_warning() -> None:
    """v1 ignored them; the place is named."""
    result = run(v1(spec={"cleanPodPolicy": "None"}))
    finding = says(result.findings, "warning", "'cleanPodPolicy' is no field of a v1 PyTorchJob here: v1 ignored it")
    assert (finding.code, result.converted) == ("TJ901", 1)


def test_wrong_types_are_errors() -> None:
    """All of them are told at once; nothing is converted."""
    data = v1({"command": "python t.py"}, {"hostNetwork": "yes"})
    result = run(data)
    errors = [(f.code, f.where.path) for f in result.findings if f.severity == "error" and f.where]
    assert [code for code, _ in errors] == ["TJ902", "TJ902"]
    assert {path.rsplit(".", 1)[-1] for _, path in errors} == {"command", "hostNetwork"}
    assert result.text == ""


def test_scalars_without_quotes_are_notes() -> None:
    """`4` for nprocPerNode, `on` for a label."""
    text = yaml.dump(v1({"command": ["torchrun", "t.py"], **GPU}, spec={"nprocPerNode": "NPROC"}))
    result = migrate_text(text.replace("NPROC", "4"))
    finding = says(result.findings, "note", "4 stands without quotes where text belongs; it is written as '4'")
    assert finding.code == "TJ903"
    assert job(result)["spec"]["trainer"]["numProcPerNode"] == 4


def test_placeholders_in_programs_are_kept_with_a_warning() -> None:
    """Without a shell nobody expands them; all others are errors then too."""
    data = v1({"command": ["python", "t.py", "$DATA"]})
    says(run(data).findings, "warning", r"\$DATA is kept as text")
    data["metadata"]["name"] = "${NAME}"
    result = run(data)
    assert [f.severity.value for f in result.findings] == ["error", "error"]
    assert result.exit_code == 2


def test_equal_roles_say_a_thing_once() -> None:
    """The first place is enough."""
    result = run(v1(workers=2, spec={"x": 1}, role={"imagePullPolicy": "Always"}))
    assert [f.where.path for f in result.findings if f.code == "TJ901" and f.where] == [
        "spec.pytorchReplicaSpecs.Master.imagePullPolicy",
        "spec.x",
    ]


def test_findings_name_their_job() -> None:
    """In a stream of many."""
    result = run(v1(metadata={"name": "a", "namespace": "n"}))
    assert {f.subject for f in result.findings} == {"PyTorchJob n/a"}


# --- the runtime ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("workers", "name", "told"), [(0, "torch-v1-compat", False), (1, "torch-v1-compat-multinode", True)]
)
def test_the_runtime_depends_on_the_nodes(workers: int, name: str, told: bool) -> None:
    """The one for several nodes has to be installed first: a note."""
    result = run(v1(GPU, workers=workers))
    assert job(result)["spec"]["runtimeRef"] == {
        "apiGroup": "trainer.kubeflow.org",
        "kind": "ClusterTrainingRuntime",
        "name": name,
    }
    assert ("TJ917" in [f.code for f in result.findings]) is told


def test_a_generated_runtime_needs_nothing_installed() -> None:
    """It is written beside the job, and named after what it is derived from."""
    result = run(v1({"workingDir": "/w"}, workers=1))
    ref = job(result)["spec"]["runtimeRef"]
    assert ref["kind"] == "TrainingRuntime"
    assert ref["name"].startswith("torch-v1-compat-")
    (told,) = [f for f in result.findings if f.code == "TJ917"]
    assert "installs" not in told.message
    assert "label namespace NAMESPACE trainjob.dev/multi-node=allowed" in told.fix, (
        "its two pods need an open namespace"
    )
    alone = run(v1({"workingDir": "/w"}, workers=0))
    assert "TJ917" not in [f.code for f in alone.findings]


def test_another_runtime_of_the_catalogue() -> None:
    """By name; what it merges is checked."""
    result = run(v1(GPU), runtime="torch-fsdp-1gpu")
    assert job(result)["spec"]["runtimeRef"]["name"] == "torch-fsdp-1gpu"


def test_a_foreign_runtime_cannot_be_checked() -> None:
    """A note; without a name of the job it is refused, since its env is unknown."""
    result = run(v1(GPU), runtime="acme-torch")
    assert job(result)["spec"]["runtimeRef"]["name"] == "acme-torch"
    assert says(result.findings, "note", "'acme-torch' is not in the catalogue").code == "TJ916"
    result = run(v1(GPU, metadata={"generateName": "d-"}), runtime="acme-torch")
    says(result.findings, "error", "'acme-torch' is not ours")
    assert result.text == ""


# --- the gate at the end -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (v1(spec={"nprocPerNode": "9999999999"}), r"the TrainJob would be refused \(TJ501\): must be at most"),
        (v1({"ports": [{"name": "x", "hostPort": 1}]}), r"the generated runtime would be refused \(TJ501\)"),
        (v1(pod={"initContainers": [{"name": "i", "image": "i", "env": [{"value": "x"}]}]}), 'missing field "name"'),
        (v1(metadata={"name": "demo", "labels": {"a b": "c"}}), "TJ501"),
        (v1({"volumeMounts": [{"name": "v", "mountPath": p} for p in ("/a", "/a")]},
            {"volumes": [{"name": "v", "emptyDir": {}}]}), "TJ503"),
    ],
)  # fmt: skip
def test_an_output_that_would_be_refused_is_an_error(data: Any, message: str) -> None:
    """Of the job or of its runtime: with the check's own words."""
    result = run(data)
    assert (result.converted, result.text, result.exit_code) == (0, "", 1)
    says([f for f in result.findings if f.code == "TJ915"], "error", message)


@pytest.mark.parametrize("each", TARGETS, ids=str)
def test_every_target_has_its_shape(each: Target) -> None:
    """One job with a patch, in each version's words; the default is the newest."""
    data = v1(GPU, {"nodeSelector": {"a": "b"}})
    result = chain(data, each)
    assert [key for key in result.job["spec"] if key in {t.patches for t in TARGETS}] == [each.patches]
    assert chain(data).job == chain(data, DEFAULT).job
    assert result.job["apiVersion"] == "trainer.kubeflow.org/v1alpha1"


def test_targets_by_alias() -> None:
    """What OpenShift AI calls them."""
    assert target("rhoai-3.5") is TARGETS[1]


@pytest.mark.parametrize("key", ["0", "01", "7"])
def test_keys_of_digits_are_places_too(key: str) -> None:
    """A label may be called so; a wrong value of it is told at its place."""
    result = run(v1(metadata={"name": "demo", "labels": {key: "not valid!"}}))
    says(result.findings, "error", rf'at metadata.labels\["{key}"\]')
