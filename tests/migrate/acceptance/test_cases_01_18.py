"""Inputs 01 to 18 of migration/cases: one test proves what one input has to keep."""

from __future__ import annotations

import pytest

from tests.migrate.acceptance.inputs import env_map, v1_job
from tests.migrate.acceptance.oracle import ISTIO, Case, case, result

QUEUE = "kueue.x-k8s.io/queue-name"
# Words of the success rule: one worker was enough in v1, every pod has to end well in v2.
ANY_OR_ALL = r"\b(any|one|first|single|all|every)\b.{0,40}(worker|pod|node)"


def fixed_size(got: Case) -> None:
    """The bounds of elasticPolicy are reported as lost."""
    got.result.says(r"min|max|elastic", r"fixed|grow|shrink|elastic.{0,40}(lost|dropped)", at_least="warning")


def test_01_master_and_worker_with_plain_python() -> None:
    """Two equal roles become two nodes with the shim; Always on :latest is dropped aloud."""
    got = case(1)
    assert got.form == "plain"
    assert got.name == "demo-basic"
    assert got.metadata["namespace"] == "ml-demo"
    assert got.trainer["numNodes"] == 2
    got.shim("2")
    assert "imagePullPolicy" not in got.result.text
    got.result.says(r"imagePullPolicy|pull policy", r"default")
    assert "resourcesPerNode" not in got.trainer
    got.result.says(r"resources", r"runtime|default")
    assert got.result.text.endswith("\n")


def test_02_master_only_with_image_entrypoint_and_claim() -> None:
    """The image's own entrypoint stays, and annotations stay on their own level."""
    got = case(2)
    assert got.form == "patches"
    assert got.trainer["numNodes"] == 1
    got.shim("1")
    assert got.trainer["image"] == "registry.example.com/team/train-entry"
    assert not {"command", "args"} & set(got.trainer)
    assert not {"command", "args"} & set(got.node.main), "the runtime's command would replace the entrypoint"
    assert got.metadata["annotations"]["ui.example.com/connection"] == "true"
    assert got.metadata["annotations"]["ui.example.com/workbench"] == "demo-bench"
    assert "ui.example.com/component" not in got.metadata["annotations"]
    assert got.node.annotations["ui.example.com/component"] == "trainer"
    assert "ui.example.com/connection" not in got.node.annotations
    assert got.node.volume("models")["persistentVolumeClaim"] == {"claimName": "demo-models"}
    assert got.node.mounts["/models"]["name"] == "models"
    assert got.trainer["resourcesPerNode"] == {
        "limits": {"cpu": "4", "memory": "10Gi"},
        "requests": {"cpu": "3", "memory": "6Gi"},
    }
    got.result.says(r"process", r"cpu", r"host|request")


def test_03_istio_label_and_pull_policy_always_on_a_pinned_tag() -> None:
    """A pull policy that is not the default is kept, and the mesh label gets its annotation."""
    got = case(3)
    if got.form == "runtime":
        assert got.node.main["imagePullPolicy"] == "Always"
    else:
        got.result.says(r"imagePullPolicy|pull policy", r"Always|drop", at_least="warning")
    assert got.trainer["numNodes"] == 1
    got.shim("1")
    assert got.node.labels[ISTIO] == "false"
    assert got.node.annotations[ISTIO] == "false"
    assert got.trainer["resourcesPerNode"] == {
        "limits": {"memory": "2Gi", "cpu": "900m"},
        "requests": {"memory": "400Mi", "cpu": "300m"},
    }
    kept = ("# demo: smallest CPU job", "# pinned tag", "# Worker:", "#   replicas: 0")
    if not all(comment in got.result.text for comment in kept):
        got.result.says(r"comment")


