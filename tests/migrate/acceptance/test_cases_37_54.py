"""Inputs 37 to 54 of migration/cases: one test proves what one input has to keep."""

from __future__ import annotations

import re

import pytest

from tests.migrate.acceptance.effective import COMPLETION_INDEX
from tests.migrate.acceptance.inputs import env_map, quantity, v1_job, v1_jobs
from tests.migrate.acceptance.oracle import ISTIO, Case, case, cases, edited, result

LONG_NAME = "demo-language-model-pretraining-ablation-warmup-run-07"


def test_37_partial_template_in_a_config_map_is_refused() -> None:
    """A job without an image is a template; the runtime's image may not fill the gap."""
    got = result(37)
    got.refused(r"image", r"template|partial|incomplete|no image|without", exits=(1, 2))
    assert got.mentions("template")


def test_38_worker_only_with_v1_host_name() -> None:
    """The v1 host in the endpoint is rewritten, and the pod-level Never stays without effect."""
    got = case(38)
    assert got.form == "runtime"
    assert got.node.main["imagePullPolicy"] == "Always"
    (before,) = got.v1.roles["Worker"].main["args"]
    host = "demo-pretrain-node-0-0.demo-pretrain"
    assert got.trainer["args"] == [before.replace("demo-pretrain-worker-0", host)]
    assert got.trainer["command"] == ["bash", "-c"]
    got.result.says(r"demo-pretrain-worker-0", r"demo-pretrain-node-0-0")
    assert got.node.pod.get("restartPolicy", "OnFailure") == "OnFailure"
    assert got.node.job.get("backoffLimit") != 0
    got.result.says(r"restartPolicy", r"ignored|overw|no effect|replaced")
    assert got.node.pod.get("dnsPolicy", "ClusterFirst") == "ClusterFirst"
    assert got.trainer["numNodes"] == 2
    got.shim("2")
    assert got.accelerators == {"nvidia.com/gpu": 16, "rdma/shared_ib": 16}
    assert got.env["NCCL_TOPO_FILE"]["value"] == "/config/topo.xml"
    assert got.node.annotations["k8s.v1.cni.cncf.io/networks"] == "fabric-0,fabric-1"
    assert got.node.pod["imagePullSecrets"] == [{"name": "demo-pull"}]
    assert got.node.main["securityContext"] == {"capabilities": {"add": ["IPC_LOCK"]}}
    assert got.node.volume("workspace")["nfs"] == {"server": "nfs.example.com", "path": "/nfs"}
    assert got.node.volume("training-config")["configMap"]["name"] == "demo-training-config"
    assert got.node.volume("dshm")["emptyDir"] == {"medium": "Memory", "sizeLimit": "512Gi"}
    assert got.metadata["labels"]["app"] == "demo-pretrain"


def test_39_unknown_wrapper_is_refused() -> None:
    """A job inside a home-made kind is found and named, not overlooked."""
    got = result(39)
    got.refused(r"DemoTraining|wrapper|ml\.example\.com")
    assert got.mentions("spec.training")
    assert not any(re.search(r"no v1 training job", f.message, re.I) for f in got.migration.findings)


def test_40_affinity_and_label_of_the_workers_only() -> None:
    """The user's own label needs no rewrite; binding the Master too is either avoided or told."""
    got = case(40)
    affinity = got.v1.roles["Worker"].pod["affinity"]
    if got.form == "two-role":
        got.two_roles(workers=2)
        assert "affinity" not in got.node.pod
        assert "app" not in got.node.labels
        assert got.worker.pod["affinity"] == affinity
        assert got.worker.labels["app"] == "demo-near"
    else:
        assert got.form == "patches"
        assert got.trainer["numNodes"] == 3
        assert got.node.pod["affinity"] == affinity
        assert got.node.labels["app"] == "demo-near"
        got.result.says(r"affinity", r"master|rank 0|first pod|all pods", at_least="warning")
    got.shim("3")
    assert got.accelerators == {"nvidia.com/gpu": 3}
    for role in got.roles.values():
        assert role.main["args"] == ["--backend", "gloo"]
        assert "command" not in role.main
        assert quantity(role.main["resources"]["limits"]["ephemeral-storage"]) == quantity("20Gi")
        assert role.annotations[ISTIO] == "false"


def test_41_comments_only() -> None:
    """A file of comments holds no job: that is said, and nothing crashes."""
    got = result(41)
    got.says(r"no v1 training job", at_least="warning")
    assert got.docs == []
    assert got.migration.converted == 0
    assert got.migration.exit_code == 1


