"""The other kinds wherever a PyTorchJob may stand: the same finding, never silence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.migrate.cluster.fake_cluster import FakeCluster, running
from tests.migrate.kinds.support import Obj, jax, job, mpi, role, xgboost
from tests.migrate.tree.support import Tree
from trainjob.findings import Severity
from trainjob.kube import yaml
from trainjob.kustomize import Engine
from trainjob.migrate import Migration, migrate_text
from trainjob.migrate.cluster.client import Reader
from trainjob.migrate.cluster.inventory import take
from trainjob.migrate.job import Options
from trainjob.migrate.kinds.instead import INSTEAD, REASONS
from trainjob.migrate.tree import helm
from trainjob.v1.kinds import KINDS, MXNET, PADDLE, TENSORFLOW, kind_of, role_specs

TF = job(TENSORFLOW, {"Worker": role(TENSORFLOW, 2, {"name": "tensorflow"})}, metadata={"name": "tf"})
PADDLEJOB = job(PADDLE, {"Worker": role(PADDLE, 2, {"name": "paddle"})}, metadata={"name": "pd"})
MXJOB = job(MXNET, {"Worker": role(MXNET, 2, {"name": "mxnet"})}, metadata={"name": "mx"})
MPI_OPERATOR = {**mpi(), "apiVersion": "kubeflow.org/v2beta1"}
REFUSED = {"TFJob": TF, "PaddleJob": PADDLEJOB, "MXJob": MXJOB, "v2beta1": MPI_OPERATOR}
TAKEN = {"JAXJob": jax(), "XGBoostJob": xgboost(), "MPIJob": mpi()}


def appwrapper(inner: Obj) -> Obj:
    component = {"template": inner, "podSets": [{"replicas": 2, "path": "template.spec.x"}]}
    return {
        "apiVersion": "workload.codeflare.dev/v1beta2",
        "kind": "AppWrapper",
        "metadata": {"name": "w"},
        "spec": {"components": [component]},
    }


def katib(inner: Obj) -> Obj:
    nameless = {k: v for k, v in inner.items() if k != "metadata"}
    template = {"primaryContainerName": "x", "trialSpec": nameless}
    return {
        "apiVersion": "kubeflow.org/v1beta1",
        "kind": "Experiment",
        "metadata": {"name": "e"},
        "spec": {"trialTemplate": template},
    }


def configmap(inner: Obj) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c"},
        "data": {"job.json": json.dumps(inner), "job.yaml": yaml.dump(inner)},
    }


def listed(inner: Obj) -> Obj:
    return {"apiVersion": "v1", "kind": "List", "items": [inner]}


def cron(inner: Obj) -> Obj:
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "a"}, "spec": {"job": inner}}


HOLDERS = {"alone": dict, "list": listed, "appwrapper": appwrapper, "katib": katib, "configmap": configmap}


def codes(result: Migration) -> list[str]:
    return [f.code for f in result.findings if f.severity is Severity.ERROR]


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_runtime_is_refused_in_every_holder(name: str, holder: str) -> None:
    """An error with what to use instead; the document stays as it was, and the file gives no output."""
    result = migrate_text(yaml.dump(HOLDERS[holder](REFUSED[name])))
    times = 2 if holder == "configmap" else 1
    assert codes(result) == ["TJ918"] * times
    assert (result.converted, result.refused, result.text, result.exit_code) == (0, times, "", 1)
    key = "kubeflow.org/v2beta1" if name == "v2beta1" else name
    for found in result.findings:
        assert REASONS[key] in found.message
        assert found.fix == INSTEAD[key]
        assert found.where is not None
        assert found.where.line > 0


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("name", TAKEN)
def test_what_has_a_runtime_is_converted_in_every_holder(name: str, holder: str) -> None:
    """The job stands in its place as a TrainJob, its runtime beside it."""
    result = migrate_text(yaml.dump(HOLDERS[holder](TAKEN[name])))
    times = 2 if holder == "configmap" else 1
    assert codes(result) == []
    assert (result.converted, result.refused) == (times, 0)
    objects = [doc.data for doc in yaml.load(result.text)]
    assert [o["kind"] for o in objects].count("TrainingRuntime") == times
    assert f'kind: {name}"' not in result.text
    assert not any(kind_of(o).name == name for o in objects)
    if holder == "appwrapper":
        assert objects[-1]["spec"]["components"][0]["podSets"][0]["path"] == "template.spec.trainer"
    if holder == "katib":
        assert objects[-1]["spec"]["trialTemplate"]["trialSpec"]["kind"] == "TrainJob"
        assert objects[-1]["spec"]["trialTemplate"]["primaryContainerName"] == "node"


@pytest.mark.parametrize("name", [*REFUSED, *TAKEN])
def test_an_unknown_holder_is_refused_with_the_kind_in_its_message(name: str) -> None:
    """As for a PyTorchJob: TJ908."""
    inner = {**REFUSED, **TAKEN}[name]
    result = migrate_text(yaml.dump(cron(inner)))
    assert codes(result) == ["TJ908"]
    assert f"{kind_of(inner).one} stands inside a Workflow" in result.findings[0].message


def test_an_older_version_is_another_api() -> None:
    """v1beta2 of a TFJob, v1alpha2 of an MPIJob: not the v1 that is read here."""
    for inner, version in ((TF, "kubeflow.org/v1beta2"), (mpi(), "kubeflow.org/v1alpha2")):
        result = migrate_text(yaml.dump({**inner, "apiVersion": version}))
        assert codes(result) == ["TJ907"]


def test_a_converted_and_a_refused_kind_side_by_side() -> None:
    """The refused document stays byte for byte."""
    tf = "# kept\n" + yaml.dump(TF)
    result = migrate_text(f"{tf}---\n{yaml.dump(jax())}")
    assert (result.converted, result.refused, codes(result)) == (1, 1, ["TJ918"])
    assert result.text.startswith(tf)


@pytest.mark.parametrize("indent", ["", "  "])
def test_the_text_of_an_item_ends_before_the_next_one(indent: str) -> None:
    """A report shows each job's own lines, however deep the items of the list stand."""
    texts = [yaml.dump(data) for data in (jax(), xgboost())]
    items = "".join(f"{indent}- " + f"\n{indent}  ".join(text.splitlines()) + "\n" for text in texts)
    result = migrate_text(f"apiVersion: v1\nkind: List\nitems:\n{items}")
    assert [r.text for r in result.records] == texts


