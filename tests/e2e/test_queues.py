"""Kueue: what the offline verdict says of a job, and what the cluster does with it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import kueue
from tests.e2e.kube import Kubectl, claim
from tests.e2e.kueue import GPU, WIDE, cluster_queue, cohort, each, flavor, job, local_queue, quotas, runtime
from tests.e2e.test_admission import running_target
from trainjob import kustomize
from trainjob.kube.yaml import dump, load
from trainjob.validate.queue import Verdict, check_queues
from trainjob.validate.queue.amounts import read

ROOT = Path(__file__).parents[2]
NEVER = (
    "maximum capacity", "unavailable in ClusterQueue", "doesn't exist", "doesn't match", "untolerated taint",
    "is stopped", "is inactive", "supports only TopologyAwareScheduling",
)  # fmt: skip


@pytest.fixture
def team(kubectl: Kubectl, cluster: Kubectl) -> Iterator[Kubectl]:
    """A namespace that may run jobs of several nodes; its jobs are gone before its queues go."""
    cluster.run("label", "namespace", kubectl.namespace, "trainjob.dev/multi-node=allowed")
    yield kubectl
    kubectl.run("delete", "trainjobs", "--all", check=False)


@dataclass
class Case:
    """A job and the quota that it meets. `flavors` and `extra` are named after the case."""

    name: str
    why: str
    code: str = ""
    nodes: int = 1
    runtime: str = "two-gpus"
    quota: dict[str, str] = field(default_factory=lambda: dict(WIDE))
    limits: dict[str, dict[str, str]] = field(default_factory=dict)
    lender: dict[str, str] = field(default_factory=dict)
    lending: dict[str, dict[str, str]] = field(default_factory=dict)
    pool: dict[str, str] = field(default_factory=dict)
    parent_pool: dict[str, str] = field(default_factory=dict)
    first: dict[str, str] = field(default_factory=dict)
    taint: bool = False
    label: bool = False
    topology: bool = False
    spec: dict[str, Any] = field(default_factory=dict)
    trainer: dict[str, Any] = field(default_factory=dict)
    priority: str = ""
    queue: bool = True

    def objects(self, prefix: str) -> list[dict[str, Any]]:
        """Its ClusterQueue and LocalQueue, with lender, cohort and flavors where it has them."""
        own = f"{prefix}-{self.name}"
        out: list[dict[str, Any]] = []
        main = prefix
        if self.taint:
            out.append(flavor(own, nodeTaints=[{"key": "spot", "value": "yes", "effect": "NoSchedule"}]))
            main = own
        elif self.label:
            out.append(flavor(own, nodeLabels={"pool": "a"}))
            main = own
        elif self.topology:
            levels = {"levels": [{"nodeLabel": "kubernetes.io/hostname"}]}
            out.append({"apiVersion": kueue.API, "kind": "Topology", "metadata": {"name": own}, "spec": levels})
            out.append(flavor(f"{own}-hosts", nodeLabels={"kubernetes.io/os": "linux"}, topologyName=own))
            main = f"{own}-hosts"
        rows = [quotas(main, self.quota, self.limits)]
        if self.first:
            out.append(flavor(own))
            rows.insert(0, quotas(own, self.first))
        spec = dict(self.spec)
        if self.lender or self.pool or self.parent_pool:
            spec["cohortName"] = own
        if self.lender:
            out.append(cluster_queue(f"{own}-lender", quotas(main, self.lender, self.lending), cohortName=own))
        if self.pool or self.parent_pool:
            tree = {"parentName": f"{own}-top"} if self.parent_pool else {}
            out.append(cohort(own, *([quotas(main, self.pool)] if self.pool else []), **tree))
        if self.parent_pool:
            out.append(cohort(f"{own}-top", quotas(main, self.parent_pool)))
        out.append(cluster_queue(own, *rows, **spec))
        if self.queue:
            out.append(local_queue(self.name, own))
        return out


def gpus(number: int) -> dict[str, str]:
    return {**WIDE, GPU: str(number)}


CASES = [
    Case("fits", "2 x 2 = 4 of 4", nodes=2),
    Case("gpu", "3 x 2 = 6 of 4", "TJ601", nodes=3),
    Case("cpu", "3 x 10m of 25m", "TJ601", nodes=3, quota={**gpus(8), "cpu": "25m"}),
    Case("memory", "16Mi of 15Mi", "TJ601", quota={**WIDE, "memory": "15Mi"}),
    Case("borrow", "4 of 2 + 4 of the cohort", nodes=2, quota=gpus(2), lender=gpus(4)),
    Case("no-borrow", "borrowingLimit 0", "TJ601", nodes=2, quota=gpus(2), lender=gpus(4),
         limits={GPU: {"borrowingLimit": "0"}}),
    Case("borrow-limit", "borrowingLimit 1", "TJ601", nodes=2, quota=gpus(2), lender=gpus(4),
         limits={GPU: {"borrowingLimit": "1"}}),
    Case("lend-limit", "the other lends 1", "TJ601", nodes=2, quota=gpus(2), lender=gpus(4),
         lending={GPU: {"lendingLimit": "1"}}),
    Case("lend-enough", "the other lends 2", nodes=2, quota=gpus(2), lender=gpus(4),
         lending={GPU: {"lendingLimit": "2"}}),
    Case("pool", "the cohort's own quota", nodes=2, quota=gpus(2), pool=gpus(2)),
    Case("parent-pool", "2 + 3 of the cohort above", "TJ601", nodes=3, quota=gpus(2), parent_pool=gpus(3)),
    Case("parent-full", "both cohorts together give 6", nodes=3, quota=gpus(2), pool=gpus(1), parent_pool=gpus(3)),
    Case("uncovered", "no ephemeral-storage", "TJ602", quota={"cpu": "8", "memory": "8Gi", GPU: "4"}),
    Case("no-queue", "no LocalQueue", "TJ603", queue=False),
    Case("replaced", "resourcesPerNode without GPUs counts 0 of them", quota=gpus(0),
         trainer={"resourcesPerNode": each(0)}),
    Case("added", "resourcesPerNode asks more than the runtime", "TJ601", nodes=2,
         trainer={"resourcesPerNode": each(3)}),
    Case("limits-only", "limits count as requests", "TJ601", nodes=3, runtime="limits-only"),
    Case("initializer", "initializer and trainer are reserved at once: 30m + 10m of 35m", "TJ601",
         runtime="initializer", quota={**WIDE, "cpu": "35m"}),
    Case("second-flavor", "the first flavor has no GPUs", nodes=2, first=gpus(0)),
    Case("sidecar", "a sidecar counts: 10m + 20m of 25m", "TJ601", runtime="sidecar", quota={**WIDE, "cpu": "25m"}),
    Case("init", "an init container of 40m counts instead of 10m", "TJ601", runtime="init",
         quota={**WIDE, "cpu": "35m"}),
    Case("namespace", "the ClusterQueue is for others", "TJ606",
         spec={"namespaceSelector": {"matchLabels": {"team": "other"}}}),
    Case("taint", "the flavor's taint", "TJ609", taint=True),
    Case("selector", "the flavor's label", "TJ609", runtime="pool-b", label=True),
    Case("mixed", "a topology beside a flavor without one, and the job asks for none", "TJ609", topology=True,
         first=gpus(0)),
    Case("stopped", "stopPolicy Hold", "TJ605", spec={"stopPolicy": "Hold"}),
    Case("priority", "no such class", "TJ607", priority="nobody-has-this"),
]  # fmt: skip


def runtimes() -> list[dict[str, Any]]:
    two = each(2)
    extra = {"name": "extra", "image": kueue.TRAIN_IMAGE, "command": ["sleep", "1"]}
    loader = {
        "name": "dataset-initializer",
        "template": {
            "metadata": {"labels": {kueue.STEP: "dataset-initializer"}},
            "spec": {
                "template": {
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [{
                            **extra, "name": "dataset-initializer", "resources": each(0, cpu="30m"),
                            "volumeMounts": [{"name": "initializer", "mountPath": "/workspace"}],
                        }],
                        "volumes": [{"name": "initializer", "emptyDir": {}}],
                    }
                }
            },
        },
    }  # fmt: skip
    sidecar = {**extra, "restartPolicy": "Always", "command": ["sleep", "60"], "resources": each(0, cpu="20m")}
    return [
        runtime("two-gpus", two),
        runtime("limits-only", {"limits": two["limits"]}),
        runtime("initializer", two, loader),
        runtime("sidecar", two, initContainers=[sidecar]),
        runtime("init", two, initContainers=[{**extra, "resources": each(0, cpu="40m")}]),
        runtime("pool-b", two, nodeSelector={"pool": "b"}),
    ]


def said(kubectl: Kubectl, name: str) -> tuple[str, str]:
    """("yes" or "never", Kueue's words), or ("", ...) when it has not decided."""
    found = kueue.workload(kubectl, name)
    reserved = kueue.condition(found, "QuotaReserved")
    if reserved.get("status") == "True":
        return "yes", json.dumps(found["status"]["admission"]["podSetAssignments"]) if found else ""
    message = str(reserved.get("message", ""))
    if any(text in message for text in NEVER):
        return "never", message
    return "", message


@pytest.mark.ci
@pytest.mark.queue
def test_offline_verdict_is_the_clusters(team: Kubectl, cluster: Kubectl, seen: Callable[[str], None]) -> None:
    """Jobs against quotas, borrowing, lending, flavors, initializers and selectors: `validate --queues`
    and the cluster's Kueue agree on each, down to the amount of every resource that is reserved."""
    prefix = team.namespace
    objects = [flavor(prefix), *(o for case in CASES for o in case.objects(prefix))]
    jobs = [job(c.name, c.runtime, c.name, c.nodes, c.priority, **c.trainer) for c in CASES]
    # The offline verdict needs one class to know that another is not there.
    known = {"apiVersion": kueue.API, "kind": "WorkloadPriorityClass", "metadata": {"name": prefix}, "value": 1}
    objects.append(known)
    try:
        team.apply(objects)
        team.apply(runtimes())
        queues = kueue.live_queues(team)
        described = [dict(j, metadata={**j["metadata"], "namespace": prefix}) for j in [*runtimes(), *jobs]]
        verdicts = {v.name: v for v in check_queues(described, queues, running_target(team))}
        team.apply(jobs)
        wrong = [text for case in CASES if (text := compare(team, case, verdicts[case.name]))]
        assert wrong == []
        answers = {case.name: said(team, case.name) for case in CASES}
    finally:
        team.run("delete", "trainjobs", "--all", check=False)
        kueue.delete_all(cluster, objects)
    never = [case for case in CASES if case.code]
    words = answers["gpu"][1].partition("in flavor")[2].partition(", ")[2]
    seen(f"{len(CASES)} shapes, {len(never)} refused by both; for 3 x 2 of 4 GPUs Kueue says: {words}")


def compare(kubectl: Kubectl, case: Case, verdict: Verdict) -> str:
    """ "" when the offline verdict, the expectation of the table and the cluster are one."""
    codes = {f.code for f in verdict.findings if f.severity.value == "error"}
    if codes != ({case.code} if case.code else set()):
        return f"{case.name}: offline {codes}, expected {case.code}: {[f.message for f in verdict.findings]}"
    if case.code == "TJ607":  # no Workload at all, and the job waits
        kubectl.wait_for(f"{case.name} is suspended", lambda: kubectl.get("trainjob", case.name)["spec"]["suspend"], 20)
        return "" if kueue.workload(kubectl, case.name) is None else f"{case.name}: Kueue made a Workload"
    answer, words = kubectl.wait_for(f"Kueue decides on {case.name}", lambda: _decided(kubectl, case.name), 60)
    if answer != ("never" if case.code else "yes"):
        return f"{case.name}: the cluster says {answer}: {words}"
    if case.code == "TJ601":
        return _same_shortage(case, verdict, words)
    if not case.code:
        return _same_amounts(case, verdict, json.loads(words))
    return ""


def _decided(kubectl: Kubectl, name: str) -> tuple[str, str] | None:
    answer = said(kubectl, name)
    return answer if answer[0] else None


def _same_shortage(case: Case, verdict: Verdict, words: str) -> str:
    """Kueue names one resource and a capacity: so must one of the offline findings."""
    resource = words.partition("insufficient quota for ")[2].partition(" ")[0]
    capacity = words.rpartition("maximum capacity (")[2].partition(")")[0]
    for finding in verdict.findings:
        if resource in finding.message:
            given = finding.message.partition("can ever give")[2].partition(" is ")[2].partition(" ")[0]
            if read(resource, given) == read(resource, capacity):
                return ""
    return f"{case.name}: Kueue lacks {resource} of {capacity}, offline {[f.message for f in verdict.findings]}"


def _same_amounts(case: Case, verdict: Verdict, assigned: list[dict[str, Any]]) -> str:
    for podset, live in zip(verdict.podsets, assigned, strict=True):
        usage = {r: read(r, q) for r, q in live["resourceUsage"].items()}
        if usage != podset.total or live["count"] != podset.count:
            return f"{case.name}: Kueue reserves {usage} x {live['count']}, offline {podset.total} x {podset.count}"
    return ""


# A job that goes on where SIGTERM stopped it: one step a second, kept in its claim.
RESUMES = """
cd /checkpoints
trap 'echo $step > step; echo "SIGTERM at $step" >> history; exit 143' TERM
step=$(cat step 2>/dev/null || echo 0)
echo "from $step" >> history
while [ $step -lt 15 ]; do sleep 1 & wait $!; step=$((step + 1)); echo "step $step"; done
cat history
"""


def resumable(name: str, gpus_asked: int) -> list[dict[str, Any]]:
    """A runtime that trains from a claim at /checkpoints, and the claim; both are called `name`."""
    out = runtime(
        name, each(gpus_asked), grace=20,
        volumes=[{"name": "checkpoints", "persistentVolumeClaim": {"claimName": name}}],
    )  # fmt: skip
    (node,) = out["spec"]["template"]["spec"]["replicatedJobs"]
    container = node["template"]["spec"]["template"]["spec"]["containers"][0]
    container["command"] = ["sh", "-c", RESUMES]
    container["volumeMounts"] = [{"name": "checkpoints", "mountPath": "/checkpoints"}]
    return [claim(name, "ReadWriteOnce", "standard"), out]


def at_work(kubectl: Kubectl, name: str) -> bool:
    """The program has done a step: it will hear SIGTERM."""
    return "step 1" in kubectl.run("logs", "-l", f"jobset.sigs.k8s.io/jobset-name={name}", "--tail=20", check=False)


def preempted(kubectl: Kubectl, name: str) -> str:
    """Why Kueue preempted the job, once it is suspended and its pods are gone."""
    found = kueue.workload(kubectl, name)
    why = kueue.condition(found, "Preempted")
    if why.get("status") != "True" and not why.get("message"):
        return ""
    suspended = kubectl.get("trainjob", name)["spec"].get("suspend")
    return f"{why['reason']}: {why['message']}" if suspended and not kubectl.pods(name) else ""


def preempts(team: Kubectl, victim: dict[str, Any], winner: dict[str, Any]) -> tuple[str, str]:
    """Run `victim`, then `winner`; both end Complete, the victim in a second life. Its reason and log."""
    first, second = victim["metadata"]["name"], winner["metadata"]["name"]
    team.apply([victim])
    team.wait_for(f"{first} runs", lambda: at_work(team, first), 60)
    team.apply([winner])
    why = team.wait_for(f"{first} is preempted", lambda: preempted(team, first), 60)
    assert team.finished(second, seconds=60) == "Complete"
    assert team.finished(first, seconds=90) == "Complete"
    return str(why), team.logs(first)


def resumed_at(log: str) -> int:
    """The step at which SIGTERM came, which must be that from which the second life began."""
    history = [line for line in log.splitlines() if not line.startswith("step ")]
    stopped = next(line.rpartition(" ")[2] for line in history if line.startswith("SIGTERM at "))
    assert history == ["from 0", f"SIGTERM at {stopped}", f"from {stopped}"], log
    assert "step 15" in log
    assert f"step {stopped}\n" not in log  # the second life did not do it again
    return int(stopped)


@pytest.mark.ci
@pytest.mark.queue
def test_lent_quota_comes_back(team: Kubectl, cluster: Kubectl, seen: Callable[[str], None]) -> None:
    """Team A runs on 6 GPUs, 2 of them lent by team B; B asks for its own, A gets SIGTERM, is suspended, and
    goes on from its checkpoint when B is done. Both are Complete."""
    prefix = team.namespace
    preemption = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}
    objects = [flavor(prefix)]
    for letter in "ab":
        name = f"{prefix}-{letter}"
        rows = quotas(prefix, WIDE, {GPU: {"borrowingLimit": "2"}})
        objects += [cluster_queue(name, rows, cohortName=prefix, preemption=preemption), local_queue(letter, name)]
    try:
        team.apply(objects)
        team.apply([*resumable("borrower", 6), runtime("owner", each(4))])
        why, log = preempts(team, job("borrower", "borrower", "a"), job("owner", "owner", "b"))
    finally:
        team.run("delete", "trainjobs", "--all", check=False)
        kueue.delete_all(cluster, objects)
    assert why.startswith("InCohortReclamation")
    seen(f"{why.partition(':')[0]}; SIGTERM at step {resumed_at(log)}, resumed there, Complete")