def test_42_merge_keys_and_kubernetes_expansion() -> None:
    """`$(RANK)` and kin resolve through the shim; an undefined `$(...)` stays as text."""
    got = case(42)
    assert got.form == "patches"
    assert got.trainer["numNodes"] == 3
    got.shim("3")
    before = got.v1.roles["Master"].main
    assert got.trainer["command"] == before["command"]
    assert got.trainer["args"] == ["train.py", "--ckpt=$(CKPT_DIR)/$(RUN_TAG)"]
    levels = [entry for entry in got.trainer["env"] if entry["name"] == "LOG_LEVEL"]
    assert levels == [{"name": "LOG_LEVEL", "value": "debug"}]
    got.result.says(r"LOG_LEVEL", r"twice|duplicate|last|more than once")
    assert got.env["CKPT_DIR"]["value"] == "/data/ckpt"
    assert "RUN_TAG" not in got.env
    assert got.accelerators == {"nvidia.com/gpu": 6}
    assert got.node.annotations[ISTIO] == "false"


def test_43_accelerate_flags_and_a_volume_mounted_twice() -> None:
    """Explicit flags work through the shim; two mounts of one volume need a runtime."""
    got = case(43)
    before = got.v1.roles["Master"].main
    assert got.form == "runtime"
    assert got.trainer["numNodes"] == 2
    got.shim("2")
    assert got.trainer["args"] == before["args"]
    assert got.trainer["image"].endswith("@sha256:" + "0" * 64)
    assert got.node.main["volumeMounts"] == before["volumeMounts"]
    assert got.env["CPU_LIMIT"]["valueFrom"] == {
        "resourceFieldRef": {"containerName": "node", "resource": "limits.cpu"}
    }
    assert got.env["CONFIG_LEVEL"]["valueFrom"] == {"configMapKeyRef": {"name": "demo-conf", "key": "level"}}
    assert got.node.pod["serviceAccountName"] == "demo-sa"
    assert got.node.pod["imagePullSecrets"] == [{"name": "demo-pull"}]
    assert got.node.main.get("imagePullPolicy") in (None, "IfNotPresent")
    assert got.accelerators == {"nvidia.com/gpu": 16}


def test_44_deepspeed_hostfile_is_refused() -> None:
    """The hostfile launcher needs ssh and sleeping workers never end: an MPI runtime is named."""
    got = result(44)
    got.refused(r"deepspeed", r"ssh|mpi")
    got.says(r"deepspeed-distributed|\bMPI\b")
    assert got.migration.refused == 1


def test_45_generate_name() -> None:
    """Without a fixed name no literal host is written; the runtime derives v1's variables."""
    got = case(45)
    assert got.metadata["generateName"] == "demo-sweep-"
    assert "name" not in got.metadata
    assert got.metadata["labels"]["sweep"] == "7"
    got.compat()
    assert got.trainer["numNodes"] == 2
    assert not {"command", "args"} & set(got.node.main)
    assert got.accelerators == {"nvidia.com/gpu": 2}


def test_46_name_over_the_budget_is_refused() -> None:
    """13 nodes leave 47 characters; a name that fits is suggested."""
    got = result(46)
    got.refused(r"name", r"\b47\b")
    assert got.migration.refused == 1
    texts = " ".join(f"{f.message} {f.fix}" for f in got.migration.findings)
    names = re.findall(r"\bdemo(?:-[a-z0-9]+)+\b", texts)
    assert any(len(n) <= 47 for n in names), "no name that fits is suggested"


@pytest.mark.parametrize(("length", "fits"), [(47, True), (48, False)])
def test_46_after_renaming(length: int, fits: bool) -> None:
    """47 characters convert and the endpoint follows the name; 48 are still one too many."""
    new = LONG_NAME[: length - 3] + "-07"
    assert len(new) == length
    got = edited(46, (LONG_NAME, new))
    if not fits:
        got.refused(r"name", r"\b47\b")
        return
    (job,) = got.jobs
    renamed = Case(got, v1_job(46), job)
    assert renamed.trainer["numNodes"] == 13
    assert renamed.trainer["numProcPerNode"] == 1, "the resource name has no gpu in it"
    assert f"--rdzv_endpoint={new}-node-0-0.{new}:23456" in renamed.trainer["args"]
    renamed.shim_or_none("13")
    assert renamed.accelerators == {"nvidia.com/mig-1g.10gb": 13}


