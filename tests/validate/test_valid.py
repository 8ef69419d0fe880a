"""Objects without faults have no findings, in every Trainer version."""

from __future__ import annotations

import pytest

from tests.validate.objects import JOBS, NODE, POD, REMOVE, Obj, patch, put, replicated_job, runtime, trainjob
from trainjob.findings import Finding
from trainjob.targets import TARGETS, Target, target
from trainjob.validate import check_runtime, check_trainjob

T20, T21, T22, T23 = map(target, ("2.0", "2.1", "2.2", "2.3"))


def told(findings: list[Finding]) -> list[str]:
    return [f"{f.code} {f.where.path if f.where else ''}: {f.message}" for f in findings]


@pytest.mark.parametrize("t", TARGETS, ids=str)
def test_job_and_runtime(t: Target) -> None:
    assert told(check_trainjob(trainjob(t), t, runtime(t))) == []
    assert told(check_trainjob(trainjob(t), t)) == []
    assert told(check_runtime(runtime(t), t)) == []
    assert told(check_runtime(put(runtime(t, kind="TrainingRuntime"), "metadata.namespace", "team"), t)) == []


def same(path: str, value: object, t: Target = T23) -> tuple[Obj, Target, Obj]:
    return put(trainjob(t), path, value), t, runtime(t)


SIDECAR = put(runtime(T23), f"{POD}.containers[1]", {"name": "log", "image": "x"})
WARM_UP = put(runtime(T23), f"{POD}.initContainers", [{"name": "warm-up", "image": "x"}])
INITIALIZED = put(
    runtime(T23, replicated_job("dataset-initializer", "dataset-initializer"), replicated_job()),
    f"{NODE}.volumeMounts",
    [{"name": "initializer", "mountPath": "/workspace"}],
)
CLAIMED = put(
    INITIALIZED,
    "spec.template.spec.volumeClaimPolicies",
    [{"templates": [{"metadata": {"name": "initializer"}, "spec": {}}]}],
)
SOME = {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}

GAUDI = {"limits": {"habana.ai/gaudi": "8", "cpu": "8"}}


def on_gaudi(t: Target, processes: object = None) -> tuple[Obj, Target, Obj]:
    """A job without resources on a runtime whose devices Trainer does not count."""
    base = put(runtime(t), f"{NODE}.resources", GAUDI)
    if processes is not None:
        base = put(base, "spec.mlPolicy.torch.numProcPerNode", processes)
    return put(trainjob(t), "spec.trainer.resourcesPerNode", REMOVE), t, base


