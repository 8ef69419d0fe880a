"""Inputs 19 to 36 of migration/cases: one test proves what one input has to keep."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.migrate.acceptance.effective import execute
from tests.migrate.acceptance.inputs import SHIM, env_map, quantity, v1_job, v1_jobs
from tests.migrate.acceptance.oracle import ISTIO, Case, case, cases, edited, result

QUEUE = "kueue.x-k8s.io/queue-name"


@pytest.mark.parametrize(("rank", "v1_role"), [(0, "Master"), (1, "Worker")])
def test_19_each_rank_runs_its_own_script(rank: int, v1_role: str, tmp_path: Path) -> None:
    """Behind the rank switch rank 0 runs the Master's script and rank 1 the Worker's, word by word."""
    if not result(19).jobs:
        pytest.skip("refused: see the next test")
    got = case(19)
    env = {
        "RANK": str(rank),
        "MASTER_ADDR": got.env["MASTER_ADDR"]["value"],
        "MASTER_PORT": got.env["MASTER_PORT"]["value"],
        "WORLD_SIZE": "2",
    }
    before = got.v1.roles[v1_role].main
    after = got.node.main
    v2 = {**env, "PET_NODE_RANK": str(rank), "PET_NNODES": "2", "JOB_COMPLETION_INDEX": str(rank)}
    was = execute([*before["command"], *before["args"]], env, tmp_path / "v1")
    now = execute([*after["command"], *after.get("args", [])], v2, tmp_path / "v2")
    assert f"[--node_rank={rank}]" in was
    assert now == was


def test_19_args_that_differ_between_roles() -> None:
    """Two scripts need a rank switch (or a refusal), and the doubled dollars stay doubled."""
    if not result(19).jobs:
        result(19).refused(r"args|command|script", r"differ|Master|Worker")
        return
    got = case(19)
    assert got.form == "patches"
    assert got.trainer["numNodes"] == 2
    got.shim("2")
    words = "\n".join([*got.trainer.get("command", []), *got.trainer.get("args", [])])
    assert "master on $$(hostname)" in words, "$(hostname) may not be left to Kubernetes"
    assert got.accelerators == {"nvidia.com/gpu": 16}
    assert got.node.volume("dshm")["emptyDir"] == {"medium": "Memory", "sizeLimit": "64Gi"}
    assert set(got.node.mounts) == {"/data", "/dev/shm"}
    assert got.node.pod["nodeSelector"]["demo.example.com/node-health"] == "ok"


def test_20_only_container_has_another_name() -> None:
    """The only container is used with a warning; bare torchrun without rendezvous now starts."""
    got = case(20)
    got.result.says(r"video", r"pytorch", at_least="warning")
    before = got.v1.roles["Worker"].main
    words = [*got.node.main["command"], *got.node.main.get("args", [])]
    if got.node.main.get("workingDir"):
        assert got.form == "runtime"
        assert got.node.main["workingDir"] == "/video"
        assert words == [*before["command"], *before["args"]]
    else:
        text = " ".join(words)
        assert "cd /video" in text
        assert all(token in text for token in [*before["command"], *before["args"]])
    assert got.trainer["numNodes"] == 4
    got.shim_or_none("4")
    assert got.accelerators == {"nvidia.com/gpu": 32, "vpc.amazonaws.com/efa": 128}
    assert got.env["NCCL_SOCKET_IFNAME"]["value"] == "^docker,lo,veth"
    assert got.env["PYTHONPATH"]["value"] == "/video"
    assert got.node.volume("shmem")["emptyDir"] == {"medium": "Memory", "sizeLimit": "64Gi"}
    assert got.node.pod["tolerations"] == got.v1.roles["Worker"].pod["tolerations"]
    assert got.node.labels["app"] == "demo-video"
    got.result.says(r"rendezvous|rank", r"v1", r"\bnow\b|start|work")


def test_21_suspended_kueue_job_with_zero_values() -> None:
    """A suspended, queued job keeps no zero value that would block its unsuspending."""
    got = case(21)
    got.result.passes_through()
    assert got.result.kinds == ["Namespace", "TrainJob"]
    assert got.form == "patches"
    assert got.spec["suspend"] is True
    assert got.metadata["labels"][QUEUE] == "training-queue"
    assert got.trainer["numNodes"] == 2
    got.shim("2")
    assert (got.env["LR"]["value"], got.env["SAVE_EVERY"]["value"]) == ("0.0003", "50")
    assert "value" not in got.env.get("RUN_TAG", {})
    got.result.says(r"RUN_TAG", r"empty|unset")
    assert got.node.mounts["/root/.cache/hub"] == {"name": "hub-cache", "mountPath": "/root/.cache/hub"}
    assert got.node.volume("hub-cache")["emptyDir"] == {}
    assert got.node.pod["nodeSelector"] == {"accelerator": "gpu"}
    assert got.node.pod["tolerations"] == got.v1.roles["Master"].pod["tolerations"]
    got.result.says(r"toleration", r"replace|admission|Kueue|flavor")


def test_22_login_shell_under_volcano() -> None:
    """Roles that differ only in order count as equal; a gang is asked about and not invented."""
    got = case(22)
    got.result.passes_through()
    assert got.result.kinds == ["ConfigMap", "TrainingRuntime", "TrainJob"]
    assert got.form == "runtime"
    assert got.node.pod["schedulerName"] == "volcano"
    assert got.trainer["command"] == ["bash", "-lc", "python /workspace/train.py"]
    assert got.trainer["numNodes"] == 2
    got.shim("2")
    assert "podGroupPolicy" not in got.runtime["spec"]
    got.result.says(r"gang")
    assert got.node.volume("scratch")["hostPath"] == {"path": "/mnt/scratch", "type": "DirectoryOrCreate"}
    assert got.node.volume("script")["configMap"]["name"] == "demo-ddp-script"
    assert set(got.node.mounts) == {"/workspace", "/mnt/scratch"}


def test_23_katib_experiment_is_converted_in_place() -> None:
    """The trial's job becomes a nameless TrainJob, and Katib's own fields follow it."""
    got = case(23)
    experiment = got.result.find("Experiment")
    template = experiment["spec"]["trialTemplate"]
    assert template["trialSpec"] == got.job
    assert not (got.job.get("metadata") or {}).get("name")
    assert got.form in ("patches", "runtime")
    got.compat()
    assert got.trainer["numNodes"] == 2
    assert template["primaryContainerName"] == "node"
    assert template["successCondition"] == 'status.conditions.#(type=="Complete")#|#(status=="True")#'
    assert template["failureCondition"] == 'status.conditions.#(type=="Failed")#|#(status=="True")#'
    labels = template["primaryPodLabels"]
    assert labels["jobset.sigs.k8s.io/replicatedjob-name"] == "node"
    assert labels["batch.kubernetes.io/job-completion-index"] == "0"
    assert template["trialParameters"][0]["reference"] == "lr"
    assert experiment["spec"]["objective"] == {"type": "minimize", "objectiveMetricName": "loss"}
    assert experiment["spec"]["parameters"][0]["feasibleSpace"] == {"min": "1.0e-4", "max": "1.0e-2"}
    assert got.trainer["args"] == [
        "--devices=", "--log=logs/{run}.log", "--lr=${trialParameters.learningRate}",
    ]  # fmt: skip
    assert not any("trialParameters" in f.message and f.unreadable for f in got.result.migration.findings)
    assert got.env["STORE_KEY"]["valueFrom"] == {"secretKeyRef": {"name": "demo-store", "key": "STORE_KEY"}}
    assert got.node.volume("creds-vol")["secret"] == {"secretName": "demo-creds"}
    assert got.node.volume("driver")["hostPath"] == {"path": "/opt/driver"}
    assert got.node.annotations[ISTIO] == "false"


def test_24_job_inside_a_string_of_a_config_map() -> None:
    """Only the string with the PyTorchJob changes; its neighbours keep every byte."""
    got = result(24)
    if not got.jobs:
        got.refused(r"pytorchTemplate")
        return
    job = case(24)
    data = got.find("ConfigMap")["data"]
    assert list(data) == ["defaultTemplate.yaml", "searchTemplate", "pytorchTemplate"]
    before = yaml.safe_load(got.source.text)["data"]
    for key in ("defaultTemplate.yaml", "searchTemplate"):
        assert data[key] == before[key]
    assert "kind: PyTorchJob" not in data["pytorchTemplate"]
    job.compat()
    assert job.trainer["numNodes"] == 3
    assert job.trainer["command"] == ["python3", "train.py", "--lr=${trialParameters.learningRate}"]
    if "# second template" not in got.text:
        got.says(r"comment")


def test_25_app_wrapper_with_pod_sets() -> None:
    """The wrapper's pod sets, queue and suspension follow the component that became a TrainJob."""
    got = case(25)
    wrapper = got.result.find("AppWrapper")
    (component,) = wrapper["spec"]["components"]
    assert component["template"] == got.job
    (pod_set,) = component["podSets"]
    assert pod_set["replicas"] == 3
    assert pod_set["path"].startswith("template.spec.")
    assert "pytorchReplicaSpecs" not in pod_set["path"]
    assert wrapper["metadata"]["labels"][QUEUE] == "team-queue"
    assert QUEUE not in (wrapper["metadata"].get("annotations") or {})
    assert wrapper["spec"]["suspend"] is True
    assert "suspend" not in got.spec
    assert got.form == "runtime"
    assert got.result.kinds == ["TrainingRuntime", "AppWrapper"]
    assert got.node.main["imagePullPolicy"] == "Always"
    assert got.trainer["numNodes"] == 3
    got.shim("3")
    got.result.says(r"AppWrapper", r"TrainJob|trainer\.kubeflow\.org", r"regist|know|support|config|accept|allow")