def test_reports_count_their_pods() -> None:
    """Before and after: launcher and Workers, Master and Workers; the devices too."""
    from trainjob.report import footprint

    gpu: Obj = {"resources": {"limits": {"nvidia.com/gpu": 4}}}
    cpu: Obj = {"resources": {"limits": {"cpu": "1"}}}
    for data, pods, gpus in ((jax(gpu, replicas=3), 3, 12), (xgboost(gpu), 3, 12), (mpi(cpu, gpu, workers=3), 4, 12)):
        result = migrate_text(yaml.dump(data))
        before, after = footprint.v1(data), footprint.v2(result.jobs[0])
        assert (before.pods, after.pods) == (pods, pods)
        assert before.device_text == after.device_text == f"{gpus} nvidia.com/gpu"


@pytest.mark.kubectl
def test_a_kustomize_overlay_of_a_jaxjob(tmp_path: Path, newest_engine: Engine) -> None:
    """Rendered before and migrated is what the migrated tree renders."""
    base = {"base/kustomization.yaml": "resources:\n- job.yaml\n", "base/job.yaml": yaml.dump(jax())}
    patch = "- {op: replace, path: /spec/jaxReplicaSpecs/Worker/replicas, value: 5}"
    overlay = f"resources:\n- ../base\npatches:\n- target: {{kind: JAXJob, name: demo}}\n  patch: |-\n    {patch}\n"
    tree = Tree(tmp_path, newest_engine).write({**base, "prod/kustomization.yaml": overlay})
    tree.check("prod")
    rendered = yaml.load(tree.render("prod"))
    (made,) = [d.data for d in rendered if d.data["kind"] == "TrainJob"]
    assert made["spec"]["trainer"]["numNodes"] == 5
    env = {e["name"]: e.get("value") for e in made["spec"]["trainer"]["env"]}
    assert env["NUM_PROCESSES"] == "5"