def test_47_sidecar_and_v1_labels() -> None:
    """The main container is found by name, the sidecar gets its rank, v1 labels are rewritten."""
    got = case(47)
    pod = got.node.pod
    before = {c["name"]: c for c in got.v1.roles["Master"].pod["containers"]}
    assert got.form == "runtime"
    assert got.trainer["image"] == "registry.example.com/team/train:1.0"
    assert got.trainer["command"] == ["torchrun", "train.py"]
    assert got.trainer["numNodes"] == 4
    got.shim_or_none("4")
    (shipper,) = [c for c in pod["containers"] if c["name"] == "shipper"]
    assert shipper["command"] == before["shipper"]["command"]
    assert shipper["image"] == before["shipper"]["image"]
    assert shipper["volumeMounts"] == before["shipper"]["volumeMounts"]
    rank = env_map(shipper["env"])["RANK"]
    assert rank["valueFrom"] == {"fieldRef": {"fieldPath": COMPLETION_INDEX}}
    targets = got.runtime["spec"]["mlPolicy"]["torch"]["envInjection"]["targets"]
    assert targets == [{"jobName": "node", "containerNames": ["shipper"]}]
    assert got.node.main["startupProbe"] == before["pytorch"]["startupProbe"]
    (spread,) = pod["topologySpreadConstraints"]
    assert spread["labelSelector"] == {"matchLabels": {"jobset.sigs.k8s.io/jobset-name": "demo-sidecar"}}
    assert (spread["maxSkew"], spread["whenUnsatisfiable"]) == (1, "DoNotSchedule")
    assert "training.kubeflow.org/" not in got.result.text
    got.result.says(r"replica-type", at_least="warning")
    index = env_map(got.node.main["env"])["REPLICA_INDEX"]["valueFrom"]
    assert index == {"fieldRef": {"fieldPath": COMPLETION_INDEX}}
    got.result.says(r"replica-index|REPLICA_INDEX", r"shift|\+ ?1|plus|one|higher|index")
    assert got.node.annotations["kueue.x-k8s.io/podset-required-topology"] == "demo.example.com/rack"
    assert pod["runtimeClassName"] == "nvidia"
    assert pod["shareProcessNamespace"] is True
    assert pod["enableServiceLinks"] is False
    assert pod["hostAliases"] == [{"ip": "192.0.2.20", "hostnames": ["store.example.com"]}]
    assert got.node.volume("logs")["emptyDir"] == {}
    assert got.accelerators == {"nvidia.com/gpu": 4}


def test_48_every_run_policy_field() -> None:
    """ExitCode becomes a pod failure policy; the TTL is never mapped; the rest is kept or told."""
    got = case(48)
    assert got.form == "runtime"
    assert got.node.pod["restartPolicy"] == "Never"
    assert got.node.job["backoffLimit"] == 3
    (rule,) = got.node.job["podFailurePolicy"]["rules"]
    assert rule["action"] == "FailJob"
    codes = rule["onExitCodes"]
    assert (codes["containerName"], codes["operator"]) == ("node", "In")
    assert codes["values"] == list(range(1, 128))
    assert "ttlSecondsAfterFinished" not in got.result.text
    got.result.says(r"ttl", at_least="warning")
    assert got.spec["activeDeadlineSeconds"] == 86400
    got.result.says(r"deadline", r"\blogs?\b", at_least="warning")
    for field in ("minAvailable", "minResources", "cleanPodPolicy"):
        got.result.says(field, at_least="warning")
    assert got.spec["managedBy"] == "kueue.x-k8s.io/multikueue"
    got.result.says(r"worker cluster|MultiKueue", r"runtime")
    assert got.metadata["labels"]["kueue.x-k8s.io/queue-name"] == "demo-queue"
    for word, kept in (("priorityClass", "demo-high"), ("scheduleTimeoutSeconds", "120")):
        if kept not in got.result.text:
            assert got.result.mentions(word), word
    assert got.trainer["numNodes"] == 4
    assert "numProcPerNode" not in got.trainer
    got.shim_or_none("4")
    assert got.accelerators == {"nvidia.com/gpu": 4}


def test_49_odd_replica_keys_and_missing_counts() -> None:
    """Keys are normalised and missing counts are one; Worker.replicas 0 means no Worker."""
    got = result(49)
    odd, zero = cases(49)
    assert got.migration.converted == 2
    assert (odd.name, zero.name) == ("demo-oddkeys", "demo-zero-workers")
    assert odd.form == "plain"
    assert odd.trainer["numNodes"] == 2
    odd.shim("2")
    assert odd.node.pod.get("restartPolicy", "OnFailure") == "OnFailure"
    assert "cleanPodPolicy" not in got.text
    got.says(r"\bmaster\b|\bWORKER\b|key", r"Master|Worker")
    got.says(r"replicas", r"\b1\b|one")
    got.says(r"cleanPodPolicy", r"ignored|pruned|no effect|unknown")
    got.says(r"restartPolicy", r"ignored|overw|no effect|replaced")
    assert zero.trainer["numNodes"] == 1
    zero.shim("1")
    got.says(r"Worker", r"\b0\b|zero|absent|no worker", at_least="warning")


