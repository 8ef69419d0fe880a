"""Three locks keep jobs on one node until several are planned: each holds alone, and all open lets them run."""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import gate
from tests.e2e.kube import Kubectl, KubectlError
from tests.e2e.test_admission import running_target
from tests.e2e.test_story import queue
from tests.e2e.test_training import small
from trainjob import kustomize
from trainjob.builder import MULTI_NODE_REASON, BuildError, train_job
from trainjob.kube.yaml import dump_all, load
from trainjob.migrate import migrate_text

__all__ = ["queue"]

pytestmark = pytest.mark.gate
Seen = Callable[[str], None]
TEAM = {"kind": "TrainingRuntime"}


@pytest.fixture(scope="module", autouse=True)
def installed(cluster: Kubectl) -> None:
    """What prod-multi-node installs: both gated runtimes and the gate."""
    gate.install(cluster)


@pytest.fixture
def closed(kubectl: Kubectl) -> Kubectl:
    """A namespace as every team has one: without the label."""
    gate.close(kubectl)
    return kubectl


@pytest.fixture
def opened(kubectl: Kubectl) -> Kubectl:
    gate.open_up(kubectl)
    return kubectl


def refusal(kubectl: Kubectl, *objects: dict[str, Any]) -> str:
    """What the gate says to a real `kubectl apply` of these; it must refuse the last of them."""
    if objects[:-1]:
        kubectl.apply(objects[:-1])
    with pytest.raises(KubectlError) as refused:
        kubectl.apply([objects[-1]])
    said = str(refused.value)
    assert all(text in said for text in gate.ADVICE), said
    name = objects[-1]["metadata"]["name"]
    assert kubectl.run("get", objects[-1]["kind"], name, "--ignore-not-found") == ""
    return said


# --- lock (a): kustomize ---------------------------------------------------------------------------------


@pytest.mark.ci
def test_without_the_component_there_is_no_runtime(kubectl: Kubectl, cluster: Kubectl, seen: Seen) -> None:
    """Lock 1 alone, with the gate off and the namespace open: prod installs no runtime of several nodes, so
    the webhooks refuse the job."""
    with gate.without_gate(cluster):
        cluster.run("delete", "clustertrainingruntime", *gate.GATED)
        cluster.apply([obj for obj in gate.overlay("kind") if not gate.is_gate(obj)])
        said = kubectl.dry_run(dump_all([gate.job("two", gate.MULTI, 2)]))
        assert re.search(f"['\"]{gate.MULTI}['\"] not found", said), said  # Kueue's webhook or Trainer's, as they come
        # Only the gate is off: a single-node runtime would take two nodes.
        assert kubectl.dry_run(dump_all([gate.job("two", "torch-fsdp-cpu", 2)])) == ""
    seen(said.rpartition("denied the request: ")[2].replace("|", "/")[:200])


# --- lock (b): admission ---------------------------------------------------------------------------------