def test_04_args_only_under_another_scheduler() -> None:
    """args never become a command, and the scheduler's name needs a runtime of its own."""
    got = case(4)
    assert got.form == "runtime"
    assert got.node.pod["schedulerName"] == "demo-gang-scheduler"
    assert got.trainer["numNodes"] == 3
    got.shim("3")
    assert got.trainer["args"] == ["--backend", "nccl", "--batch-size", "64"]
    assert "command" not in got.trainer
    assert "command" not in got.node.main
    assert got.trainer["resourcesPerNode"] == {"limits": {"nvidia.com/gpu": "1"}}
    assert got.metadata["labels"]["scheduler.example.com/queue"] == "queue-a"
    got.result.says(r"scheduler\.example\.com/queue|queue", r"scheduler", r"TrainJob|metadata|label")


def test_05_torchrun_with_unquoted_nproc_per_node() -> None:
    """An integer nprocPerNode counts as its text: two processes on each of two nodes."""
    got = case(5)
    assert got.form == "plain"
    assert got.trainer["numNodes"] == 2
    assert got.trainer["numProcPerNode"] == 2, "the CPU rule would start 3"
    got.shim_or_none("4")
    got.result.says(r"quot|string|integer|number|text", at="nprocPerNode")
    assert got.trainer["resourcesPerNode"]["requests"] == {"cpu": "2500m"}


def test_06_duplicate_command_key() -> None:
    """The key given twice is named with its line, and flags of a script are not torchrun's."""
    got = result(6)
    lines = got.source.lines_of(r"^\s+command:")[-2:]
    reports = [f for f in got.migration.findings if f.where and f.where.line in lines]
    assert any("command" in f.message and ("duplicate" in f.message or "twice" in f.message) for f in reports)
    if not got.jobs:
        got.refused(r"duplicate|twice", exits=(1, 2))
        return
    job = case(6)
    assert job.form == "runtime"
    assert job.node.pod["restartPolicy"] == "Never"
    assert job.node.job["backoffLimit"] == 0
    assert job.node.pod["hostIPC"] is True
    assert job.trainer["numNodes"] == 2
    assert "numProcPerNode" not in job.trainer, "the flag belongs to the script"
    job.shim("2")
    assert job.trainer["command"] == v1_job(6).roles["Master"].main["command"]
    assert job.node.volume("shared")["persistentVolumeClaim"] == {"claimName": "demo-shared"}
    assert job.node.mounts["/shared"]["name"] == "shared"
    assert job.node.annotations[ISTIO] == "false"


def test_07_lifecycle_hooks_on_the_master_only() -> None:
    """Only rank 0 keeps the hooks, and the hard-coded address is kept with a warning."""
    got = case(7)
    got.two_roles(workers=3)
    got.shim("4")
    assert got.node.main["lifecycle"] == got.v1.roles["Master"].main["lifecycle"]
    assert "lifecycle" not in got.worker.main
    for role in got.roles.values():
        assert role.main["command"][-1].endswith("--init=tcp://192.0.2.10:22222")
        assert role.pod["hostNetwork"] is True
        assert role.pod["hostIPC"] is True
        assert role.pod["dnsPolicy"] == "ClusterFirstWithHostNet"
        assert role.pod["nodeSelector"] == {"kubernetes.io/hostname": "node-a"}
        assert role.annotations[ISTIO] == "false"
    got.result.says(r"192\.0\.2\.10", r"rank 0|master|first pod", r"node|address|host", at_least="warning")


def test_08_node_affinity_differs_between_roles() -> None:
    """The Master stays on its own node, nothing is retried, and the shared host port is named."""
    got = case(8)
    got.two_roles(workers=3)
    got.shim("4")
    assert got.node.pod["affinity"] == got.v1.roles["Master"].pod["affinity"]
    assert got.worker.pod["affinity"] == got.v1.roles["Worker"].pod["affinity"]
    for role in got.roles.values():
        assert role.pod["restartPolicy"] == "Never"
        assert role.job["backoffLimit"] == 0
        assert role.pod["hostNetwork"] is True
        assert role.pod["hostIPC"] is True
        assert role.pod["dnsPolicy"] == "ClusterFirstWithHostNet"
    got.result.says(r"hostNetwork|host network", r"port", r"node", at_least="warning")


