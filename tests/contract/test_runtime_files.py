"""What every file in `runtimes/` promises (runtimes/README.md), read from the bytes that ship."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainjob.launch.policy import FINAL_CODES
from trainjob.storage import RUN_VARIABLE

ROOT = Path(__file__).resolve().parents[2] / "runtimes"
SINGLE = sorted(f for f in ROOT.glob("*.yaml") if f.name != "kustomization.yaml")
MULTI = sorted(f for f in (ROOT / "multi-node").glob("*.yaml") if f.name != "kustomization.yaml")
FILES = SINGLE + MULTI
COMPAT = [f for f in FILES if "v1-compat" in f.name]
OURS = [f for f in FILES if f not in COMPAT]
LABEL = "trainjob.dev/"

# OpenShift AI's operator owns these and puts them back.
RESERVED = re.compile(r"torch-distributed|training-hub|speculator-|vllm-extract-cuda$|openmpi-cuda$")
# JobSet's own expression: no hyphens.
RULE_NAME = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
IMAGE = re.compile(r"[a-z0-9./-]+(:(?!latest)[\w.-]*\d[\w.-]*)?(@sha256:[0-9a-f]{64})?")


def load(file: Path) -> dict[str, Any]:
    (doc,) = yaml.safe_load_all(file.read_text("utf-8"))
    return doc  # type: ignore[no-any-return]


def job(doc: dict[str, Any]) -> dict[str, Any]:
    (only,) = doc["spec"]["template"]["spec"]["replicatedJobs"]
    return only  # type: ignore[no-any-return]


def template(doc: dict[str, Any]) -> dict[str, Any]:
    return job(doc)["template"]["spec"]["template"]  # type: ignore[no-any-return]


def container(doc: dict[str, Any]) -> dict[str, Any]:
    (only,) = template(doc)["spec"]["containers"]
    return only  # type: ignore[no-any-return]


def env(doc: dict[str, Any]) -> dict[str, str]:
    return {item["name"]: item["value"] for item in container(doc)["env"] if "value" in item}


def every(files: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("file", files, ids=lambda f: f.stem)


def test_what_there_is() -> None:
    assert [f.stem for f in SINGLE] == [
        "torch-fsdp-1gpu", "torch-fsdp-2gpu", "torch-fsdp-4gpu", "torch-fsdp-8gpu", "torch-fsdp-cpu",
        "torch-lora-1gpu", "torch-v1-compat",
    ]  # fmt: skip
    assert [f.stem for f in MULTI] == ["torch-fsdp-multinode", "torch-v1-compat-multinode"]


# --- every runtime --------------------------------------------------------------------------------------


@every(FILES)
def test_names_and_labels(file: Path) -> None:
    doc = load(file)
    assert doc["apiVersion"] == "trainer.kubeflow.org/v1alpha1"
    assert doc["kind"] == "ClusterTrainingRuntime"
    assert doc["metadata"].keys() == {"name", "labels", "annotations"}
    name = doc["metadata"]["name"]
    assert name == file.stem
    assert not RESERVED.match(name)
    labels = dict(doc["metadata"]["labels"])
    assert labels.pop("trainer.kubeflow.org/framework") == "torch"
    gated = file in MULTI
    accelerator = "any" if file in COMPAT else "none" if name.endswith("-cpu") else "nvidia"
    assert labels == {
        f"{LABEL}topology": "multi-node" if gated else "single-node",
        f"{LABEL}accelerator": accelerator,
        f"{LABEL}purpose": "v1-compat" if file in COMPAT else "lora" if "lora" in name else "fsdp",
        f"{LABEL}maturity": "gated" if gated else "stable",
    }
    (summary,) = doc["metadata"]["annotations"].values()
    assert doc["metadata"]["annotations"] == {f"{LABEL}summary": summary}
    assert re.fullmatch(r"[A-Z][^.]*\.", summary), "one sentence"


@every(FILES)
def test_the_shape_that_trainer_needs(file: Path) -> None:
    doc = load(file)
    assert doc["spec"]["mlPolicy"] == {"numNodes": 2 if file in MULTI else 1, "torch": {}}
    jobset = doc["spec"]["template"]["spec"]
    assert jobset.keys() <= {"failurePolicy", "replicatedJobs"}
    assert job(doc)["name"] == "node"
    assert job(doc)["template"]["metadata"] == {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}}
    assert container(doc)["name"] == "node"
    # A failed job would run again once its JobSet is gone (trainer#3779).
    assert "ttlSecondsAfterFinished" not in file.read_text("utf-8")


@every(FILES)
def test_image_has_a_version(file: Path) -> None:
    image = container(load(file))["image"]
    assert IMAGE.fullmatch(image), image
    assert ":" in image, "neither tag nor digest"


@pytest.mark.parametrize("image", ["pytorch/pytorch:latest", "pytorch/pytorch:stable", "a b:1"])
def test_image_rule_refuses(image: str) -> None:
    assert not IMAGE.fullmatch(image)


@every(FILES)
def test_header_says_how_to_launch(file: Path) -> None:
    """The TrainJob in the comment is one that works: it names this runtime, its nodes and its container."""
    lines = []
    for line in file.read_text("utf-8").splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.removeprefix("#").removeprefix(" "))
    assert lines[0].startswith(f"{file.stem}: ")
    text = "\n".join(lines)
    assert "Launch it: " in text
    assert "When not to use it: " in text
    example = yaml.safe_load("\n".join(line for line in lines if line.startswith("  ")))
    assert (example["apiVersion"], example["kind"]) == ("trainer.kubeflow.org/v1alpha1", "TrainJob")
    spec = example["spec"]
    assert spec["runtimeRef"] == {"name": file.stem}
    assert (spec["trainer"]["numNodes"] > 1) == (file in MULTI)
    assert spec["trainer"]["command"]
    if file in COMPAT:
        assert "runtimePatches" not in spec
        return
    (patch,) = spec["runtimePatches"]
    (patched,) = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    pod = patched["template"]["spec"]["template"]["spec"]
    (volume,), (changed,) = pod["volumes"], pod["containers"]
    assert volume.keys() == {"name", "persistentVolumeClaim"}
    assert not volume["name"].startswith("runtime-")
    assert changed == {"name": "node", "volumeMounts": [{"name": volume["name"], "mountPath": "/checkpoints"}]}


# --- runtimes for new jobs --------------------------------------------------------------------------------


@every(OURS)
def test_a_lost_pod_restarts_the_whole_set(file: Path) -> None:
    doc = load(file)
    policy = doc["spec"]["template"]["spec"]["failurePolicy"]
    assert policy["maxRestarts"] == (5 if file in MULTI else 3)
    assert policy["restartStrategy"] == "BlockingRecreate"
    final, disruption = policy["rules"]
    assert all(RULE_NAME.fullmatch(rule["name"]) for rule in policy["rules"])
    assert all(rule["onJobFailureReasons"] == ["PodFailurePolicy"] for rule in policy["rules"])
    # Every JobSet from 0.8 (Trainer 2.0) on knows this action without a feature gate.
    assert disruption["action"] == "RestartJobSetAndIgnoreMaxRestarts"
    spec = job(doc)["template"]["spec"]
    assert spec["backoffLimit"] == 0
    on_disruption, told, sysexits = spec["podFailurePolicy"]["rules"]
    assert on_disruption == {
        "action": "FailJob",
        "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
    }
    assert told["onExitCodes"]["values"] == [143]
    assert sysexits["onExitCodes"]["values"] == list(FINAL_CODES), "what the launcher knows"
    # Kubernetes 1.34, pkg/controller/job/pod_failure_policy.go: the message that JobSet's rule looks at.
    assert final["action"] == "FailJobSet"
    (pattern,) = final["onJobFailureMessagePatterns"]
    said = "Container node for pod team/x failed with exit code {} matching FailJob rule at index 2"
    assert [code for code in range(256) if re.search(pattern, said.format(code))] == list(FINAL_CODES)
    assert not re.search(pattern, "Pod team/x-64 has condition DisruptionTarget matching FailJob rule at index 0")
    assert template(doc)["spec"]["restartPolicy"] == "Never", "podFailurePolicy needs it"


@every(OURS)
def test_the_program_has_time_to_end(file: Path) -> None:
    doc = load(file)
    grace = template(doc)["spec"]["terminationGracePeriodSeconds"]
    assert int(env(doc).get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "30")) + 30 <= grace


@every(OURS)
def test_pod_passes_the_restricted_standard_for_any_user_id(file: Path) -> None:
    doc = load(file)
    spec = template(doc)["spec"]
    assert spec["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert container(doc)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    assert spec["automountServiceAccountToken"] is False
    assert spec["enableServiceLinks"] is False
    inject = {"sidecar.istio.io/inject": "false"}
    assert template(doc)["metadata"] == {"labels": inject, "annotations": inject}
    assert container(doc)["terminationMessagePolicy"] == "FallbackToLogsOnError"


@every(OURS)
def test_volumes(file: Path) -> None:
    doc = load(file)
    volumes = {v["name"]: v for v in template(doc)["spec"]["volumes"]}
    mounts = {m["mountPath"]: m["name"] for m in container(doc)["volumeMounts"]}
    assert mounts == {
        "/dev/shm": "runtime-shm",
        "/home/trainer": "runtime-home",
        "/cache": "runtime-cache",
        "/checkpoints": "runtime-checkpoints",
    }
    # A TrainJob re-points a path; attributes of our mount would stay behind.
    assert all(m.keys() == {"name", "mountPath"} for m in container(doc)["volumeMounts"])
    assert set(mounts.values()) == volumes.keys()
    assert all(v.keys() == {"name", "emptyDir"} for v in volumes.values()), "no ConfigMap, Secret or claim"
    memory = container(doc)["resources"]["limits"]["memory"]
    shm = volumes["runtime-shm"]["emptyDir"]
    assert shm["medium"] == "Memory"
    assert mebibytes(shm["sizeLimit"]) * 8 <= mebibytes(memory), "/dev/shm counts as memory of the pod"


def mebibytes(quantity: str) -> int:
    number, unit = quantity[:-2], quantity[-2:]
    return int(number) * {"Mi": 1, "Gi": 1024}[unit]


@every(OURS)
def test_folders_are_writable(file: Path) -> None:
    doc = load(file)
    roots = tuple(m["mountPath"] for m in container(doc)["volumeMounts"])
    variables = env(doc)
    for name in ("HOME", "XDG_CACHE_HOME", "HF_HOME", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
        assert variables[name].startswith(roots), name
    assert variables["USER"]
    assert variables["PYTHONUNBUFFERED"] == "1"
    gpu = load(file)["metadata"]["labels"][f"{LABEL}accelerator"] == "nvidia"
    assert ("NCCL_DEBUG" in variables) == (gpu and "lora" not in file.stem)


@every(OURS)
def test_a_run_and_its_restarts_have_a_name(file: Path) -> None:
    sources = {item["name"]: item.get("valueFrom") for item in container(load(file))["env"]}
    assert sources[RUN_VARIABLE] == {"fieldRef": {"fieldPath": "metadata.labels['jobset.sigs.k8s.io/jobset-uid']"}}


@every(OURS)
def test_resources(file: Path) -> None:
    """Complete, equal and quoted: quotas, process counts and the SDK read them."""
    doc = load(file)
    resources = container(doc)["resources"]
    assert resources["requests"] == resources["limits"]
    limits = resources["limits"]
    assert all(isinstance(value, str) for value in limits.values())
    gpus = {"torch-fsdp-cpu": None, "torch-lora-1gpu": "1", "torch-fsdp-multinode": "8"}
    count = gpus.get(file.stem, file.stem.removesuffix("gpu").rpartition("-")[2])
    assert limits.get("nvidia.com/gpu") == count
    assert limits.keys() == {"cpu", "memory", "ephemeral-storage"} | ({"nvidia.com/gpu"} if count else set())
    text = file.read_text("utf-8")
    assert not re.search(r"^\s+(cpu|memory|ephemeral-storage|nvidia.com/gpu|sizeLimit): [^\"]", text, re.M)


# --- runtimes for migrated jobs ------------------------------------------------------------------------------


@every(COMPAT)
def test_v1_compat_adds_the_v1_environment_in_order(file: Path) -> None:
    index = {"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}
    assert container(load(file))["env"] == [
        {"name": "PET_MASTER_ADDR", "value": ""},
        {"name": "PET_MASTER_PORT", "value": ""},
        {"name": "PET_NNODES", "value": ""},
        {"name": "MASTER_ADDR", "value": "$(PET_MASTER_ADDR)"},
        {"name": "MASTER_PORT", "value": "$(PET_MASTER_PORT)"},
        {"name": "WORLD_SIZE", "value": "$(PET_NNODES)"},
        {"name": "RANK", "valueFrom": index},
        {"name": "PYTHONUNBUFFERED", "value": "1"},
    ]


@every(COMPAT)
def test_v1_compat_adds_nothing_else(file: Path) -> None:
    doc = load(file)
    assert doc["spec"]["template"]["spec"].keys() == {"replicatedJobs"}
    spec = job(doc)["template"]["spec"]
    assert spec.keys() == {"backoffLimit", "template"}
    assert spec["backoffLimit"] == 1000
    assert template(doc).keys() == {"spec"}
    assert template(doc)["spec"].keys() == {"restartPolicy", "containers"}
    assert template(doc)["spec"]["restartPolicy"] == "OnFailure"
    assert container(doc).keys() == {"name", "image", "env"}


def test_both_v1_compat_runtimes_are_alike() -> None:
    one, several = (load(file)["spec"]["template"] for file in COMPAT)
    assert one == several