JOBS_THAT_WORK: dict[str, tuple[Obj, Target, Obj]] = {
    "48 characters": same("metadata.name", "a" * 48),
    "a generated name": (
        put(put(trainjob(T23), "metadata.name", REMOVE), "metadata.generateName", "a-"),
        T23,
        runtime(T23),
    ),
    "null is absent": same("spec.trainer.args", None),
    "no apiGroup and kind": same("spec.runtimeRef", {"name": "fine"}),
    "processes as number": same("spec.trainer.numProcPerNode", 8),
    "processes in words on 2.1": same("spec.trainer.numProcPerNode", "gpu", T21),
    "labels on 2.1": same("spec.labels", {"a": "b"}, T21),
    "a deadline": same("spec.activeDeadlineSeconds", 1),
    "an empty emptyDir": (
        trainjob(
            T23,
            patch(
                T23,
                {
                    "volumes": [{"name": "tmp", "emptyDir": {}}],
                    "containers": [{"name": "node", "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}]}],
                },
            ),
        ),
        T23,
        runtime(T23),
    ),
    "an empty argument": same("spec.trainer.args", [""]),
    "zero behind a pointer": same(
        "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0].template.spec.template.spec.securityContext",
        {"runAsUser": 0},
    ),
    "empty text on 2.1": same("spec.trainer.env[0].value", "", T21),
    "a mount over one of the runtime": (
        trainjob(
            T23,
            patch(
                T23,
                {
                    "volumes": [{"name": "big", "emptyDir": {}}],
                    "containers": [{"name": "node", "volumeMounts": [{"name": "big", "mountPath": "/dev/shm"}]}],
                },
            ),
        ),
        T23,
        runtime(T23),
    ),
    "tolerations repeated": (
        trainjob(T23, patch(T23, {"tolerations": [{"key": "gpu", "operator": "Exists"}, {"key": "b"}]})),
        T23,
        runtime(T23),
    ),
    "a variable for a sidecar": (
        trainjob(T23, patch(T23, {"containers": [{"name": "log", "env": [{"name": "A", "value": "1"}]}]})),
        T23,
        SIDECAR,
    ),
    "a variable for an init container": (
        trainjob(T23, patch(T23, {"initContainers": [{"name": "warm-up", "env": [{"name": "A", "value": "1"}]}]})),
        T23,
        WARM_UP,
    ),
    "two overrides of one job on 2.1": (trainjob(T21, patch(T21, {}), patch(T21, {})), T21, runtime(T21)),
    "a dataset": (
        put(trainjob(T23, resourcesPerNode=SOME), "spec.initializer", {"dataset": {"storageUri": "hf://a/b"}}),
        T23,
        CLAIMED,
    ),
    "a dataset without the mount on 2.2": (
        put(trainjob(T22, resourcesPerNode=SOME), "spec.initializer", {"dataset": {}}),
        T22,
        runtime(T22, replicated_job("dataset-initializer", "dataset-initializer"), replicated_job()),
    ),
    "other variables of torchrun": same("spec.trainer.env[1]", {"name": "PET_MAX_RESTARTS", "value": "1"}),
    "a plain runtime without trainer": (
        put(trainjob(T23), "spec.trainer", REMOVE),
        T23,
        runtime(T23, policy={}),
    ),
    "gpu limit alone": same("spec.trainer.resourcesPerNode", {"limits": {"nvidia.com/gpu": "8"}}),
    "one device by the limits of the runtime": (
        put(
            put(
                trainjob(T23, numNodes=1, command=["tune", "run"], args=["model.quantize_base=true"]),
                "spec.trainer.resourcesPerNode",
                REMOVE,
            ),
            "spec.runtimeRef.name",
            "torchtune-llama3.2-1b",
        ),
        T23,
        put(runtime(T23), f"{NODE}.resources", {"limits": {"nvidia.com/gpu": "1", "cpu": "1"}}),
    ),
    "tune run without torch": (trainjob(T23, command=["tune", "run"]), T23, runtime(T23, policy={})),
    "auto is passed on by 2.0": on_gaudi(T20),
    "the runtime of 2.1 names the processes": on_gaudi(T21, 8),
    "huge pages": same(
        "spec.trainer.resourcesPerNode",
        {h: {"hugepages-2Mi": "4Mi", "nvidia.com/gpu": "8"} for h in ("limits", "requests")},
    ),
    "torchtune": (
        put(
            trainjob(T23, numNodes=1, command=["tune", "run"], args=["epochs=1"]),
            "spec.runtimeRef.name",
            "torchtune-llama3.2-1b",
        ),
        T23,
        runtime(T23),
    ),
    "torchtune unchecked without processes on 2.1": same("spec.trainer.command", ["tune", "run"], T21),
    "qlora switched off on 2.3": (
        put(
            trainjob(T23, numNodes=1, command=["tune", "run"], args=["model.quantize_base=False"]),
            "spec.runtimeRef.name",
            "torchtune-llama3.2-1b",
        ),
        T23,
        runtime(T23),
    ),
}


@pytest.mark.parametrize("name", JOBS_THAT_WORK)
def test_trainjob(name: str) -> None:
    obj, t, its_runtime = JOBS_THAT_WORK[name]
    assert told(check_trainjob(obj, t, its_runtime)) == []


def rt(path: str, value: object) -> Obj:
    return put(runtime(T23), path, value)


RUNTIMES_THAT_WORK: dict[str, Obj] = {
    "placeholders": rt(f"{NODE}.env", [{"name": "PET_NNODES", "value": ""}, {"name": "N", "value": "$(PET_NNODES)"}]),
    "no resources": rt(f"{NODE}.resources", REMOVE),
    "an unlabelled job of many": runtime(T23, replicated_job(), {**replicated_job("worker", None), "replicas": 3}),
    "a name with dots": rt("metadata.name", "torchtune-llama3.2-1b"),
    "claims": CLAIMED,
    "a rule": rt(
        "spec.template.spec.failurePolicy",
        {
            "maxRestarts": 3,
            "rules": [{"name": "onDisruption", "action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]}],
        },
    ),
    "a pod failure policy": rt(f"{JOBS}[0].template.spec.podFailurePolicy", {"rules": []}),
    "a server's metadata": rt("metadata.creationTimestamp", "2026-01-31T12:00:00Z"),
}


@pytest.mark.parametrize("name", RUNTIMES_THAT_WORK)
def test_runtime(name: str) -> None:
    assert told(check_runtime(RUNTIMES_THAT_WORK[name], T23)) == []