def test_09_one_python_process_with_four_gpus() -> None:
    """Plain python stays one process with four GPUs; nobody turns it into torchrun."""
    got = case(9)
    assert got.form == "runtime"
    assert got.node.pod["hostIPC"] is True
    assert got.trainer["numNodes"] == 1
    assert got.trainer["command"] == ["python", "-u", "data_parallel.py"]
    got.shim("1")
    assert "torchrun" not in got.result.text
    assert got.accelerators == {"nvidia.com/gpu": 4}
    assert got.node.pod["affinity"] == got.v1.roles["Master"].pod["affinity"]


def test_10_rdma_privileged_and_tty() -> None:
    """An alias counts as a role, quantities keep their text, and the pod needs a runtime."""
    got = case(10)
    main = got.node.main
    assert got.form == "runtime"
    assert got.trainer["numNodes"] == 2
    got.shim("2")
    assert got.trainer["resourcesPerNode"] == got.v1.roles["Master"].main["resources"]
    assert got.trainer["resourcesPerNode"]["limits"]["rdma/shared_hca"] == "1k"
    assert got.node.pod["restartPolicy"] == "Never"
    assert got.node.job["backoffLimit"] == 0
    assert (got.node.pod["hostNetwork"], got.node.pod["hostIPC"]) == (True, True)
    assert "dnsPolicy" not in got.node.pod
    assert (main["stdin"], main["tty"]) == (True, True)
    assert main["securityContext"] == {"privileged": True, "seccompProfile": {"type": "Unconfined"}}
    assert got.env["POD_IP"]["valueFrom"] == {"fieldRef": {"fieldPath": "status.podIP"}}
    assert set(got.node.mounts) == {"/dev/shm", "/workspace", "/io"}
    assert got.node.volume("workspace")["hostPath"] == {"path": "/srv/workspace", "type": "Directory"}
    assert got.node.volume("dshm")["emptyDir"] == {"medium": "Memory", "sizeLimit": "4Gi"}
    got.result.says(r"LOG_CONTAINER", r"pytorch", at_least="warning")
    got.result.says(r"hostNetwork|host network", r"ClusterFirstWithHostNet|dnsPolicy", at_least="warning")


def test_11_script_in_a_config_map_and_a_claim_of_the_master() -> None:
    """Three other documents stay, and the ReadWriteOnce claim does not reach the Worker unseen."""
    got = result(11)
    got.passes_through()
    if not got.jobs:
        got.says(r"ReadWriteOnce|RWO", r"demo-output|claim|output", at_least="error")
        return
    job = case(11)
    job.shim("2")
    if job.form != "two-role":
        got.says(r"ReadWriteOnce|RWO", r"demo-output|claim|output", at_least="warning")
        return
    assert [k for k in got.kinds if not k.startswith("Train")] == [
        "Namespace", "ConfigMap", "PersistentVolumeClaim",
    ]  # fmt: skip
    assert got.kinds[-2:] == ["TrainingRuntime", "TrainJob"]
    job.two_roles(workers=1)
    assert set(job.node.mounts) == {"/workspace", "/output", "/data"}
    assert set(job.worker.mounts) == {"/workspace", "/data"}
    assert "output" not in job.worker.volume_names
    for role in job.roles.values():
        assert role.volume("cache")["emptyDir"] == {}
        assert role.main["command"] == job.v1.roles["Worker"].main["command"]