def components(*names: str, folder: Path) -> list[dict[str, Any]]:
    """What these components of ours render, without any runtimes."""
    folder.mkdir()
    body = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "components": [f"components/{name}" for name in names],
    }
    (folder / "kustomization.yaml").write_text(dump(body), encoding="utf-8")
    shutil.copytree(ROOT / "overlays/components", folder / "components")
    return [d.data for d in load(kustomize.build(folder).decode()) if d.data is not None]


@pytest.fixture
def labelled(team: Kubectl, cluster: Kubectl) -> Iterator[list[str]]:
    """The nodes, each a rack of its own, and marked as what the GPU operator marks; undone afterwards."""
    nodes = sorted(node["metadata"]["name"] for node in cluster.list("nodes"))
    gpu = f"gpu.{team.namespace[-5:]}.trainjob.dev/present"
    try:
        for number, node in enumerate(nodes):
            cluster.run("label", "node", node, f"trainjob.dev/rack=r{number}", f"{gpu}=true", "--overwrite")
        yield [gpu, *nodes]
    finally:
        for node in nodes:
            cluster.run("label", "node", node, "trainjob.dev/rack-", f"{gpu}-", check=False)


def adapted(objects: list[dict[str, Any]], gpu_label: str) -> list[dict[str, Any]]:
    """As a platform engineer would patch them: the label of this cluster's GPU nodes."""
    for o in objects:
        if o["kind"] == "ResourceFlavor" and "nvidia.com/gpu.present" in o.get("spec", {}).get("nodeLabels", {}):
            o["spec"]["nodeLabels"] = {gpu_label: "true"}
    return objects


