"""`migrate --from-cluster` with the real client against a server of this machine."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.migrate.cluster.fake_cluster import FakeCluster, running
from tests.migrate.rules.support import v1
from trainjob.cli.migrate import command
from trainjob.kube import schema, yaml
from trainjob.targets import TARGETS, Target

TRUE = "True"


def job(name: str, *, namespace: str = "nlp", state: str = "Succeeded", **parts: Any) -> dict[str, Any]:
    obj = v1(parts.pop("container", None), parts.pop("pod", None), workers=1, metadata={"name": name})
    obj["metadata"] |= {"namespace": namespace, "uid": f"u-{name}", "creationTimestamp": "2026-11-01T00:00:00Z"}
    obj["metadata"] |= parts.pop("metadata", {})
    obj["status"] = {"conditions": [{"type": "Created", "status": TRUE}, {"type": state, "status": TRUE}]}
    assert not parts
    return obj


def crds(target: Target) -> list[dict[str, Any]]:
    """The CRDs of a Trainer version, as the server shows them."""
    out = []
    for kind, plural in (("TrainJob", "trainjobs"), ("TrainingRuntime", "trainingruntimes")):
        version = {"name": "v1alpha1", "served": True, "schema": {"openAPIV3Schema": schema.raw(kind, target)}}
        out.append({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.trainer.kubeflow.org"}, "spec": {"versions": [version]},
        })  # fmt: skip
    v1_crd = copy.deepcopy(out[0])
    v1_crd["metadata"]["name"] = "pytorchjobs.kubeflow.org"
    v1_crd["spec"]["versions"] = [{"name": "v1", "served": True}]
    return [*out, v1_crd]


def named(kind: str, name: str, api: str = "v1", namespace: str | None = None, **more: Any) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **more}


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    fake = FakeCluster()
    fake.add(*crds(TARGETS[-1]), named("Namespace", "nlp"), named("Namespace", "vision"))
    for runtime in ("torch-v1-compat", "torch-v1-compat-multinode"):
        fake.add(named("ClusterTrainingRuntime", runtime, "trainer.kubeflow.org/v1alpha1"))
    with running(fake):
        yield fake


def inventory(cluster: FakeCluster, tmp_path: Path, *args: str) -> Result:
    config = cluster.kubeconfig(tmp_path)
    return CliRunner().invoke(command, ["--from-cluster", "--kubeconfig", str(config), *args], prog_name="migrate")


def facts(result: Result) -> dict[str, Any]:
    out: dict[str, Any] = json.loads(result.stdout)
    return out


def codes(report: dict[str, Any]) -> list[str]:
    return [f["code"] for f in report["findings"]]


class TestJobs:
    def test_states_and_verdicts(self, cluster: FakeCluster, tmp_path: Path) -> None:
        cluster.add(
            job("done"),
            job("queued", state="Suspended"),
            job("busy", state="Running"),
            job("old", state="Suspended", metadata={"name": "Old_Name"}),
        )
        report = facts(inventory(cluster, tmp_path, "-A", "--format", "json"))
        seen = {j["name"]: (j["state"], j["verdict"]) for j in report["jobs"]}
        assert seen == {
            "done": ("Succeeded", "finished"),
            "queued": ("Suspended", "ready"),
            "busy": ("Running", "look"),
            "Old_Name": ("Suspended", "blocked"),
        }
        assert report["counts"] == {"ready": 1, "look": 1, "blocked": 1, "owned": 0, "finished": 1, "running": 1}
        assert "TJ105" in codes(report)
        running = [f["message"] for f in report["findings"] if f["code"] == "TJ932"]
        assert [m.partition(":")[0] for m in running] == ["nlp/busy is Running"]

    def test_size_owner_and_maker(self, cluster: FakeCluster, tmp_path: Path) -> None:
        gpus = {"resources": {"limits": {"nvidia.com/gpu": 2}}}
        owner = [{"kind": "Workflow", "name": "nightly", "controller": True}]
        cluster.add(
            job("a", state="Running", container=gpus, metadata={"ownerReferences": owner}),
            job("b", metadata={"annotations": {"argocd.argoproj.io/tracking-id": "nlp:x"}}),
            job("c", metadata={"managedFields": [{"manager": "kubectl-client-side-apply"}]}),
        )
        report = facts(inventory(cluster, tmp_path, "-A", "--format", "json"))
        a, b, c = report["jobs"]
        assert (a["pods"], a["accelerators"], a["owner"], a["verdict"]) == (
            2, {"nvidia.com/gpu": 4}, "Workflow/nightly", "owned",
        )  # fmt: skip
        assert (b["madeBy"], c["madeBy"]) == ("Argo CD (nlp:x)", "kubectl")
        assert "TJ932" not in codes(report)

    def test_lists_come_in_pages(self, cluster: FakeCluster, tmp_path: Path) -> None:
        cluster.page = 3
        cluster.add(*(job(f"j{i:02}") for i in range(10)))
        report = facts(inventory(cluster, tmp_path, "-A", "--format", "json"))
        assert [j["name"] for j in report["jobs"]] == [f"j{i:02}" for i in range(10)]
        pages = [r for r in cluster.requests if r.path == "/apis/kubeflow.org/v1/pytorchjobs"]
        assert [r.query.get("continue") for r in pages] == [None, "3", "6", "9"]

    def test_a_list_that_expires_is_told(self, cluster: FakeCluster, tmp_path: Path) -> None:
        cluster.page, cluster.expires = 3, "3"
        cluster.add(*(job(f"j{i}") for i in range(5)))
        result = inventory(cluster, tmp_path, "-A")
        assert result.exit_code == 2
        assert "the list changed while it was read" in result.stderr

    def test_one_namespace_is_the_one_of_the_context(self, cluster: FakeCluster, tmp_path: Path) -> None:
        cluster.add(job("mine"), job("theirs", namespace="vision"))
        assert [j["name"] for j in facts(inventory(cluster, tmp_path, "--format", "json"))["jobs"]] == ["mine"]
        other = facts(inventory(cluster, tmp_path, "-n", "vision", "--format", "json"))
        assert [j["name"] for j in other["jobs"]] == ["theirs"]
        assert not any(r.path == "/apis/kubeflow.org/v1/pytorchjobs" for r in cluster.requests)

    def test_nothing_but_get(self, cluster: FakeCluster, tmp_path: Path) -> None:
        cluster.add(job("a", state="Suspended", pod={"serviceAccountName": "trainer"}))
        inventory(cluster, tmp_path, "-A")
        assert {r.method for r in cluster.requests} == {"GET"}
        assert len(cluster.requests) > 10


WORKFLOW = """
apiVersion: argoproj.io/v1alpha1
kind: CronWorkflow
metadata: {name: nightly, namespace: nlp}
spec:
  schedules: ["0 2 * * *"]
  workflowSpec:
    templates:
    - name: train
      resource:
        action: create
        successCondition: status.replicaStatuses.Worker.succeeded > 0
        manifest: |
          apiVersion: kubeflow.org/v1
          kind: PyTorchJob
          metadata: {generateName: nightly-}