def test_12_another_claim_per_role() -> None:
    """The same volume name leads to another claim in each role; init containers come along."""
    got = case(12)
    got.two_roles(workers=1)
    got.shim("2")
    assert got.node.volume("data")["persistentVolumeClaim"]["claimName"] == "demo-llm-data-master"
    assert got.worker.volume("data")["persistentVolumeClaim"]["claimName"] == "demo-llm-data-worker-0"
    token = {"secretKeyRef": {"name": "demo-secrets", "key": "hub-token", "optional": True}}
    for v1_role, role in (("Master", got.node), ("Worker", got.worker)):
        assert role.pod["initContainers"] == got.v1.roles[v1_role].pod["initContainers"]
        assert role.main["envFrom"] == [{"configMapRef": {"name": "demo-llm-config"}}]
        assert env_map(role.main["env"])["HUB_TOKEN"]["valueFrom"] == token
        assert role.labels["app.kubernetes.io/name"] == "demo-llm"
        assert role.main.get("imagePullPolicy") in (None, "IfNotPresent")
        assert role.volume("shm")["emptyDir"] == {"medium": "Memory", "sizeLimit": "8Gi"}
    assert (got.node.labels["role"], got.worker.labels["role"]) == ("master", "worker")
    assert got.node.annotations["prometheus.io/port"] == "8080"
    assert "prometheus.io/scrape" not in got.worker.annotations
    assert got.metadata["labels"]["app.kubernetes.io/managed-by"] == "Helm"


def test_13_helm_template_is_refused() -> None:
    """A Helm template is not guessed at: render it first, and here is its first line."""
    finding = result(13).refused(r"helm template", r"render", exits=(2,))
    assert finding.where.line == 1


def test_14_script_that_reads_only_pet_variables() -> None:
    """backoffLimit needs a runtime; modes stay integers and the host's shm stays as it is."""
    got = case(14)
    got.result.passes_through()
    assert got.form == "runtime"
    assert got.node.job["backoffLimit"] == 20
    assert (got.trainer["numNodes"], got.trainer["numProcPerNode"]) == (4, 8)
    got.shim("32")
    assert got.trainer["command"] == ["/etc/config/run.sh"]
    config = got.node.volume("config")["configMap"]
    assert config["defaultMode"] == 420
    assert config["items"] == [{"key": "run.sh", "mode": 365, "path": "run.sh"}]
    assert got.node.volume("shm")["hostPath"] == {"path": "/dev/shm", "type": "Directory"}
    got.result.says(r"/dev/shm", r"emptyDir|Memory")
    assert got.node.volume("scratch") == next(
        v for v in got.v1.roles["Master"].pod["volumes"] if v["name"] == "scratch"
    )
    assert got.node.pod["tolerations"] == got.v1.roles["Master"].pod["tolerations"]
    assert got.node.pod["nodeSelector"] == {"node.kubernetes.io/instance-type": "demo.8xgpu"}
    assert got.node.annotations["autoscaler.example.com/do-not-disrupt"] == "true"
    assert got.metadata["labels"]["app.kubernetes.io/instance"] == "demo"
    assert got.accelerators == {"nvidia.com/gpu": 32}
    got.result.says(r"cleanPodPolicy")


def test_15_elastic_job_on_cpus_with_etcd() -> None:
    """An elastic job gets a fixed size, keeps its etcd, and every loss is told."""
    got = case(15)
    assert got.form == "runtime"
    assert got.node.main["imagePullPolicy"] == "IfNotPresent"
    assert got.trainer["numNodes"] == 2
    assert got.trainer.get("numProcPerNode", 4) == 4
    assert got.env["PET_RDZV_BACKEND"]["value"] == "etcd"
    assert got.env["PET_RDZV_ENDPOINT"]["value"] == "demo-etcd:2379"
    assert got.env["PET_MAX_RESTARTS"]["value"] == "30"
    assert got.env["LOGLEVEL"]["value"] == "DEBUG"
    got.shim_or_none("2")
    fixed_size(got)
    got.result.says(r"metrics|HPA|autoscal", at_least="warning")
    got.result.says(ANY_OR_ALL, r"succe|finish|complet|done|end", at_least="warning")
    got.result.says(r"process", r"cpu", r"host|request|\b4\b")