@pytest.mark.kubectl
def test_a_tfjob_does_not_hold_up_its_tree(tmp_path: Path, newest_engine: Engine) -> None:
    """It stays in the base, with its patches, beside the migrated jobs; its error is told."""
    files = {"base/kustomization.yaml": "resources:\n- job.yaml\n- tf.yaml\n", "base/job.yaml": yaml.dump(jax())}
    five = "    - {{op: replace, path: /spec/{}/Worker/replicas, value: 5}}\n"
    patches = "".join(
        f"- target: {{kind: {kind}}}\n  patch: |-\n{five.format(specs)}"
        for kind, specs in (("JAXJob", "jaxReplicaSpecs"), ("TFJob", "tfReplicaSpecs"))
    )
    overlay = f"resources:\n- ../base\npatches:\n{patches}"
    tree = Tree(tmp_path, newest_engine)
    tree.write({**files, "base/tf.yaml": yaml.dump(TF), "prod/kustomization.yaml": overlay})
    tree.check("prod")
    made = {d.data["kind"]: d.data for d in yaml.load(tree.render("prod"))}
    assert made["TFJob"]["spec"]["tfReplicaSpecs"]["Worker"]["replicas"] == 5
    assert made["TrainJob"]["spec"]["trainer"]["numNodes"] == 5
    assert "kind: TFJob" in (tmp_path / "prod/kustomization.yaml").read_text(encoding="utf-8")


def test_helm_templates_are_told_what_to_write() -> None:
    """Per field of the kind's own, what it becomes; the roles under the kind's own name."""
    found = {".".join(map(str, path)): becomes for path, becomes in helm._units(mpi(spec={"slotsPerWorker": 2}))}
    assert found["spec.slotsPerWorker"] == "`spec.trainer.numProcPerNode`"
    assert found["spec.mpiReplicaSpecs.Worker.replicas"] == "`spec.trainer.numNodes`"
    assert found["spec.mpiReplicaSpecs"].startswith("`spec.trainer`")
    assert found["spec.mpiReplicaSpecs.Launcher.template.spec.containers.0.image"] == "`spec.trainer.image`"
    assert "spec.pytorchReplicaSpecs" not in found


def test_the_inventory_lists_them(tmp_path: Path) -> None:
    """Each with its kind; a kind without a runtime is blocked, and its finding is shown."""
    fake = FakeCluster()
    for data in (jax(), mpi(), TF, PADDLEJOB, {**MPI_OPERATOR, "metadata": {"name": "op"}}):
        fake.add({**data, "metadata": {**data["metadata"], "namespace": "nlp"}})
    with running(fake):
        cluster = Reader.connect(fake.kubeconfig(tmp_path))
        found = take(cluster, cluster, "nlp", Options())
    shown = {j.shown: j.verdict for j in found.jobs}
    assert shown == {
        "JAXJob/demo": "ready",
        "MPIJob/demo": "look",
        "MPIJob/op": "blocked",
        "PaddleJob/pd": "blocked",
        "TFJob/tf": "blocked",
    }
    assert [f.code for f in found.findings].count("TJ918") == 3
    assert {j.kind: j.pods for j in found.jobs if j.name == "demo"} == {"JAXJob": 2, "MPIJob": 3}


def test_role_specs_of_anything() -> None:
    """What is no such object has no roles."""
    assert [role_specs(x) for x in (None, [], {"kind": "MPIJob"}, {"spec": []}, {"spec": {"mpiReplicaSpecs": 3}})] == [
        {}
    ] * 5
    assert set(KINDS) == {"PyTorchJob", "MPIJob", "TFJob", "XGBoostJob", "JAXJob", "PaddleJob", "MXJob"}