@pytest.mark.full
@pytest.mark.queue
def test_components_priorities(
    team: Kubectl, cluster: Kubectl, labelled: list[str], tmp_path: Path, seen: Callable[[str], None]
) -> None:
    """The components queues and queues-team-a as they render: a train-high job preempts a train-low one of
    the same team; a CPU job goes to train-cpu, a GPU job to train-gpu."""
    prefix = team.namespace
    rendered = adapted(components("queues", "queues-team-a", folder=tmp_path / "k"), labelled[0])
    objects = kueue.own(rendered, prefix, team.namespace)
    high, low = f"{prefix}-train-high", f"{prefix}-train-low"
    try:
        team.apply(objects)
        team.apply([*resumable("sweep", 6), runtime("urgent", each(4)), runtime("small", each(0))])
        why, log = preempts(
            team, job("sweep", "sweep", "training", priority=low), job("urgent", "urgent", "training", priority=high)
        )
        team.apply([job("small", "small", "training")])
        assert team.finished("small", seconds=60) == "Complete"
        flavors = {name: used(team, name) for name in ("urgent", "small")}
    finally:
        team.run("delete", "trainjobs", "--all", check=False)
        kueue.delete_all(cluster, objects)
    assert why.startswith("InClusterQueue")
    assert flavors == {"urgent": {f"{prefix}-train-gpu"}, "small": {f"{prefix}-train-cpu"}}
    seen(f"{why.partition(':')[0]}; SIGTERM at step {resumed_at(log)}, resumed there, Complete")