def test_16_leftovers_of_envsubst_are_refused() -> None:
    """Every unresolved placeholder is listed, also the unbraced one in a command without a shell."""
    got = result(16)
    got.refused(r"placeholder|unresolved|envsubst|substitut", exits=(2,))
    for name in ("NAMESPACE", "NUM_NODES", "IMAGE_URI", "GPU_PER_NODE", "EFA_PER_NODE", "HUB_TOKEN"):
        assert got.mentions(name), name
    texts = [f"{f.message} {f.fix} {f.where.path} line {f.where.line}" for f in got.migration.findings if f.where]
    flags = got.source.lines_of(r"--nnodes=\$NUM_NODES")
    assert any("NUM_NODES" in t and ("command" in t or "--nnodes" in t or f"line {flags[0]}" in t) for t in texts)
    assert any("replicas" in t for t in texts)


def test_17_kueue_queue_and_other_documents() -> None:
    """Queue labels go on the TrainJob, the pod label that an affinity selects survives."""
    got = case(17)
    got.result.passes_through()
    assert got.result.kinds == ["Service", "Deployment", "TrainingRuntime", "TrainJob"]
    assert got.form == "runtime"
    assert got.node.main["imagePullPolicy"] == "IfNotPresent"
    assert got.metadata["labels"][QUEUE] == "team-a-queue"
    assert got.metadata["labels"]["kueue.x-k8s.io/priority-class"] == "high"
    got.result.says(r"queue", r"\bpods?\b|template")
    assert got.node.labels["app"] == "demo-elastic"
    assert got.node.pod["affinity"] == got.v1.roles["Worker"].pod["affinity"]
    assert "--nnodes=3" in got.trainer["command"][-1]
    got.result.says(r"--nnodes", at_least="warning")
    assert got.metadata["annotations"]["jobs.example.com/auto-resume"] == "true"
    assert got.metadata["annotations"]["jobs.example.com/max-retry"] == "2"
    got.result.says(r"jobs\.example\.com|annotation", r"controller|PyTorchJob|watch")
    assert got.trainer["numNodes"] == 3
    got.shim("3")
    assert got.env["PET_RDZV_BACKEND"]["value"] == "etcd"
    assert got.env["PET_RDZV_ENDPOINT"]["value"] == "etcd-demo:2379"
    assert got.env["PET_MAX_RESTARTS"]["value"] == "50"
    fixed_size(got)


def test_18_torchrun_behind_another_program() -> None:
    """A prefixed torchrun gets shim and warning; an accelerator without "gpu" gets its count."""
    got = case(18)
    assert got.form == "patches"
    assert got.trainer["numNodes"] == 1
    assert got.trainer["numProcPerNode"] == 8
    got.shim("1")
    got.result.says(r"demo-graph-compile|torchrun|launcher", at_least="warning")
    assert got.accelerators == {"aws.amazon.com/neuron": 16, "vpc.amazonaws.com/efa": 8}
    assert got.env["PET_RDZV_BACKEND"]["value"] == "etcd"
    assert got.env["PET_RDZV_ENDPOINT"]["value"] == "etcd:2379"
    assert got.env["PET_MAX_RESTARTS"]["value"] == "10"
    if "dev" not in got.node.volume_names:
        got.result.says(r"volume", r"\bdev\b")
    assert set(got.node.mounts) == {"/dev/shm", "/data", "/var/log/demo"}
    assert got.node.labels["app"] == "demo-compile"
    fixed_size(got)


@pytest.mark.parametrize("number", [15, 17, 18])
def test_v1_elastic_bounds_do_not_become_a_node_count(number: int) -> None:
    """The nodes of an elastic job are the replicas it started with, not a bound."""
    got = case(number)
    assert got.trainer["numNodes"] == got.v1.pods
