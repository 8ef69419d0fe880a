"""TrainJobs with one fault each: what must be found, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.validate.objects import (
    NODE,
    POD,
    REMOVE,
    Obj,
    patch,
    pod_path,
    put,
    replicated_job,
    runtime,
    trainjob,
)

from trainjob.targets import Target, target

T20, T21, T22, T23 = map(target, ("2.0", "2.1", "2.2", "2.3"))
P20, P21, P22, P23 = map(pod_path, (T20, T21, T22, T23))


@dataclass(frozen=True)
class Broken:
    """`says`: a part of the message. `also`: codes that come with it unavoidably."""

    name: str
    obj: Obj
    code: str
    path: str
    says: str = ""
    target: Target = T23
    runtime: Obj | None = None
    also: tuple[str, ...] = ()


def job(path: str, value: Any, t: Target = T23) -> Obj:
    return put(trainjob(t), path, value)


def patched(pod: Obj, t: Target = T23, name: str = "node") -> Obj:
    return trainjob(t, patch(t, pod, name))


def fine(path: str, value: Any, t: Target = T23) -> Obj:
    return put(runtime(t), path, value)


MPI = runtime(
    T23,
    replicated_job("launcher"),
    replicated_job("node", None),
    policy={"mpi": {"numProcPerNode": 1, "runLauncherAsNode": True}},
)
INITIALIZERS = runtime(
    T23, replicated_job("dataset-initializer", "dataset-initializer"), replicated_job()
)
CPU_ONLY = {"limits": {"cpu": "8", "memory": "8Gi"}, "requests": {"cpu": "8", "memory": "8Gi"}}
GAUDI = put(runtime(T23), f"{NODE}.resources", {"limits": {"habana.ai/gaudi": "8", "cpu": "8"}})
NO_RESOURCES = put(trainjob(T23), "spec.trainer.resourcesPerNode", REMOVE)
TUNE = {"command": ["tune", "run"]}
LLAMA = "spec.runtimeRef.name"


def tune(name: str, t: Target = T23, **trainer: Any) -> Obj:
    return put(trainjob(t, **{"numNodes": 1, **TUNE, **trainer}), LLAMA, name)


SCHEMA = (
    Broken("nodes as text", job("spec.trainer.numNodes", "2"), "TJ501", "spec.trainer.numNodes", "an integer"),
    Broken("nodes over int32", job("spec.trainer.numNodes", 2**31), "TJ501", "spec.trainer.numNodes", "at most"),
    Broken("no runtimeRef", job("spec.runtimeRef", REMOVE), "TJ501", "spec.runtimeRef", "missing"),
    Broken("no kind", job("kind", REMOVE), "TJ501", "kind", 'missing field "kind"'),
    Broken("wrong version", job("apiVersion", "trainer.kubeflow.org/v1"), "TJ501", "apiVersion", "v1alpha1"),
    Broken("no name", job("metadata.name", REMOVE), "TJ501", "metadata.name", "generateName"),
    Broken(
        "number as variable", job("spec.trainer.env[0].value", 8), "TJ501", "spec.trainer.env[0].value",
        "must be a string, not 8",
    ),
    Broken(
        "bad quantity", job('spec.trainer.resourcesPerNode.limits["cpu"]', "1g"), "TJ501",
        "spec.trainer.resourcesPerNode.limits.cpu", '"1g" is not a quantity',
    ),
    Broken(
        "float quantity", job('spec.trainer.resourcesPerNode.limits["memory"]', 0.5), "TJ501",
        "spec.trainer.resourcesPerNode.limits.memory", "must be a quantity",
    ),
    Broken(
        "bool label", job('metadata.labels["a"]', True), "TJ501", "metadata.labels.a", "must be a string, not true"
    ),
    Broken("label value", job('metadata.labels["a"]', "x y"), "TJ501", "metadata.labels.a", "label value"),
    Broken("label key", job('metadata.labels["a b"]', "x"), "TJ501", 'metadata.labels["a b"]', "label or annotation"),
    Broken(
        "time", job("spec.runtimePatches[0].time", "yesterday"), "TJ501", "spec.runtimePatches[0].time",
        "not a date and time",
    ),
    Broken(
        "deadline", job("spec.activeDeadlineSeconds", 0), "TJ501", "spec.activeDeadlineSeconds", "at least 1"
    ),
    Broken(
        "typing error", job("spec.trainer.imagee", "x"), "TJ502", "spec.trainer.imagee", 'did you mean "image"'
    ),
    Broken(
        "snake case", job("spec.trainer.num_nodes", 1), "TJ502", "spec.trainer.num_nodes", 'mean "numNodes"'
    ),
    Broken("wrong level", job("spec.numNodes", 1), "TJ502", "spec.numNodes", "spec.trainer.numNodes"),
    Broken(
        "name of 2.1 on 2.3", job("spec.podTemplateOverrides", []), "TJ502", "spec.podTemplateOverrides",
        "Trainer 2.3 calls it runtimePatches",
    ),
    Broken(
        "name of 2.3 on 2.1", job("spec.runtimePatches", [], T21), "TJ502", "spec.runtimePatches",
        "Trainer 2.1 calls it podTemplateOverrides", T21,
    ),
    Broken(
        "name of 2.1 on 2.0", job("spec.podTemplateOverrides", [], T20), "TJ502", "spec.podTemplateOverrides",
        "Trainer 2.0 calls it podSpecOverrides", T20,
    ),
    Broken("labels on 2.2", job("spec.labels", {}, T22), "TJ502", "spec.labels", "removed in Trainer 2.2", T22),
    Broken(
        "deadline on 2.1", job("spec.activeDeadlineSeconds", 60, T21), "TJ502", "spec.activeDeadlineSeconds",
        "Trainer 2.2 and later have it", T21,
    ),
    Broken("ttl", job("spec.ttlSecondsAfterFinished", 1), "TJ502", "spec.ttlSecondsAfterFinished", "no TTL"),
    Broken("v1 field", job("spec.pytorchReplicaSpecs", {}), "TJ502", "spec.pytorchReplicaSpecs", "PyTorchJob"),
    Broken(
        "image in a patch", job(f"{P23}.containers[0].image", "x"), "TJ502", f"{P23}.containers[0].image",
        "a patch cannot set it",
    ),
    Broken(
        "grace period on 2.2", job(f"{P22}.terminationGracePeriodSeconds", 1, T22), "TJ502",
        f"{P22}.terminationGracePeriodSeconds", "Trainer 2.3 has it", T22,
    ),
    Broken(
        "variable twice", job("spec.trainer.env[1]", {"name": "LR", "value": "1"}), "TJ503",
        "spec.trainer.env[1].name", 'duplicate name "LR"',
    ),
    Broken(
        "manager twice", job("spec.runtimePatches[1]", {"manager": "acme.io/x"}), "TJ503",
        "spec.runtimePatches[1].manager", "duplicate manager",
    ),
    Broken("name of digits", job("metadata.name", "1demo"), "TJ504", "metadata.name", "RFC 1035"),
    Broken(
        "other manager", job("spec.managedBy", "me"), "TJ504", "spec.managedBy", "ManagedBy must be"
    ),
    Broken(
        "storage", job("spec.initializer", {"dataset": {"storageUri": "x"}}), "TJ504",
        "spec.initializer.dataset.storageUri", "storageUri may be empty", T23,
        put(INITIALIZERS, f"{NODE}.volumeMounts", [{"name": "initializer", "mountPath": "/x"}]),
    ),
)  # fmt: skip

JOB = (
    Broken("kind", job("spec.runtimeRef.kind", "Runtime"), "TJ510", "spec.runtimeRef.kind", "unsupported runtime"),
    Broken("group", job("spec.runtimeRef.apiGroup", "x.io"), "TJ510", "spec.runtimeRef.apiGroup", "x.io"),
    Broken(
        "deprecated", trainjob(T23), "TJ512", "spec.runtimeRef.name", "deprecated", T23,
        fine('metadata.labels["trainer.kubeflow.org/support"]', "deprecated"),
    ),
    Broken("49 characters", job("metadata.name", "a" * 49), "TJ513", "metadata.name", "at most 48"),
    Broken(
        "48 characters for 11 pods", put(job("metadata.name", "a" * 48), "spec.trainer.numNodes", 11), "TJ513",
        "metadata.name", "at most 47",
    ),
    Broken(
        "34 characters with an initializer", put(NO_RESOURCES, "metadata.name", "a" * 34), "TJ513", "metadata.name",
        "at most 33", T23, INITIALIZERS,
    ),
    Broken(
        "generated name", put(job("metadata.name", REMOVE), "metadata.generateName", "a" * 44), "TJ513",
        "metadata.generateName", "49 characters",
    ),
    Broken("dots on 2.0", job("metadata.name", "a.b", T20), "TJ514", "metadata.name", "RFC 1035", T20),
    Broken("no trainer", job("spec.trainer", REMOVE), "TJ515", "spec.trainer", "PET_*"),
    Broken("no nodes", job("spec.trainer.numNodes", 0), "TJ516", "spec.trainer.numNodes", "without running"),
    Broken("negative nodes", job("spec.trainer.numNodes", -1), "TJ516", "spec.trainer.numNodes", ">= 1"),
    Broken(
        "processes in words", job("spec.trainer.numProcPerNode", "all", T21), "TJ517",
        "spec.trainer.numProcPerNode", "[auto cpu gpu]", T21,
    ),
    Broken(
        "mpi processes in words", put(put(NO_RESOURCES, "spec.runtimePatches", REMOVE), "spec.trainer.numProcPerNode", "auto"),
        "TJ517", "spec.trainer.numProcPerNode", "MPI", T21, MPI,
    ),
    Broken("no processes", job("spec.trainer.numProcPerNode", 0), "TJ517", "spec.trainer.numProcPerNode", "or equal to 1"),
    Broken(
        "gpu of the runtime not repeated", job("spec.trainer.resourcesPerNode", CPU_ONLY), "TJ518",
        "spec.trainer.resourcesPerNode", "does not repeat nvidia.com/gpu",
    ),
    Broken("gaudi", NO_RESOURCES, "TJ518", "spec.trainer", "does not count habana.ai/gaudi", T23, GAUDI),
    Broken(
        "reserved", job("spec.trainer.env[1]", {"name": "PET_NNODES", "value": "2"}), "TJ519",
        "spec.trainer.env[1].name", "invalid envs configured: [PET_NNODES]",
    ),
    Broken(
        "reserved on 2.1 with processes",
        put(job("spec.trainer.env[1]", {"name": "PET_NNODES"}, T21), "spec.trainer.numProcPerNode", 8),
        "TJ519", "spec.trainer.env[1].name", "", T21,
    ),
    Broken(
        "reserved for mpi", put(NO_RESOURCES, "spec.trainer.env[1]", {"name": "OMPI_MCA_plm_rsh_args", "value": "x"}),
        "TJ519", "spec.trainer.env[1].name", "OMPI_MCA_plm_rsh_args", T23, MPI,
    ),
    Broken(
        "reserved for xgboost", job("spec.trainer.env[1]", {"name": "DMLC_TASK_ID", "value": "x"}), "TJ519",
        "spec.trainer.env[1].name", "DMLC_TASK_ID is reserved for the XGBoost runtime", T23,
        runtime(T23, policy={"xgboost": {}}),
    ),
    Broken(
        "overwritten on 2.1", job("spec.trainer.env[1]", {"name": "PET_NNODES", "value": "2"}, T21), "TJ520",
        "spec.trainer.env[1].name", "overwrites", T21,
    ),
    Broken(
        "overwritten by jax", job("spec.trainer.env[1]", {"name": "JAX_PROCESS_ID", "value": "2"}), "TJ520",
        "spec.trainer.env[1].name", "", T23, runtime(T23, policy={"jax": {}}),
    ),
    Broken("empty text", job("spec.trainer.env[0].value", ""), "TJ521", "spec.trainer.env[0].value", '""'),
    Broken(
        "written false", job(f"{P23}.containers[0].volumeMounts[0].readOnly", False), "TJ521",
        f"{P23}.containers[0].volumeMounts[0].readOnly", "false",
    ),
    Broken("empty list", job("spec.trainer.args", []), "TJ521", "spec.trainer.args", "[]"),
    Broken(
        "empty map", job("spec.trainer.resourcesPerNode", {"limits": {}}), "TJ521",
        "spec.trainer.resourcesPerNode.limits", "{}", T23, None, ("TJ518",),
    ),
    Broken(
        "no initializer", job("spec.initializer", {"dataset": {}}), "TJ522", "spec.initializer.dataset",
        "must have dataset-initializer job when trainJob is configured with input datasetConfig",
    ),
    Broken(
        "no initializer container", put(NO_RESOURCES, "spec.initializer", {"model": {}}), "TJ522",
        "spec.initializer.model", "must have container with name - model-initializer", T23,
        runtime(T23, replicated_job("model-initializer", None, containers=[{"name": "x", "image": "y"}]), replicated_job()),
    ),
    Broken(
        "no initializer mount", put(NO_RESOURCES, "spec.initializer", {"dataset": {}}), "TJ522",
        "spec.initializer.dataset", "must have volumeMount with name - initializer", T23, INITIALIZERS,
    ),
    Broken("no trainer job", NO_RESOURCES, "TJ524", "spec.trainer", "no job labelled", T23, runtime(T23, replicated_job("node", None))),
    Broken(
        "claims", job("spec.trainer.resourcesPerNode.claims", [{"name": "x"}]), "TJ525",
        "spec.trainer.resourcesPerNode.claims", "drops device claims",
    ),
    Broken(
        "no mlPolicy", trainjob(T23), "TJ525", "spec.trainer.resourcesPerNode", "is ignored", T23,
        fine("spec.mlPolicy", REMOVE),
    ),
    Broken(
        "volcano queue", job('spec.runtimePatches[0].trainingRuntimeSpec.template.metadata.annotations["scheduling.volcano.sh/queue-name"]', ""),
        "TJ526", 'spec.runtimePatches[0].trainingRuntimeSpec.template.metadata.annotations["scheduling.volcano.sh/queue-name"]',
        "must not be empty", T23, fine("spec.podGroupPolicy", {"volcano": {}}),
    ),
    Broken(
        "volcano queue on 2.1", job('spec.annotations["scheduling.volcano.sh/queue-name"]', "", T21), "TJ526",
        'spec.annotations["scheduling.volcano.sh/queue-name"]', "", T21, fine("spec.podGroupPolicy", {"volcano": {}}, T21),
    ),
    Broken(
        "gpu lost on 2.2", job("spec.trainer.resourcesPerNode", CPU_ONLY, T22), "TJ527", "spec.trainer.resourcesPerNode",
        "nvidia.com/gpu is lost", T22,
    ),
    Broken(
        "injection", trainjob(T23), "TJ575", "spec.runtimeRef", 'podSet "node" container "x" not found', T23,
        runtime(T23, policy={"torch": {"envInjection": {"targets": [{"jobName": "node", "containerNames": ["x"]}]}}}),
    ),
    Broken(
        "mpi without launcher", NO_RESOURCES, "TJ576", "spec.trainer.numNodes", "launcher and node", T23,
        put(MPI, "spec.template.spec.replicatedJobs[0].name", "other"),
    ),
    Broken(
        "flux installer", NO_RESOURCES, "TJ577", "spec.runtimeRef", "flux-installer", T23,
        runtime(T23, replicated_job(initContainers=[{"name": "flux-installer", "image": "x"}]), policy={"flux": {}}),
    ),
)  # fmt: skip

TUNED = (
    Broken("model", tune("torch-distributed"), "TJ523", "spec.runtimeRef.name", "supported pretrained model"),
    Broken("model of 2.0", tune("torchtune-llama3.2-3b", T20, numProcPerNode=1), "TJ523", "spec.runtimeRef.name", "llama3_2/3B", T20),
    Broken("two nodes", tune("torchtune-llama3.2-1b", numNodes=2), "TJ523", "spec.trainer.numNodes", "must be 1 for llama3_2/1B model"),
    Broken(
        "lora on two nodes", tune("torchtune-llama3.3-70b", numNodes=2, args=["model.lora_attn_modules=[q_proj]"]),
        "TJ523", "spec.trainer.numNodes", "LoRA fine-tuning is not supported",
    ),
    Broken(
        "qlora on qwen", tune("torchtune-qwen2.5-1.5b", numProcPerNode=1, args=["model.quantize_base=True"]), "TJ523",
        "spec.runtimeRef.name", "QLoRA is not supported for qwen2_5/1.5B model",
    ),
    Broken(
        "qlora on eight devices", tune("torchtune-llama3.2-1b", args=["model.quantize_base=True"]), "TJ523",
        "spec.trainer.numProcPerNode", "must be auto or 1",
    ),
    Broken(
        "managed setting", tune("torchtune-llama3.2-1b", args=["output_dir=/x"]), "TJ523", "spec.trainer.args[0]",
        'must not set immutable config "output_dir"',
    ),
    Broken(
        "named is enough on 2.2", tune("torchtune-llama3.2-1b", T22, args=["model.quantize_base=False"]), "TJ523",
        "spec.trainer.resourcesPerNode", "gpu resource with value 1", T22,
    ),
)  # fmt: skip

MOUNT = {"name": "node", "volumeMounts": [{"name": "x", "mountPath": "/x"}]}
PODS = (
    Broken("mount", patched({"containers": [MOUNT]}), "TJ530", f"{P23}.containers[0].volumeMounts[0].name", 'volume "x"'),
    Broken("mount on 2.1", patched({"containers": [MOUNT]}, T21), "TJ530", f"{P21}.containers[0].volumeMounts[0].name", "", T21),
    Broken("mount on 2.0", patched({"containers": [MOUNT]}, T20), "TJ530", f"{P20}.containers[0].volumeMounts[0].name", "", T20),
    Broken(
        "path", patched({
            "volumes": [{"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {}}],
            "containers": [{"name": "node", "volumeMounts": [{"name": "a", "mountPath": "/x"}, {"name": "b", "mountPath": "/x"}]}],
        }), "TJ531", f"{P23}.containers[0].volumeMounts[0].mountPath", "mounts both",
    ),
    Broken("image", job("spec.trainer.image", REMOVE), "TJ532", "spec.runtimeRef", "no image", T23, fine(f"{NODE}.image", REMOVE)),
    Broken("empty image", job("spec.trainer.image", ""), "TJ532", "spec.trainer.image", "no image"),
    Broken(
        "gpu request alone", job('spec.trainer.resourcesPerNode.limits["nvidia.com/gpu"]', REMOVE), "TJ533",
        'spec.trainer.resourcesPerNode.requests["nvidia.com/gpu"]', "without a limit", T23,
        put(GAUDI, f"{NODE}.resources", REMOVE),
    ),
    Broken(
        "gpu limit lowered", job("spec.trainer.resourcesPerNode", {"limits": {"nvidia.com/gpu": "4"}}), "TJ533",
        'spec.trainer.resourcesPerNode.limits["nvidia.com/gpu"]', "but its limit is 4",
    ),
    Broken(
        "cpu limit lowered", job("spec.trainer.resourcesPerNode", {"limits": {"cpu": "1", "nvidia.com/gpu": "8"}}), "TJ534",
        "spec.trainer.resourcesPerNode.limits.cpu", "more than its limit 1",
    ),
    Broken(
        "half a gpu", job("spec.trainer.resourcesPerNode", {h: {"nvidia.com/gpu": "500m"} for h in ("limits", "requests")}),
        "TJ535", 'spec.trainer.resourcesPerNode.limits["nvidia.com/gpu"]', "given out whole",
    ),
    Broken(
        "volume of the runtime", patched({"volumes": [{"name": "shm", "persistentVolumeClaim": {"claimName": "x"}}]}), "TJ536",
        f"{P23}.volumes[0]", "2 sources: emptyDir, persistentVolumeClaim",
    ),
    Broken(
        "two sources of a variable", job("spec.trainer.env[0].valueFrom", {"fieldRef": {"fieldPath": "x"}}), "TJ537",
        "spec.trainer.env[0]", "both a value and a valueFrom",
    ),
)  # fmt: skip

PATCHES = (
    Broken("manager", job("spec.runtimePatches[0].manager", "me"), "TJ540", "spec.runtimePatches[0].manager", "domain-prefixed"),
    Broken("manager domain", job("spec.runtimePatches[0].manager", "A.io/x"), "TJ540", "spec.runtimePatches[0].manager"),
    Broken("kueue", job("spec.runtimePatches[0].manager", "kueue.x-k8s.io/manager"), "TJ541", "spec.runtimePatches[0].manager", "Kueue"),
    Broken(
        "job", patched({}, name="worker"), "TJ542", P23.removesuffix(".template.spec.template.spec") + ".name",
        "must not have replicated job that doesn't exist",
    ),
    Broken(
        "job on 2.1", patched({}, T21, "worker"), "TJ542", "spec.podTemplateOverrides[0].targetJobs[0].name",
        "must not have targetJob that doesn't exist", T21,
    ),
    Broken(
        "container", patched({"containers": [{"name": "main"}]}), "TJ543", f"{P23}.containers[0].name",
        "must not have container that doesn't exist in the runtime job node", T23, None, ("TJ532",),
    ),
    Broken(
        "init container", patched({"initContainers": [{"name": "main"}]}, T21), "TJ543", f"{P21}.initContainers[0].name",
        "must not have initContainer that doesn't exist", T21, None, ("TJ532",),
    ),
    Broken(
        "wrong list", patched({"containers": [{"name": "warm-up"}]}), "TJ544", f"{P23}.containers[0].name",
        "is in initContainers", T23, fine(f"{POD}.initContainers", [{"name": "warm-up", "image": "x"}]), ("TJ532", "TJ538"),
    ),
    Broken(
        "env", patched({"containers": [{"name": "node", "env": [{"name": "A", "value": "1"}]}]}), "TJ545",
        f"{P23}.containers[0].env", "must not have envs for the dataset-initializer, model-initializer, node containers",
    ),
    Broken(
        "one volume twice", patched({
            "volumes": [{"name": "a", "emptyDir": {}}],
            "containers": [{"name": "node", "volumeMounts": [{"name": "a", "mountPath": "/x"}, {"name": "a", "mountPath": "/y"}]}],
        }), "TJ546", f"{P23}.containers[0].volumeMounts[1].name", 'volume "a" is mounted twice',
    ),
    Broken(
        "one job twice", trainjob(T20, patch(T20, {}), patch(T20, {})), "TJ547", "spec.podSpecOverrides[1].targetJobs[0].name",
        "Duplicate value", T20,
    ),
    Broken(
        "tolerations", patched({"tolerations": [{"key": "b", "operator": "Exists"}]}), "TJ548", f"{P23}.tolerations", "lost: gpu"
    ),
)  # fmt: skip

ALL = SCHEMA + JOB + TUNED + PODS + PATCHES