@pytest.mark.ci
def test_a_closed_namespace_gets_one_node(closed: Kubectl, seen: Seen) -> None:
    """Lock 2 alone, with the runtimes installed: two nodes are refused as a dry run, for real, suspended, with
    a queue label and by the runtime's own number, with what to do; one node is accepted."""
    label = f"kubectl label namespace {closed.namespace} trainjob.dev/multi-node=allowed"
    queued = gate.job("queued", gate.MULTI, 2, suspend=True)
    queued["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "team"}
    jobs = [
        gate.job("two", gate.MULTI, 2),
        gate.job("suspended", gate.MULTI, 2, suspend=True),
        queued,
        gate.job("unnamed", gate.MULTI),
        gate.job("one", gate.MULTI, 1),
        gate.job("migrated", "torch-v1-compat-multinode", 3),
    ]
    for each in jobs:
        assert all(text in closed.dry_run(dump_all([each])) for text in gate.ADVICE), each
        said = refusal(closed, each)
        assert f"TrainJob {each['metadata']['name']} asks for {each['spec']['trainer'].get('numNodes', 2)} node" in said
        assert "is not open for several" in said
        assert label in said
    for each in ("torch-fsdp-cpu", "torch-fsdp-8gpu", "torch-v1-compat"):
        said = refusal(closed, gate.job("two", each, 2))
        assert f"asks for 2 nodes, and runtime {each} is for one" in said
        assert closed.dry_run(dump_all([gate.job("one", each, 1), gate.job("bare", each)])) == ""
    seen(f"{len(jobs) + 3} jobs refused")


@pytest.mark.ci
def test_single_node_runtimes_stay_so_in_an_open_namespace(opened: Kubectl) -> None:
    """The label opens the multi-node runtimes; a single-node runtime never gets two nodes."""
    assert "is for one. Plan first" in refusal(opened, gate.job("two", "torch-fsdp-8gpu", 2))
    assert opened.dry_run(dump_all([gate.job("two", gate.MULTI, 2)])) == ""


@pytest.mark.ci
def test_a_runtime_of_ones_own_is_no_way_round(closed: Kubectl, seen: Seen) -> None:
    """A TrainingRuntime in the namespace gets through only with one node: numNodes, replicas, parallelism and
    jobs beside the trainer count, also when runtime and job come in one file."""
    refused, fine = [], set()
    for team, asked in gate.SHAPES:
        name = team["metadata"]["name"]
        own = gate.counted(closed.dry_run(dump_all([team])))
        if own > 1:
            assert f"TrainingRuntime {name} asks for {own} nodes" in refusal(closed, team)
            refused.append(name)
        elif asked and asked > 1:
            # The API server may not have seen the runtime yet: the job's own number is enough.
            said = refusal(closed, team, gate.job(f"j-{name}", name, asked, **TEAM))
            assert f"on TrainingRuntime {name}, and namespace" in said
            refused.append(f"job of {name}")
        else:
            fine.add(name)
    assert fine == {"one", "overwritten", "initializer", "mpi-launcher"}
    closed.apply([gate.runtime("grows", {"numNodes": 1, "torch": {}})])
    grow = ("patch", "trainingruntime", "grows", "--type=merge", "-p")
    assert "asks for 8 nodes" in closed.run(*grow, '{"spec": {"mlPolicy": {"numNodes": 8}}}', check=False)
    closed.run(*grow, '{"metadata": {"labels": {"team": "a"}}}')
    seen(f"{len(refused)} ways refused")


@pytest.mark.full
def test_the_gate_counts_as_trainer_does(opened: Kubectl, seen: Seen) -> None:
    """Of 20 shapes of runtimes and jobs the gate knows as many nodes as Trainer's JobSet has pods that train."""
    opened.apply([team for team, _ in gate.SHAPES])
    jobs = [gate.job(t["metadata"]["name"], t["metadata"]["name"], n, **TEAM) for t, n in gate.SHAPES]
    held = [{**j, "spec": {**j["spec"], "suspend": True}} for j in jobs]
    opened.wait_for("Trainer knows the runtimes", lambda: not opened.dry_run(dump_all(held)), 60)
    opened.apply(held)
    opened.wait_for("a JobSet of each", lambda: len(opened.list("jobsets")) == len(jobs), 120)
    sets = {each["metadata"]["name"]: each for each in opened.list("jobsets")}
    made = {t["metadata"]["name"]: gate.training_pods(sets[t["metadata"]["name"]], t) for t, _ in gate.SHAPES}
    told = {}
    for size in sorted(set(made.values())):
        # One below what is there: the job's own number, which another policy judges, is then below it or equal.
        gate.open_up(opened, str(size - 1)) if size > 1 else gate.close(opened)
        for each in (j for j in jobs if made[j["metadata"]["name"]] == size):
            again = {**each, "metadata": {"name": f"{each['metadata']['name']}-again"}}
            told[each["metadata"]["name"]] = gate.counted(opened.dry_run(dump_all([again])))
    assert told == made
    assert len(made) == 20
    assert set(made.values()) >= {1, 2, 3, 4}
    seen(f"{len(made)} shapes, 1 to {max(made.values())} nodes")


@pytest.mark.ci
def test_migrated_jobs_of_several_pods_stop_too(closed: Kubectl, seen: Seen) -> None:
    """What `migrate` makes of a v1 job of several pods is refused: on the gated runtime, with a runtime of its
    own, and with two roles, where the TrainJob itself asks for one node."""
    pod = {"containers": [{"name": "pytorch", "image": "registry.example.com/train:1", "command": ["python", "t.py"]}]}
    never = {"restartPolicy": "Never", "template": {"spec": pod}}
    hosts = {"restartPolicy": "Never", "template": {"spec": {**pod, "hostNetwork": True}}}
    other = {"restartPolicy": "Never", "template": {"spec": {"containers": [{**pod["containers"][0], "image": "b:2"}]}}}
    always = {"restartPolicy": "OnFailure", "template": {"spec": pod}}
    forms = {"gated runtime": (always, always), "own runtime": (hosts, hosts), "two roles": (never, other)}
    how = []
    for form, (master, worker) in forms.items():
        v1 = {
            "apiVersion": "kubeflow.org/v1",
            "kind": "PyTorchJob",
            "metadata": {"name": form.replace(" ", "-")},
            "spec": {"pytorchReplicaSpecs": {"Master": {"replicas": 1, **master}, "Worker": {"replicas": 2, **worker}}},
        }
        result = migrate_text(dump_all([v1]), target=running_target(closed))
        objects = [dict(o) for o in result.jobs[0].objects()]
        job = objects[-1]["spec"]
        how.append((job["runtimeRef"]["kind"], job["trainer"]["numNodes"], len(objects)))
        at = 0 if form == "two roles" else len(objects) - 1
        assert "asks for 3 nodes" in refusal(closed, *objects[: at + 1]), form
    assert how == [("ClusterTrainingRuntime", 3, 1), ("TrainingRuntime", 3, 2), ("TrainingRuntime", 1, 2)]
    seen("3 forms refused")


@pytest.fixture
def released(kubectl: Kubectl) -> Iterator[None]:
    """Whatever happens, no finalizer of a test keeps its namespace."""
    yield
    for each in kubectl.list("trainjobs"):
        if each["metadata"].get("finalizers"):
            name, none = each["metadata"]["name"], '{"metadata": {"finalizers": null}}'
            kubectl.run("patch", "trainjob", name, "--type=merge", "-p", none, check=False)


@pytest.mark.ci
@pytest.mark.usefixtures("released")
def test_edits_are_judged_and_deletion_is_not(opened: Kubectl, seen: Seen) -> None:
    """Jobs from before the namespace was closed: resume and a larger numNodes are refused, labels, a finalizer,
    status and a pause pass, and deletion ends, also of a running one."""
    held = gate.job("held", gate.MULTI, 2, suspend=True)
    held["metadata"]["finalizers"] = ["e2e.example.com/hold"]
    team = gate.runtime("pair", {"numNodes": 2, "torch": {}})
    pair = gate.job("pair", "pair", suspend=True, **TEAM)
    opened.apply([team])
    opened.wait_for("Trainer knows the runtime", lambda: not opened.dry_run(dump_all([pair])), 30)
    opened.apply([held, pair, gate.job("runs", gate.MULTI, 2)])
    opened.wait_for("the JobSet is there", lambda: opened.list("jobsets"), 60)
    gate.close(opened)

    def patch(name: str, text: str, *more: str) -> str:
        return opened.run("patch", "trainjob", name, "--type=merge", "-p", text, *more, check=False)

    for name in ("held", "pair"):  # the second asks for nothing itself: its runtime does
        said = patch(name, '{"spec": {"suspend": false}}')
        assert all(text in said for text in ("asks for 2 nodes", *gate.ADVICE)), said
    # Where numNodes is immutable the API server answers first.
    said = patch("held", '{"spec": {"trainer": {"numNodes": 4}}}')
    assert "field is immutable" in said or "asks for 4 nodes" in said
    assert "NotFound" in opened.run("scale", "trainjob", "held", "--replicas=4", check=False)  # no such subresource
    assert "patched" in patch("held", '{"metadata": {"labels": {"team": "a"}}}')
    assert "patched" in patch("held", '{"status": {"jobsStatus": []}}', "--subresource=status")
    assert "patched" in patch("runs", '{"metadata": {"annotations": {"note": "still mine"}}}')
    assert "patched" in patch("runs", '{"spec": {"suspend": true}}')
    assert "asks for 2 nodes" in patch("runs", '{"spec": {"suspend": false}}')
    opened.run("delete", "trainjob", "held", "runs", "pair", "--wait=false")
    # A deletion that somebody holds up is no way round either.
    assert "asks for 2 nodes" in patch("held", '{"spec": {"suspend": false}}')
    assert "patched" in patch("held", '{"metadata": {"finalizers": null}}')
    opened.wait_for("all are gone", lambda: opened.list("trainjobs") == [], 90)
    seen("4 edits refused, 6 passed, 3 jobs deleted")


@pytest.mark.ci
@pytest.mark.queue
def test_kueue_cannot_start_it_either(opened: Kubectl, queue: str, seen: Seen) -> None:
    """A job that waits in a queue while its namespace is closed: Kueue admits it when the quota allows, and the
    gate refuses the start until the namespace is open again."""
    waits = gate.job("waits", gate.MULTI, 2, suspend=True)
    waits["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": queue}
    opened.apply([waits])  # 2 nodes x 8 GPUs over a quota of 4
    opened.wait_for("Kueue made a workload", lambda: opened.list("workloads"), 60)
    assert opened.condition("workload", opened.list("workloads")[0]["metadata"]["name"], "Admitted") is None
    gate.close(opened)
    path = "/spec/resourceGroups/0/flavors/0/resources/2"
    more = [
        {"op": "test", "path": f"{path}/name", "value": "nvidia.com/gpu"},
        {"op": "replace", "path": f"{path}/nominalQuota", "value": "16"},
    ]
    opened.run("patch", "clusterqueue", opened.namespace, "--type=json", "-p", json.dumps(more))
    workload = opened.list("workloads")[0]["metadata"]["name"]
    opened.wait_for("the workload is admitted", lambda: opened.condition("workload", workload, "Admitted"), 60)

    def told() -> bool:
        log = opened.run("logs", "-n", "kueue-system", "deployment/kueue-controller-manager", "--tail=300")
        return any(opened.namespace in line and "TrainJob waits asks for 2 nodes" in line for line in log.splitlines())

    opened.wait_for("Kueue's log has the refusal", told, 60)
    assert opened.get("trainjob", "waits")["spec"]["suspend"] is True
    assert opened.list("pods") == []
    gate.open_up(opened)
    opened.wait_for("it starts", lambda: opened.get("trainjob", "waits")["spec"]["suspend"] is False, 120)
    seen("admitted by Kueue, started only after the label came back")


@pytest.mark.ci
def test_a_namespace_has_its_own_limit(opened: Kubectl, seen: Seen) -> None:
    """The label trainjob.dev/max-nodes bounds jobs and runtimes of its namespace; one that is no number counts
    as 1."""
    gate.open_up(opened, "3")
    assert opened.dry_run(dump_all([gate.job("three", gate.MULTI, 3)])) == ""
    team = gate.runtime("four", {"numNodes": 4, "torch": {}})
    fits = gate.runtime("three", {"numNodes": 3, "torch": {}})
    for said in (
        refusal(opened, gate.job("four", gate.MULTI, 4)),
        refusal(opened, team),
        refusal(opened, fits, gate.job("j", "three", 4, **TEAM)),
    ):
        assert f'the limit of namespace {opened.namespace} is 3 (its label trainjob.dev/max-nodes is "3")' in said
    gate.open_up(opened, "many")
    assert 'is 1 (its label trainjob.dev/max-nodes is "many")' in refusal(opened, gate.job("two", gate.MULTI, 2))
    seen("3 of 3 nodes accepted, 4 refused")


@pytest.mark.ci
def test_who_works_in_a_namespace_cannot_open_it(closed: Kubectl, seen: Seen) -> None:
    """A user with the role `admin` of the namespace may make TrainJobs and cannot change the label, the policies
    or the runtimes."""
    closed.run("create", "rolebinding", "boss", "--clusterrole=admin", "--user=boss")
    jobs = ("--verb=create", "--resource=trainjobs.trainer.kubeflow.org,trainingruntimes.trainer.kubeflow.org")
    closed.run("create", "role", "trains", *jobs)
    closed.run("create", "rolebinding", "trains", "--role=trains", "--user=boss")

    def may(verb: str, kind: str) -> bool:
        return closed.run("auth", "can-i", verb, kind, "--as=boss", check=False).strip().endswith("yes")

    closed.wait_for("the roles are known", lambda: may("create", "trainjobs"), 30)
    assert may("update", "configmaps")
    for kind in ("clustertrainingruntimes", "validatingadmissionpolicies", "validatingadmissionpolicybindings"):
        assert not any(may(verb, kind) for verb in ("create", "update", "patch", "delete")), kind
    said = closed.run(
        "label", "namespace", closed.namespace, f"{gate.LABEL}=allowed", "--as=boss", check=False
    )  # fmt: skip
    assert 'User "boss" cannot patch resource "namespaces"' in said
    one = dump_all([gate.job("two", gate.MULTI, 2)])
    assert gate.ADVICE[0] in closed.run("create", "-f", "-", "--as=boss", stdin=one, check=False)
    seen("namespace admin: refused")


def gate_of(tmp_path: Path, *components: str) -> list[dict[str, Any]]:
    """The gate as an overlay with these components renders it."""
    base = [os.path.relpath(gate.ROOT / "overlays/components" / c, tmp_path.resolve()) for c in components]
    head = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    (tmp_path / "kustomization.yaml").write_text(dump_all([{**head, "components": base}]), encoding="utf-8")
    return [doc.data for doc in load(kustomize.build(tmp_path).decode())]


@pytest.fixture
def copy_of_gate(kubectl: Kubectl, cluster: Kubectl) -> Iterator[Callable[..., None]]:
    """Installs a changed gate under another name, for the test's namespace alone."""
    made: list[str] = []

    def put(objects: list[dict[str, Any]], change: Callable[[dict[str, Any]], None]) -> None:
        for obj in copy.deepcopy(objects):
            name = f"{kubectl.namespace}-{obj['metadata']['name']}"
            obj["metadata"]["name"] = name
            if obj["kind"] == gate.BINDING:
                only = {"matchLabels": {"kubernetes.io/metadata.name": kubectl.namespace}}
                obj["spec"] |= {"policyName": f"{kubectl.namespace}-{obj['spec']['policyName']}"}
                obj["spec"]["matchResources"] = {"namespaceSelector": only}
            change(obj)
            made.append(f"{obj['kind'].lower()}/{name}")
            cluster.apply([obj])

    yield put
    cluster.run("delete", *made)


@pytest.mark.ci
def test_stock_runtimes_are_judged_when_asked_for(
    closed: Kubectl, cluster: Kubectl, copy_of_gate: Callable[..., None], tmp_path: Path, seen: Seen
) -> None:
    """A runtime that is not ours (as torch-distributed) takes two nodes in every namespace; with the component
    multi-node-gate-all it does so only in an open one."""
    stock = gate.runtime(f"{closed.namespace}-stock", {"numNodes": 1, "torch": {}})
    cluster.apply([{**stock, "kind": "ClusterTrainingRuntime"}])
    try:
        two = dump_all([gate.job("two", stock["metadata"]["name"], 2)])
        assert closed.dry_run(two) == ""
        copy_of_gate(gate_of(tmp_path, "multi-node-gate", "multi-node-gate-all"), lambda _: None)
        said = closed.wait_for("the wider gate answers", lambda: closed.dry_run(two), 60)
        assert f"asks for 2 nodes on runtime {stock['metadata']['name']}, and namespace {closed.namespace} is" in said
        assert closed.dry_run(dump_all([gate.job("one", stock["metadata"]["name"], 1)])) == ""
        gate.open_up(closed)
        closed.wait_for("open", lambda: not closed.dry_run(two), 30)
    finally:
        cluster.run("delete", "clustertrainingruntime", stock["metadata"]["name"])
    seen("accepted without, refused with the component")


@pytest.mark.full
def test_numbers_that_can_be_edited(
    closed: Kubectl, cluster: Kubectl, copy_of_gate: Callable[..., None], tmp_path: Path, seen: Seen
) -> None:
    """Where the API lets numNodes and runtimeRef change, as older Trainers do, the gate judges the edit. Shown
    with the gate's own expressions on a CRD without immutable fields, with the patch fields of 2.0 and 2.1."""
    group = f"{closed.namespace}.example.com"
    names = {"plural": "editablejobs", "singular": "editablejob", "kind": "EditableJob", "listKind": "EditableJobList"}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"editablejobs.{group}"},
        "spec": {"group": group, "names": names, "scope": "Namespaced", "versions": [version]},
    }

    def elsewhere(obj: dict[str, Any]) -> None:
        for rule in obj["spec"].get("matchConstraints", {}).get("resourceRules", ()):
            rule |= {"apiGroups": [group], "resources": ["editablejobs"]}

    def made(name: str, runtime: str, **spec: Any) -> dict[str, Any]:
        body = gate.job(name, runtime, 1, **spec)
        return {**body, "apiVersion": f"{group}/v1alpha1", "kind": "EditableJob"}

    def edit(name: str, spec: dict[str, Any]) -> str:
        text = json.dumps({"spec": spec})
        return closed.run("patch", "editablejob", name, "--type=merge", "-p", text, check=False)

    cluster.apply([crd])
    try:
        cluster.run("wait", "--for=condition=Established", f"crd/{crd['metadata']['name']}")
        objects = [o for o in gate_of(tmp_path, "multi-node-gate") if "written" not in o["metadata"]["name"]]
        copy_of_gate(objects, elsewhere)
        probe = dump_all([made("probe", gate.MULTI)])
        closed.wait_for("the copy answers", lambda: gate.ADVICE[0] in closed.dry_run(probe), 60)
        overrides = [{"targetJobs": [{"name": "node"}], "spec": {"nodeSelector": {"a": "b"}}}]
        closed.apply([gate.runtime("team", {"numNodes": 1, "torch": {}})])
        closed.apply([
            made("v21", "torch-fsdp-cpu", podTemplateOverrides=overrides),
            made("v20", "torch-fsdp-cpu", podSpecOverrides=[{"targetJobs": [{"name": "node"}]}]),
            made("team", "team", **TEAM),
        ])  # fmt: skip
        for name in ("v21", "v20"):
            assert "asks for 4 nodes, and runtime torch-fsdp-cpu is for one" in edit(name, {"trainer": {"numNodes": 4}})
            assert f"on the multi-node runtime {gate.MULTI}" in edit(name, {"runtimeRef": {"name": gate.MULTI}})
            assert "patched" in edit(name, {"trainer": {"numNodes": None}})
            assert "patched" in edit(name, {"suspend": True, "podTemplateOverrides": []})
            assert "patched" in edit(name, {"suspend": False})
        assert "asks for 4 nodes on TrainingRuntime team" in edit("team", {"trainer": {"numNodes": 4}})
        assert "patched" in edit("team", {"trainer": {"image": "registry.example.com/other:1"}})
    finally:
        cluster.run("delete", "crd", crd["metadata"]["name"])
    seen("5 edits refused, 7 passed")