def used(kubectl: Kubectl, name: str) -> set[str]:
    """The flavors of an admitted job."""
    found = kueue.workload(kubectl, name) or {}
    assigned = found.get("status", {}).get("admission", {}).get("podSetAssignments", [])
    return {f for podset in assigned for f in podset["flavors"].values()}


def asks(built: dict[str, Any], annotation: str, level: str) -> dict[str, Any]:
    """A TrainJob that asks for a topology itself: the patch that docs/howto/queues.md shows."""
    template = {"metadata": {"annotations": {f"kueue.x-k8s.io/podset-{annotation}-topology": level}}}
    entry = {"name": "node", "template": {"spec": {"template": template}}}
    patch = {"template": {"spec": {"replicatedJobs": [entry]}}}
    built["spec"]["runtimePatches"] = [{"manager": "trainjob.dev/e2e", "trainingRuntimeSpec": patch}]
    return built


@pytest.mark.ci
@pytest.mark.queue
def test_topology(
    team: Kubectl, cluster: Kubectl, labelled: list[str], tmp_path: Path, seen: Callable[[str], None]
) -> None:
    """The components topology and kueue on two nodes, each a rack: two pods of torch-fsdp-multinode with 4 GPUs land
    on one node, two with 10 on two; a TrainJob that requires one rack for 2 x 10 waits, with Kueue's words."""
    prefix = team.namespace
    rendered = components("queues", "queues-team-a", "topology", folder=tmp_path / "k")
    objects = kueue.own(adapted(rendered, labelled[0]), prefix, team.namespace)
    for o in objects:
        if o["kind"] == "ClusterQueue":
            (group,) = o["spec"]["resourceGroups"]
            group["flavors"][1]["resources"][3] = {"name": GPU, "nominalQuota": "32"}
    try:
        team.apply(objects)
        team.apply([multi_node(tmp_path / "r"), runtime("plain", each(10))])
        nodes = {}
        for name, asked in (("close", 4), ("wide", 10)):
            pair = job(name, "multi-node", "training", 2, command=["sleep", "5"], resourcesPerNode=each(asked))
            nodes[name] = placed(team, pair)
        team.apply([asks(job("strict", "plain", "training", nodes=2), "required", "trainjob.dev/rack")])
        words = team.wait_for("Kueue refuses the strict one", lambda: refused_for_topology(team, "strict"), 30)
        # Without a word about topology: "anywhere", since every flavor of the queue has one.
        anywhere = placed(team, job("plain", "plain", "training"))
    finally:
        team.run("delete", "trainjobs", "--all", check=False)
        kueue.delete_all(cluster, objects)
    assert {name: len(found) for name, found in nodes.items()} == {"close": 1, "wide": 2}
    assert len(anywhere) == 1
    seen(f"2 x 4 GPUs on 1 node, 2 x 10 on 2; required in one rack: {words}")