def test_26_app_wrapper_with_a_heredoc() -> None:
    """Leading blanks of the script survive, and an unset restart policy means OnFailure."""
    got = case(26)
    assert got.form == "patches"
    wrapper = got.result.find("AppWrapper")
    assert wrapper["spec"]["components"][0]["template"] == got.job
    assert wrapper["metadata"]["labels"][QUEUE] == "default-queue"
    assert (got.trainer["numNodes"], got.trainer["numProcPerNode"]) == (2, 2)
    assert got.node.pod.get("restartPolicy", "OnFailure") == "OnFailure"
    (script,) = got.trainer["args"]
    assert script.startswith("  d=$(mktemp -d)\ncat > ")
    assert script == got.v1.roles["Master"].main["args"][0]
    got.shim("4")
    assert got.node.annotations[ISTIO] == "false"
    assert got.accelerators == {"nvidia.com/gpu": 4}


def test_27_nulls_merge_keys_and_an_octal_mode() -> None:
    """WORLD_SIZE is used as the node count, so it is 4; null, empty and zero do not come along."""
    got = case(27)
    assert got.form == "runtime"
    assert got.trainer["numNodes"] == 4
    got.shim("4")
    assert got.trainer["command"] == got.v1.roles["Master"].main["command"]
    asked = got.trainer["resourcesPerNode"]
    if not all("rdma/roce" in asked[part] for part in ("limits", "requests")):
        got.result.says(r"rdma/roce")
    assert got.node.volume("keys")["secret"] == {"secretName": "demo-keys", "defaultMode": 256}
    assert got.node.mounts["/etc/keys"]["readOnly"] is True
    assert got.node.main["envFrom"] == [{"configMapRef": {"name": "demo-net-env"}}]
    (init,) = got.node.pod["initContainers"]
    assert init == {"name": "first", "image": "busybox", "command": ["sh", "-c", "id && ls -l"]}
    assert got.node.pod["priorityClassName"] == "default-priority"
    assert not got.node.pod.get("imagePullSecrets")
    assert got.node.pod["restartPolicy"] == "Never"
    assert got.node.job["backoffLimit"] == 0
    assert got.node.pod["affinity"] == got.v1.roles["Master"].pod["affinity"]
    assert got.metadata["labels"][QUEUE] == "default-queue"
    assert got.metadata["annotations"]["generator.example.com/version"] == "0.7"
    assert got.accelerators == {"nvidia.com/gpu": 32}