# --- lock (c): the builder and the command line -----------------------------------------------------------


@pytest.mark.ci
def test_the_builder_and_the_command_ask_why(opened: Kubectl, seen: Seen) -> None:
    """Lock 3 alone, with an open namespace and the runtimes installed: train_job() and `trainjob build` write no
    job of two nodes without a reason; with one it is an annotation that the server keeps."""
    asks = {"name": "two", "runtime": gate.MULTI, "nodes": 2, "command": ["torchrun", "/programs/fsdp.py"]}
    for reason in (None, "", "  "):
        with pytest.raises(BuildError, match="2 nodes: say why one node is not enough"):
            train_job(**asks, allow_multi_node=reason)  # type: ignore[arg-type]
    with pytest.raises(BuildError, match="torch-fsdp-8gpu is a single-node runtime"):
        train_job(name="two", runtime="torch-fsdp-8gpu", nodes=2, allow_multi_node="it is faster")
    line = ["build", "--name", "two", "--runtime", gate.MULTI, "--nodes", "2"]

    def cli(*more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "trainjob", *line, *more, "--", "torchrun", "/programs/fsdp.py"]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    refused = cli()
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "say why one node is not enough" in refused.stderr
    allowed = cli("--allow-multi-node", "70B in bf16 needs 2 x 8 GPUs")
    assert allowed.returncode == 0, allowed.stderr
    opened.apply(allowed.stdout.replace("spec:", "spec:\n  suspend: true", 1))
    kept = opened.get("trainjob", "two")["metadata"]["annotations"]
    assert kept[MULTI_NODE_REASON] == "70B in bf16 needs 2 x 8 GPUs"
    seen("refused without a reason, kept with one")


# --- all open -----------------------------------------------------------------------------------------------


@pytest.mark.ci
@pytest.mark.trainer
@pytest.mark.usefixtures("programs")
def test_with_all_locks_open_it_trains(opened: Kubectl, seen: Seen) -> None:
    """The component, the label with a limit of 2 and a reason: two nodes train to Complete, and the reason
    stands on the job."""
    gate.open_up(opened, "2")
    reason = "the test of all three locks"
    built = train_job(
        name="two", runtime=gate.MULTI, nodes=2, allow_multi_node=reason, procs_per_node=1,
        command=["torchrun", "/programs/fsdp.py"],
    )  # fmt: skip
    opened.apply([small(built.to_dict(), opened, gate.MULTI)])
    assert opened.finished("two", seconds=360) == "Complete"
    assert "done world=2" in opened.logs("two")
    assert len(opened.pods("two")) == 2
    assert opened.get("trainjob", "two")["metadata"]["annotations"][MULTI_NODE_REASON] == reason
    seen("2 pods, world size 2, reason kept")