def test_50_elastic_policy_with_legacy_fields() -> None:
    """The deprecated process count is used but does not enter WORLD_SIZE; the rendezvous stays."""
    got = case(50)
    assert got.form == "plain"
    assert (got.trainer["numNodes"], got.trainer["numProcPerNode"]) == (3, 2)
    got.shim_or_none("3")
    assert got.env["PET_RDZV_BACKEND"]["value"] == "c10d"
    assert got.env["PET_RDZV_ID"]["value"] == "demo-run"
    assert got.env["PET_RDZV_CONF"]["value"] == "join_timeout=600,read_timeout=60"
    assert got.env["PET_MAX_RESTARTS"]["value"] == "3"
    host = r"demo-elastic-old-node-0-[01]\.demo-elastic-old"
    if "PET_RDZV_ENDPOINT" in got.env:
        assert re.fullmatch(host + r":\d+", got.env["PET_RDZV_ENDPOINT"]["value"])
    command = got.trainer["command"]
    assert [command[0], command[1], command[3]] == ["torchrun", "--nnodes=1:4", "train.py"]
    assert re.fullmatch("--rdzv_endpoint=" + host + r":\d+", command[2])
    assert "demo-elastic-old-worker-0" not in got.result.text
    got.result.says(r"min|max|elastic", r"fixed|grow|shrink", at_least="warning")


def test_51_tabs_are_a_yaml_error() -> None:
    """A file indented with tabs is unreadable, with the line of the first tab."""
    assert result(51).refused(r"yaml|tab", exits=(2,)).where.line == 4


def test_52_the_rank_from_a_host_name() -> None:
    """A rank read from the host name is refused with its line: v2 hosts give other numbers."""
    error = result(52).refused(r"HOSTNAME|host name")
    assert error.where
    assert error.where.path.endswith("command")
    assert "RANK" in error.fix


REJECTED = (
    ("demo-two-masters", r"replicas|must be 1|Master"),
    ("demo-request-only-gpu", r"Limit must be set for non overcommitable resources"),
    ("demo-ps-role", r"\bPS\b"),
    ("demo-no-main-container", r"container.*pytorch|pytorch.*container"),
    ("demo-elastic-no-worker", r"elastic.*Worker|Worker.*elastic"),
)


@pytest.mark.parametrize(("name", "reason"), REJECTED)
def test_53_each_rejected_job_has_its_own_reason(name: str, reason: str) -> None:
    """What v1 rejected is refused with its reason and passes through unchanged."""
    got = result(53)
    (chunk,) = [c for c in got.source.chunks if name in c]
    assert chunk in got.text
    first = got.source.lines_of(re.escape(name))[0] - 2
    last = first + len(chunk.splitlines()) - 1
    errors = [f for f in got.migration.findings if str(f.severity) == "error"]
    own = [f for f in errors if f.where and first <= f.where.line <= last]
    assert any(re.search(reason, f"{f.message}\n{f.fix}", re.I | re.S) for f in own)
    assert all(f.where.path for f in own)


def test_53_the_good_job_among_them() -> None:
    """Five refusals do not keep the sixth job from converting."""
    got = result(53)
    (job,) = got.jobs
    good = Case(got, v1_job(53, "demo-good"), job)
    assert (got.migration.converted, got.migration.refused) == (1, 5)
    assert got.migration.exit_code == 1
    assert got.kinds == ["PyTorchJob"] * 5 + ["TrainJob"]
    assert [o["metadata"]["name"] for o in got.objects] == [j.name for j in v1_jobs(53)]
    assert good.form == "plain"
    assert good.trainer["numNodes"] == 1
    good.shim_or_none("1")


def test_54_scalars_where_strings_belong() -> None:
    """Numbers, booleans and dates in string fields keep their source text, or are refused."""
    got = result(54)
    if not got.jobs:
        got.refused(r"string|quot")
        return
    job = case(54)
    assert job.metadata["labels"]["build"] == "007"
    assert job.node.annotations[ISTIO] == "false"
    assert job.node.main["command"] == [
        "python", "train.py", "--lr", "1e-4", "--epochs", "3", "--resume", "yes",
    ]  # fmt: skip
    assert job.env["NCCL_DEBUG_LEVEL"]["value"] == "1"
    assert job.env["USE_CACHE"]["value"] == "yes"
    assert job.env["STARTED"]["value"] == "2024-01-02"
    main = "containers[0]."
    for place in (
        "metadata.labels", "metadata.annotations",
        main + "command[3]", main + "command[5]", main + "command[7]",
        main + "env[0]", main + "env[1]", main + "env[2]",
    ):  # fmt: skip
        got.says(r"string|quot|text", at=place)
    asked = job.trainer["resourcesPerNode"]
    assert quantity(asked["requests"]["cpu"]) == quantity("500m")
    assert quantity(asked["requests"]["memory"]) == 8589934592
    assert quantity(asked["limits"]["memory"]) == 8589934592
    assert quantity(asked["limits"]["cpu"]) == 2
    assert job.trainer["numNodes"] == 1
    job.shim("1")