def test_28_field_at_the_wrong_level_and_a_custom_port() -> None:
    """A pull policy beside `replicas` never worked and is not applied; the v1 port is gone."""
    got = case(28)
    assert got.form == "patches"
    got.result.says(r"imagePullPolicy", r"ignored|pruned|unknown|no such|not a field|misplaced|level|beside")
    assert "imagePullPolicy" not in got.node.main
    got.result.says(r"pytorchjob-port|24567")
    assert "24567" not in got.result.text
    got.shim("2")
    assert got.trainer["numNodes"] == 2
    assert "command" not in got.trainer
    assert "command" not in got.node.main
    assert got.trainer["args"] == ["--epochs", "2", "--accelerator", "ddp", "--num_nodes", "2"]
    assert got.node.volume("model-volume")["persistentVolumeClaim"] == {"claimName": "demo-files"}
    assert got.node.annotations[ISTIO] == "false"


def test_29_placeholders_in_angle_brackets_are_refused() -> None:
    """A placeholder is no name: both are listed."""
    got = result(29)
    got.refused(r"placeholder|<JOB-NAME>", exits=(2,))
    assert got.mentions("<JOB-NAME>")
    assert got.mentions("<NAMESPACE>")


def test_29_with_names_filled_in() -> None:
    """With real names the job converts: `--` stays, empty resources and `suspend: false` go."""
    got = edited(29, ("<JOB-NAME>", "demo-filled"), ("<NAMESPACE>", "ml-demo"))
    (job,) = got.jobs
    filled = Case(got, v1_job(29), job)
    assert (filled.name, filled.metadata["namespace"]) == ("demo-filled", "ml-demo")
    assert filled.trainer["numNodes"] == 1
    assert filled.trainer["command"] == ["/bin/bash", "-c", "--"]
    assert filled.trainer["args"] == ['python3 -u "run.py"']
    filled.shim("1")
    assert "resourcesPerNode" not in filled.trainer
    assert "suspend" not in filled.spec