def multi_node(folder: Path) -> dict[str, Any]:
    """torch-fsdp-multinode with the component kueue and the image of this cluster, in the test's namespace."""
    shutil.copytree(ROOT / "runtimes", folder / "runtimes")
    shutil.copytree(ROOT / "overlays/components", folder / "overlays/components")
    body = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": ["../../runtimes"],
        "components": [f"../components/{name}" for name in ("multi-node", "kueue", "cpu-stand-in")],
    }
    (folder / "overlays/mine").mkdir()
    (folder / "overlays/mine/kustomization.yaml").write_text(dump(body), encoding="utf-8")
    docs = [d.data for d in load(kustomize.build(folder / "overlays/mine").decode())]
    found = next(d for d in docs if d["metadata"]["name"] == "torch-fsdp-multinode")
    return {**found, "kind": "TrainingRuntime", "metadata": {**found["metadata"], "name": "multi-node"}}


def placed(kubectl: Kubectl, built: dict[str, Any]) -> set[str]:
    """The nodes of a job's pods, once every pod has one; the job then ends."""
    name, count = built["metadata"]["name"], built["spec"]["trainer"]["numNodes"]
    kubectl.apply([built])

    def nodes() -> list[str] | None:
        found = [p["spec"].get("nodeName", "") for p in kubectl.pods(name)]
        return found if len(found) == count and all(found) else None

    found = kubectl.wait_for(f"{name} has its pods on nodes", nodes, 60)
    assert kubectl.finished(name, seconds=60) == "Complete"
    return set(found)


def refused_for_topology(kubectl: Kubectl, name: str) -> str:
    message = str(kueue.condition(kueue.workload(kubectl, name), "QuotaReserved").get("message", ""))
    return message.partition(": ")[2] if "topology" in message else ""
