"""TrainJobs whose patches or pods are at fault."""

from __future__ import annotations

from tests.validate.broken import (
    GAUDI,
    P20,
    P21,
    P23,
    T20,
    T21,
    T23,
    Broken,
    fine,
    job,
    patched,
)
from tests.validate.objects import (
    NODE,
    POD,
    REMOVE,
    patch,
    put,
    trainjob,
)

MOUNT = {"name": "node", "volumeMounts": [{"name": "x", "mountPath": "/x"}]}
PODS: tuple[Broken, ...] = (
    Broken(
        "mount", patched({"containers": [MOUNT]}), "TJ530", f"{P23}.containers[0].volumeMounts[0].name", 'volume "x"'
    ),
    Broken(
        "mount on 2.1",
        patched({"containers": [MOUNT]}, T21),
        "TJ530",
        f"{P21}.containers[0].volumeMounts[0].name",
        "",
        T21,
    ),
    Broken(
        "mount on 2.0",
        patched({"containers": [MOUNT]}, T20),
        "TJ530",
        f"{P20}.containers[0].volumeMounts[0].name",
        "",
        T20,
    ),
    Broken(
        "path",
        patched(
            {
                "volumes": [{"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {}}],
                "containers": [
                    {
                        "name": "node",
                        "volumeMounts": [{"name": "a", "mountPath": "/x"}, {"name": "b", "mountPath": "/x"}],
                    }
                ],
            }
        ),
        "TJ531",
        f"{P23}.containers[0].volumeMounts[0].mountPath",
        "mounts both",
    ),
    Broken(
        "image",
        job("spec.trainer.image", REMOVE),
        "TJ532",
        "spec.runtimeRef",
        "no image",
        T23,
        fine(f"{NODE}.image", REMOVE),
    ),
    Broken("empty image", job("spec.trainer.image", ""), "TJ532", "spec.trainer.image", "no image"),
    Broken(
        "gpu request alone",
        job('spec.trainer.resourcesPerNode.limits["nvidia.com/gpu"]', REMOVE),
        "TJ533",
        'spec.trainer.resourcesPerNode.requests["nvidia.com/gpu"]',
        "without a limit",
        T23,
        put(GAUDI, f"{NODE}.resources", REMOVE),
    ),
    Broken(
        "gpu limit lowered",
        job("spec.trainer.resourcesPerNode", {"limits": {"nvidia.com/gpu": "4"}}),
        "TJ533",
        'spec.trainer.resourcesPerNode.limits["nvidia.com/gpu"]',
        "but its limit is 4",
    ),
    Broken(
        "cpu limit lowered",
        job("spec.trainer.resourcesPerNode", {"limits": {"cpu": "1", "nvidia.com/gpu": "8"}}),
        "TJ534",
        "spec.trainer.resourcesPerNode.limits.cpu",
        "more than its limit 1",
    ),
    Broken(
        "half a gpu",
        job("spec.trainer.resourcesPerNode", {h: {"nvidia.com/gpu": "500m"} for h in ("limits", "requests")}),
        "TJ535",
        'spec.trainer.resourcesPerNode.limits["nvidia.com/gpu"]',
        "given out whole",
    ),
    Broken(
        "volume of the runtime",
        patched({"volumes": [{"name": "shm", "persistentVolumeClaim": {"claimName": "x"}}]}),
        "TJ536",
        f"{P23}.volumes[0]",
        "2 sources: emptyDir, persistentVolumeClaim",
    ),
    Broken(
        "two sources of a variable",
        job("spec.trainer.env[0].valueFrom", {"fieldRef": {"fieldPath": "x"}}),
        "TJ537",
        "spec.trainer.env[0]",
        "both a value and a valueFrom",
    ),
)

SIDECAR = fine(f"{POD}.containers[1]", {"name": "log", "image": "x"})
TWO_SOURCES = {"name": "A", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}
PODS += (
    Broken(
        "variable of a sidecar",
        patched({"containers": [{"name": "log", "env": [TWO_SOURCES]}]}),
        "TJ537",
        f"{P23}.containers[0].env[0].name",
        "both a value and a valueFrom",
        T23,
        SIDECAR,
    ),
    Broken(
        "value over a source of the runtime",
        patched({"containers": [{"name": "log", "env": [{"name": "A", "value": "1"}]}]}),
        "TJ537",
        f"{P23}.containers[0].env[0].name",
        "",
        T23,
        put(SIDECAR, f"{POD}.containers[1].env", [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]),
    ),
    Broken(
        "huge pages without limit",
        job("spec.trainer.resourcesPerNode", {"requests": {"hugepages-2Mi": "4Mi", "nvidia.com/gpu": "8"}}),
        "TJ533",
        "spec.trainer.resourcesPerNode.requests.hugepages-2Mi",
        "without a limit",
    ),
)

PATCHES = (
    Broken(
        "manager",
        job("spec.runtimePatches[0].manager", "me"),
        "TJ540",
        "spec.runtimePatches[0].manager",
        "domain-prefixed",
    ),
    Broken(
        "manager domain", job("spec.runtimePatches[0].manager", "A.io/x"), "TJ540", "spec.runtimePatches[0].manager"
    ),
    Broken(
        "kueue",
        job("spec.runtimePatches[0].manager", "kueue.x-k8s.io/manager"),
        "TJ541",
        "spec.runtimePatches[0].manager",
        "Kueue",
    ),
    Broken(
        "job",
        patched({}, name="worker"),
        "TJ542",
        P23.removesuffix(".template.spec.template.spec") + ".name",
        'the runtime has no job "worker"',
    ),
    Broken(
        "job on 2.1",
        patched({}, T21, "worker"),
        "TJ542",
        "spec.podTemplateOverrides[0].targetJobs[0].name",
        'the runtime has no job "worker"',
        T21,
    ),
    Broken(
        "container",
        patched({"containers": [{"name": "main"}]}),
        "TJ543",
        f"{P23}.containers[0].name",
        'job node of the runtime has no container "main"',
        T23,
        None,
        ("TJ532",),
    ),
    Broken(
        "init container",
        patched({"initContainers": [{"name": "main"}]}, T21),
        "TJ543",
        f"{P21}.initContainers[0].name",
        'job node of the runtime has no init container "main"',
        T21,
        None,
        ("TJ532",),
    ),
    Broken(
        "wrong list",
        patched({"containers": [{"name": "warm-up"}]}),
        "TJ544",
        f"{P23}.containers[0].name",
        "is in initContainers",
        T23,
        fine(f"{POD}.initContainers", [{"name": "warm-up", "image": "x"}]),
        ("TJ532", "TJ538"),
    ),
    Broken(
        "env",
        patched({"containers": [{"name": "node", "env": [{"name": "A", "value": "1"}]}]}),
        "TJ545",
        f"{P23}.containers[0].env",
        "must not have envs for the dataset-initializer, model-initializer, node containers",
    ),
    Broken(
        "one volume twice",
        patched(
            {
                "volumes": [{"name": "a", "emptyDir": {}}],
                "containers": [
                    {
                        "name": "node",
                        "volumeMounts": [{"name": "a", "mountPath": "/x"}, {"name": "a", "mountPath": "/y"}],
                    }
                ],
            }
        ),
        "TJ546",
        f"{P23}.containers[0].volumeMounts[1].name",
        'volume "a" is mounted twice',
    ),
    Broken(
        "one job twice",
        trainjob(T20, patch(T20, {}), patch(T20, {})),
        "TJ547",
        "spec.podSpecOverrides[1].targetJobs[0].name",
        "Duplicate value",
        T20,
    ),
    Broken(
        "tolerations",
        patched({"tolerations": [{"key": "b", "operator": "Exists"}]}),
        "TJ548",
        f"{P23}.tolerations",
        "lost: gpu",
    ),
)

ALL = PODS + PATCHES