def test_30_rendezvous_variables_set_by_the_user() -> None:
    """The user's four values lost in v1 already; each role keeps its own output folder."""
    got = case(30)
    got.two_roles(workers=1)
    got.shim("2")
    for name in SHIM[:4]:
        assert got.result.mentions(name), name
    assert "0.0.0.0" not in got.result.text
    assert "demo-two-node-finetune-master-0" not in got.result.text
    outputs = [env_map(role.main["env"])["OUTPUT_DIR"]["value"] for role in got.roles.values()]
    assert outputs == ["/persistent/models", "/tmp/models"]
    assert got.node.mounts["/persistent"]["name"] == "models"
    assert "models" not in got.worker.volume_names
    assert not got.worker.mounts
    for role in got.roles.values():
        assert not {"command", "args"} & set(role.main)
    if not any(p["containerPort"] == 23456 for p in got.node.main.get("ports") or []):
        got.result.says(r"port", r"23456|master-port")
    assert got.metadata["annotations"]["ui.example.com/connection"] == "true"
    assert got.node.annotations["ui.example.com/component"] == "master"
    assert got.worker.annotations["ui.example.com/component"] == "worker"


def test_31_tolerations_labels_and_ports_of_a_role() -> None:
    """Only Workers tolerate spot nodes, python stays one process per pod, port 29500 is not doubled."""
    got = case(31)
    got.two_roles(workers=3)
    got.shim("4")
    assert "torchrun" not in got.result.text
    assert [t["key"] for t in got.node.pod["tolerations"]] == ["nvidia.com/gpu"]
    assert [t["key"] for t in got.worker.pod["tolerations"]] == ["nvidia.com/gpu", "demo.example.com/spot"]
    envs = [env_map(role.main["env"]) for role in got.roles.values()]
    assert [env.get("NCCL_NET_GDR_LEVEL", {}).get("value") for env in envs] == ["3", None]
    for role in got.roles.values():
        assert [p["containerPort"] for p in role.main.get("ports") or []].count(29500) <= 1
        assert role.labels["app"] == "demo-spot"
        assert set(role.mounts) == {"/workspace/out", "/dev/shm"}
        assert role.main["command"] == ["python", "src/train.py"]
        assert role.main["args"] == ["--config", "small.yaml"]
    assert (got.node.labels["role"], got.worker.labels["role"]) == ("master", "worker")
    got.result.says(r"label", r"role")
    assert got.accelerators == {"nvidia.com/gpu": 32}