"""
SCRIPT = """
apiVersion: batch/v1
kind: CronJob
metadata: {name: weekly, namespace: nlp}
spec:
  schedule: "@weekly"
  suspend: true
  jobTemplate:
    spec:
      template:
        spec:
          containers:
          - name: submit
            command: [sh, -c, "pip install kubeflow-training==1.7.0 && python submit.py"]
"""
EXPERIMENT = """
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: tune, namespace: nlp}
spec: {trialTemplate: {trialSpec: {apiVersion: kubeflow.org/v1, kind: PyTorchJob, spec: {}}}}
"""
HARMLESS = """
apiVersion: batch/v1
kind: CronJob
metadata: {name: backup, namespace: nlp}
spec: {schedule: "@daily", jobTemplate: {spec: {template: {spec: {containers: [{name: a, command: [ls]}]}}}}}
"""
OWNED = """
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata:
  name: nightly-1
  namespace: nlp
  ownerReferences: [{kind: CronWorkflow, name: nightly, controller: true}]
spec: {templates: [{resource: {manifest: "kind: PyTorchJob"}}]}
"""


class TestCreators:
    def test_what_creates_jobs(self, cluster: FakeCluster, tmp_path: Path) -> None:
        cluster.add(WORKFLOW, SCRIPT, EXPERIMENT, HARMLESS, OWNED)
        result = inventory(cluster, tmp_path, "-A", "--format", "json")
        found = {c["name"]: c for c in facts(result)["creators"]}
        assert sorted(found) == ["nightly", "nightly-1", "tune", "weekly"]
        nightly, weekly = found["nightly"], found["weekly"]
        assert (nightly["how"], nightly["schedule"]) == ("manifest", "0 2 * * *")
        assert nightly["where"] == "spec.workflowSpec.templates[0].resource.manifest"
        assert (weekly["how"], weekly["sdk"], weekly["suspended"]) == ("sdk", "1.7.0", True)
        told = [f for f in facts(result)["findings"] if f["code"] == "TJ931"]
        assert len(told) == 3  # not the Workflow that the CronWorkflow owns
        assert result.exit_code == 1

    @pytest.mark.parametrize(
        "text",
        [
            '{"spec":"{\\"kind\\":\\"PyTorchJob\\"}"}',
            "{'kind': 'PyTorchJob'}",
            "apiVersion: kubeflow.org/v1\nkind:   PyTorchJob # x\n",
        ],
    )
    def test_jobs_in_texts(self, cluster: FakeCluster, tmp_path: Path, text: str) -> None:
        cluster.add(named("ScheduledWorkflow", "s", "kubeflow.org/v1beta1", "nlp", spec={
            "trigger": {"cronSchedule": {"cron": "0 0 1 * * *"}}, "enabled": False, "workflow": {"spec": text},
        }))  # fmt: skip
        (found,) = facts(inventory(cluster, tmp_path, "--format", "json"))["creators"]
        assert (found["where"], found["schedule"], found["suspended"]) == ("spec.workflow.spec", "0 0 1 * * *", True)

    def test_the_table(self, cluster: FakeCluster, tmp_path: Path) -> None:
        cluster.add(job("a", state="Suspended"), WORKFLOW)
        result = inventory(cluster, tmp_path, "-A")
        assert "NAMESPACE  NAME  STATE      PODS" in result.stdout
        assert "CronWorkflow nlp/nightly  0 2 * * *  manifest" in result.stdout
        assert "pytorchjobs.kubeflow.org: v1\n" in result.stdout
        assert "warning[TJ931]" in result.stderr


class TestRights:
    def test_a_list_that_is_forbidden_is_said(self, cluster: FakeCluster, tmp_path: Path) -> None:
        cluster.add(job("a", state="Suspended"), SCRIPT)
        cluster.forbidden = {"/cronjobs", "/resourcequotas"}
        result = inventory(cluster, tmp_path, "-A", "--format", "json")
        report = facts(result)
        assert report["unread"] == ['cronjobs.batch (User "me" cannot list resource at /apis/batch/v1/cronjobs)']
        assert report["creators"] == []
        assert len(report["jobs"]) == 1
        assert codes(report).count("TJ930") == 2
        assert result.exit_code == 1

    def test_jobs_that_may_not_be_listed_are_no_empty_inventory(self, cluster: FakeCluster, tmp_path: Path) -> None:
        cluster.add(job("a"))
        cluster.forbidden = {"/pytorchjobs"}
        result = inventory(cluster, tmp_path, "-A")
        assert result.exit_code == 2
        assert "or say -n NAMESPACE" in result.stderr

    def test_a_cluster_that_does_not_answer(self, cluster: FakeCluster, tmp_path: Path) -> None:
        cluster.url = "http://127.0.0.1:9"
        result = inventory(cluster, tmp_path, "-A")
        assert (result.exit_code, result.stdout) == (2, "")
        assert "does not answer" in result.stderr

    def test_no_such_context(self, cluster: FakeCluster, tmp_path: Path) -> None:
        result = inventory(cluster, tmp_path, "--context", "other")
        assert result.exit_code == 2
        assert "no context 'other'" in result.stderr

    def test_the_client_is_an_extra(
        self, cluster: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "kubernetes.config", None)
        result = inventory(cluster, tmp_path)
        assert result.exit_code == 2
        assert "pip install 'trainjob[cluster]'" in result.stderr


POD = {
    "serviceAccountName": "trainer",
    "imagePullSecrets": [{"name": "pull"}],
    "priorityClassName": "high",
    "volumes": [
        {"name": "d", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "c", "configMap": {"name": "settings"}},
        {"name": "o", "configMap": {"name": "extra", "optional": True}},
    ],
}
ENV = {"env": [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}}]}
QUEUE = {"labels": {"kueue.x-k8s.io/queue-name": "team"}}


class TestTarget:
    def test_everything_that_is_named_is_looked_for(self, cluster: FakeCluster, tmp_path: Path) -> None:
        cluster.add(job("a", state="Suspended", pod=POD, container=ENV, metadata=QUEUE))
        report = facts(inventory(cluster, tmp_path, "-A", "--format", "json"))
        missing = {f"{m['kind']} {m['name']}" for m in report["target"]["missing"]}
        assert missing == {
            "ServiceAccount trainer", "Secret pull", "Secret hub", "PriorityClass high", "ConfigMap settings",
            "PersistentVolumeClaim data", "LocalQueue team",
        }  # fmt: skip
        assert codes(report).count("TJ933") == 7

    def test_what_is_there_is_not_missing_and_secrets_are_not_read(self, cluster: FakeCluster, tmp_path: Path) -> None:
        cluster.add(job("a", state="Suspended", pod=POD, container=ENV, metadata=QUEUE))
        cluster.add(
            named("ServiceAccount", "trainer", namespace="nlp"), named("Secret", "pull", namespace="nlp"),
            named("Secret", "hub", namespace="nlp"), named("ConfigMap", "settings", namespace="nlp"),
            named("PriorityClass", "high", "scheduling.k8s.io/v1"),
            named("PersistentVolumeClaim", "data", namespace="nlp"),
            named("LocalQueue", "team", "kueue.x-k8s.io/v1beta1", namespace="nlp"),
        )  # fmt: skip
        result = inventory(cluster, tmp_path, "-A", "--format", "json")
        assert facts(result)["target"]["missing"] == []
        secrets = [r for r in cluster.requests if r.path.endswith("/secrets")]
        assert secrets
        assert all("PartialObjectMetadataList" in r.accept for r in secrets)

    def test_finished_jobs_need_nothing(self, cluster: FakeCluster, tmp_path: Path) -> None:
        cluster.add(job("a", pod=POD))
        result = inventory(cluster, tmp_path, "-A", "--format", "json")
        assert facts(result)["target"]["missing"] == []
        assert result.exit_code == 0

    def test_a_runtime_that_is_not_installed(self, cluster: FakeCluster, tmp_path: Path) -> None:
        cluster.objects = [o for o in cluster.objects if o["metadata"]["name"] != "torch-v1-compat-multinode"]
        cluster.add(job("a", state="Suspended"))
        result = inventory(cluster, tmp_path, "-A")
        assert "ClusterTrainingRuntime torch-v1-compat-multinode is not in the target" in result.stderr
        assert result.exit_code == 1

    @pytest.mark.parametrize("target", TARGETS, ids=str)
    def test_the_generation_of_the_crds(self, cluster: FakeCluster, tmp_path: Path, target: Target) -> None:
        cluster.objects = [o for o in cluster.objects if o["kind"] != "CustomResourceDefinition"]
        cluster.add(*crds(target), job("a", state="Suspended"))
        report = facts(inventory(cluster, tmp_path, "-A", "--format", "json", "--target", target.name))
        assert report["target"]["trainer"] == target.name
        assert "TJ935" not in codes(report)
        other = "2.0" if target.name != "2.0" else "2.3"
        wrong = facts(inventory(cluster, tmp_path, "-A", "--format", "json", "--target", other))
        assert [f["fix"] for f in wrong["findings"] if f["code"] == "TJ935"] == [f"say --target {target.name}"]

    def test_no_trainer_at_all(self, cluster: FakeCluster, tmp_path: Path) -> None:
        cluster.objects = [o for o in cluster.objects if o["kind"] != "CustomResourceDefinition"]
        cluster.add(job("a", state="Suspended"))
        assert "no TrainJob CRD" in inventory(cluster, tmp_path, "-A").stderr

    @pytest.mark.parametrize(
        ("hard", "used", "state", "severity"),
        [
            ("3", "0", "Suspended", "error"),
            ("4", "1", "Suspended", "warning"),
            ("4", "4", "Running", None),
            ("4", "0", "Suspended", None),
        ],
    )
    def test_quota(
        self, cluster: FakeCluster, tmp_path: Path, hard: str, used: str, state: str, severity: str | None
    ) -> None:
        gpus = {"resources": {"limits": {"nvidia.com/gpu": 2}}}
        key = "requests.nvidia.com/gpu"
        cluster.add(
            job("a", state=state, container=gpus),
            named("ResourceQuota", "q", namespace="nlp", spec={"hard": {key: hard}}, status={"used": {key: used}}),
        )
        report = facts(inventory(cluster, tmp_path, "-A", "--format", "json"))
        told = [f["severity"] for f in report["findings"] if f["code"] == "TJ934"]
        assert told == ([severity] if severity else [])

    def test_another_cluster_as_target(self, cluster: FakeCluster, tmp_path: Path) -> None:
        cluster.add(job("a", state="Suspended"))
        with running(FakeCluster()) as other:
            config = yaml.load(cluster.kubeconfig(tmp_path).read_text(encoding="utf-8"))[0].data
            config["clusters"].append({"name": "new", "cluster": {"server": other.url}})
            config["contexts"].append({"name": "new", "context": {"cluster": "new", "user": "me"}})
            path = tmp_path / "both"
            path.write_text(json.dumps(config), encoding="utf-8")
            args = ["--from-cluster", "-A", "--kubeconfig", str(path), "--target-context", "new", "--format", "json"]
            report = facts(CliRunner().invoke(command, args))
            assert (report["source"]["context"], report["target"]["context"]) == ("fake", "new")
            assert {m["kind"] for m in report["target"]["missing"]} == {"Namespace", "ClusterTrainingRuntime"}
            assert not any("pytorchjobs" in r.path for r in other.requests if "customresource" not in r.path)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--from-cluster", "x.yaml"], "takes no FILE"),
        (["--from-cluster", "-A", "-n", "nlp"], "not both"),
        (["--from-cluster", "--format", "sarif"], "text or json"),
        (["x.yaml", "-A"], "belongs to --from-cluster"),
        ([], "Missing argument"),
    ],
)
def test_usage(args: list[str], said: str) -> None:
    result = CliRunner().invoke(command, args)
    assert result.exit_code == 2
    assert said in result.stderr