def test_32_live_dump_of_a_list() -> None:
    """Server fields vanish before roles are compared; running and finished jobs are warned about."""
    got = result(32)
    running, done = cases(32)
    assert (running.name, done.name) == ("demo-running", "demo-done")
    assert got.migration.converted == 2
    assert running.form == "plain"
    assert (running.trainer["numNodes"], done.trainer["numNodes"]) == (4, 1)
    running.shim("4")
    done.shim("1")
    for gone in (
        "uid:", "resourceVersion: \"100", "managedFields", "last-applied", "creationTimestamp", "generation:",
        "status:", "init-pytorch", "23456", "nslookup", "completionTime",
    ):  # fmt: skip
        assert gone not in got.text, gone
    for job in (running, done):
        assert job.metadata["namespace"] == "ml-demo"
        names = [entry["name"] for entry in job.trainer["env"]]
        assert names.count("PYTHONUNBUFFERED") == 1
    got.says(r"running", at_least="warning", within="demo-running")
    got.says(r"again|succeeded|finished|completed", at_least="warning", within="demo-done")


@pytest.mark.parametrize(
    ("number", "api_version"), [(33, "kubeflow.org/v1alpha2"), (34, "training.example.com/v1alpha1")]
)
def test_33_34_other_api_versions_are_refused(number: int, api_version: str) -> None:
    """A PyTorchJob of another version or group is refused with its exact apiVersion."""
    assert api_version in result(number).refused(r"apiVersion|version|group", api_version).message


def test_35_json_map_of_rendered_files_is_refused() -> None:
    """A map of file names is no object: the key with the job and its open placeholders are named."""
    got = result(35)
    got.refused(r"not a kubernetes object|no apiVersion|no kind|apiVersion|object", exits=(1, 2))
    assert got.mentions("job.yaml")
    assert got.mentions("PyTorchJob")
    for name in ("name", "namespace", "container_image"):
        assert got.mentions("{{" + name + "}}"), name


def test_36_json_job_loses_nothing() -> None:
    """JSON is read like YAML, and every pod field arrives."""
    got = case(36)
    before = got.v1.roles["Master"]
    assert got.form == "runtime"
    assert got.trainer["numNodes"] == 1
    got.shim("1")
    assert not {"command", "args"} & set(got.trainer)
    assert not {"command", "args"} & set(got.node.main)
    for field in (
        "tolerations", "priorityClassName", "serviceAccountName", "terminationGracePeriodSeconds",
        "securityContext", "initContainers", "affinity", "volumes",
    ):  # fmt: skip
        assert got.node.pod[field] == before.pod[field], field
    assert got.node.main["securityContext"] == {"capabilities": {"add": ["IPC_LOCK"]}}
    assert got.node.main["volumeMounts"] == before.main["volumeMounts"]
    assert got.env["JOB_TAG"]["value"] == "demo-json"
    asked = {"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 16}
    for part in ("limits", "requests"):
        values = got.trainer["resourcesPerNode"][part]
        assert {key: quantity(value) for key, value in values.items()} == asked
    assert got.node.labels["app"] == "demo-json"
    assert got.metadata["labels"]["app"] == "demo-json"
    assert got.metadata["annotations"]["demo.example.com/owner"] == "team-a"
    assert got.accelerators == {"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 16}
    assert len(v1_jobs(36)) == 1
