"""Runtimes with one fault each: what must be found, and where."""

from __future__ import annotations

from typing import Any

from tests.validate.broken import MPI, T20, T21, T22, T23, Broken
from tests.validate.objects import FRAMEWORK, JOBS, NODE, POD, REMOVE, STEP, Obj, put, replicated_job, runtime
from trainjob.targets import Target

JOBSET = "spec.template.spec"
JOB = f"{JOBS}[0]"
LIMITS = f"{NODE}.resources.limits"
DATASET = replicated_job("dataset-initializer", "dataset-initializer")


def rt(path: str, value: Any, t: Target = T23) -> Obj:
    return put(runtime(t), path, value)


def rule(**fields: Any) -> Obj:
    return rt(f"{JOBSET}.failurePolicy", {"rules": [{"name": "r", "action": "RestartJobSet", **fields}]})


def after(*on: str, jobs: tuple[Obj, ...] = (DATASET,)) -> Obj:
    node = {**replicated_job(), "dependsOn": [{"name": name, "status": "Complete"} for name in on]}
    return runtime(T23, *jobs, node)


def claim(*names: str, mount: str = "cache") -> Obj:
    templates = [{"metadata": {"name": n}, "spec": {}} for n in names]
    obj = rt(f"{JOBSET}.volumeClaimPolicies", [{"templates": templates}])
    return put(obj, f"{NODE}.volumeMounts[1]", {"name": mount, "mountPath": "/cache"})


SCHEMA = (
    Broken("no template", rt("spec.template", REMOVE, T20), "TJ501", "spec.template", "missing", T20, None, ("TJ552",)),
    Broken(
        "bad status",
        put(after("dataset-initializer"), f"{JOBS}[1].dependsOn[0].status", "Done"),
        "TJ501",
        f"{JOBS}[1].dependsOn[0].status",
        "one of",
    ),
    Broken(
        "processes on 2.2",
        rt("spec.mlPolicy.torch.numProcPerNode", "auto", T22),
        "TJ502",
        "spec.mlPolicy.torch.numProcPerNode",
        "removed in Trainer 2.2",
        T22,
    ),
    Broken(
        "injection on 2.2",
        rt("spec.mlPolicy.torch.envInjection", {}, T22),
        "TJ502",
        "spec.mlPolicy.torch.envInjection",
        "Trainer 2.3 has it",
        T22,
    ),
    Broken(
        "claims on 2.1",
        rt(f"{JOBSET}.volumeClaimPolicies", [], T21),
        "TJ502",
        f"{JOBSET}.volumeClaimPolicies",
        "Trainer 2.2 and later",
        T21,
    ),
    Broken("jax with content", rt("spec.mlPolicy", {"jax": {"x": 1}}), "TJ502", "spec.mlPolicy.jax.x"),
    Broken(
        "typing error", rt(f"{NODE}.imagePullpolicy", "Always"), "TJ502", f"{NODE}.imagePullpolicy", "imagePullPolicy"
    ),
    Broken(
        "mount path twice",
        rt(f"{NODE}.volumeMounts[1]", {"name": "shm", "mountPath": "/dev/shm"}),
        "TJ503",
        f"{NODE}.volumeMounts[1].mountPath",
        "duplicate mountPath",
    ),
    Broken(
        "port twice",
        rt(f"{NODE}.ports", [{"containerPort": 1}, {"containerPort": 1, "protocol": "TCP"}]),
        "TJ503",
        f"{NODE}.ports[1]",
        "duplicate",
    ),
    Broken(
        "two policies",
        rt("spec.mlPolicy", {"torch": {}, "jax": {}}),
        "TJ504",
        "spec.mlPolicy",
        "Only one of the policy",
    ),
    Broken(
        "two policies on 2.1", rt("spec.mlPolicy", {"torch": {}, "mpi": {}}, T21), "TJ504", "spec.mlPolicy", "", T21
    ),
    Broken(
        "processes on 2.1",
        rt("spec.mlPolicy.torch.numProcPerNode", 0, T21),
        "TJ504",
        "spec.mlPolicy.torch.numProcPerNode",
        "NumProcPerNode",
        T21,
    ),
    Broken(
        "order and dependsOn",
        put(after("dataset-initializer"), f"{JOBSET}.startupPolicy", {"startupPolicyOrder": "InOrder"}),
        "TJ504",
        JOBSET,
        "mutually exclusive",
    ),
    Broken(
        "injection into node",
        rt("spec.mlPolicy.torch.envInjection", {"targets": [{"jobName": "node", "containerNames": ["node"]}]}),
        "TJ504",
        "spec.mlPolicy.torch.envInjection.targets[0].containerNames",
        "must not include the main node container",
    ),
)

TRAINER = (
    Broken("framework", rt(f'metadata.labels["{FRAMEWORK}"]', REMOVE), "TJ550", "metadata.labels", "framework label"),
    Broken("policy", rt("spec.mlPolicy", REMOVE), "TJ551", "spec.mlPolicy"),
    Broken("nodes", rt("spec.mlPolicy.numNodes", 0), "TJ516", "spec.mlPolicy.numNodes", ">= 1"),
    Broken("no trainer", rt(f"{JOB}.template.metadata", REMOVE), "TJ552", JOBS, "labelled as trainer"),
    Broken(
        "unknown step",
        runtime(T23, replicated_job(), replicated_job("x", "exporter")),
        "TJ553",
        f'{JOBS}[1].template.metadata.labels["{STEP}"]',
        "exporter",
    ),
    Broken("replicas", rt(f"{JOB}.replicas", 2), "TJ554", f"{JOB}.replicas", "always must be 1"),
    Broken(
        "container",
        rt(f"{NODE}.name", "main"),
        "TJ555",
        f"{POD}.containers",
        "required container for the ancestor: trainer",
    ),
    Broken("job name", rt(f"{JOB}.name", "worker"), "TJ556", f"{JOB}.name", "<trainjob>-node-0-0"),
    Broken(
        "initializer name",
        runtime(T23, replicated_job("data", "dataset-initializer"), replicated_job()),
        "TJ557",
        f"{JOBS}[0].name",
    ),
    Broken("capital", rt(f"{JOB}.name", "Node"), "TJ578", f"{JOB}.name", "pod name", also=("TJ556",)),
    Broken("subdomain", rt(f"{JOBSET}.network", {"subdomain": "x"}), "TJ558", f"{JOBSET}.network.subdomain"),
    Broken("ttl", rt(f"{JOBSET}.ttlSecondsAfterFinished", 0), "TJ559", f"{JOBSET}.ttlSecondsAfterFinished"),
    Broken(
        "job ttl",
        rt(f"{JOB}.template.spec.ttlSecondsAfterFinished", 9),
        "TJ559",
        f"{JOB}.template.spec.ttlSecondsAfterFinished",
    ),
    Broken("suspend", rt(f"{JOBSET}.suspend", False), "TJ560", f"{JOBSET}.suspend"),
    Broken(
        "parallelism",
        rt(f"{JOB}.template.spec.parallelism", 4),
        "TJ560",
        f"{JOB}.template.spec.parallelism",
        "numNodes",
    ),
    Broken("managed", rt(f"{JOBSET}.managedBy", "acme.io/x"), "TJ561", f"{JOBSET}.managedBy"),
    Broken(
        "variable", rt(f"{NODE}.env[1]", {"name": "PET_NNODES", "value": "2"}), "TJ520", f"{NODE}.env[1]", "PET_NNODES"
    ),
    Broken(
        "injection",
        rt("spec.mlPolicy.torch.envInjection", {"targets": [{"jobName": "x", "containerNames": ["y"]}]}),
        "TJ575",
        "spec.mlPolicy.torch.envInjection.targets[0]",
        'podSet "x" container "y"',
    ),
    Broken("mpi", put(MPI, f"{JOBS}[1].name", "other"), "TJ576", "spec.mlPolicy.mpi.runLauncherAsNode"),
    Broken(
        "flux",
        runtime(T23, replicated_job(initContainers=[{"name": "flux-installer", "image": "x"}]), policy={"flux": {}}),
        "TJ577",
        f"{POD}.initContainers",
    ),
    Broken(
        "gang",
        put(runtime(T23, DATASET, replicated_job(schedulerName="x")), "spec.podGroupPolicy", {"coscheduling": {}}),
        "TJ569",
        "spec.podGroupPolicy.coscheduling",
        "initializers",
        also=("TJ570",),
    ),
    Broken("scheduler", rt("spec.podGroupPolicy", {"volcano": {}}), "TJ570", f"{POD}.schedulerName", "volcano"),
    Broken(
        "sdk device",
        rt(f"{NODE}.resources", {"limits": {"memory": "1Gi", "amd.com/gpu": "1"}}),
        "TJ571",
        LIMITS,
        "Unknown device type",
    ),
    Broken(
        "two slices",
        rt(f"{NODE}.resources", {"limits": {"cpu": "1", "nvidia.com/mig-1g.5gb": "1", "nvidia.com/mig-2g.10gb": "1"}}),
        "TJ571",
        LIMITS,
    ),
    Broken("number", rt(f'{LIMITS}["nvidia.com/gpu"]', 8), "TJ572", f'{LIMITS}["nvidia.com/gpu"]', "8.0"),
    Broken("namespace", rt("metadata.namespace", "x"), "TJ573", "metadata.namespace"),
    Broken(
        "webhook off",
        rt('metadata.labels["trainer.kubeflow.org/webhook-validation"]', "disabled"),
        "TJ574",
        'metadata.labels["trainer.kubeflow.org/webhook-validation"]',
    ),
)

JOBSETS = (
    Broken("restart", rt(f"{POD}.restartPolicy", "Always"), "TJ562", f"{POD}.restartPolicy", "OnFailure or Never"),
    Broken(
        "pod failure policy",
        put(rt(f"{POD}.restartPolicy", REMOVE), f"{JOB}.template.spec.podFailurePolicy", {"rules": []}),
        "TJ563",
        f"{JOB}.template.spec.podFailurePolicy",
        "Never",
    ),
    Broken("rule name", rule(name="on-disruption"), "TJ564", f"{JOBSET}.failurePolicy.rules[0].name", "on-disruption"),
    Broken(
        "rule reason",
        rule(onJobFailureReasons=["Evicted"]),
        "TJ564",
        f"{JOBSET}.failurePolicy.rules[0].onJobFailureReasons[0]",
        "Evicted",
    ),
    Broken(
        "rule twice",
        put(rule(), f"{JOBSET}.failurePolicy.rules[1]", {"name": "r", "action": "FailJobSet"}),
        "TJ564",
        f"{JOBSET}.failurePolicy.rules[1].name",
        "not unique",
    ),
    Broken(
        "rule target",
        rule(targetReplicatedJobs=["x"]),
        "TJ567",
        f"{JOBSET}.failurePolicy.rules[0].targetReplicatedJobs[0]",
        "'x'",
    ),
    Broken("gate of a rule", rule(action="RestartJob"), "TJ565", f"{JOBSET}.failurePolicy.rules[0].action"),
    Broken(
        "gate",
        rt(f"{JOBSET}.failurePolicy", {"restartStrategy": "InPlaceRestart"}),
        "TJ565",
        f"{JOBSET}.failurePolicy.restartStrategy",
    ),
    Broken(
        "success",
        rt(f"{JOBSET}.successPolicy", {"operator": "All", "targetReplicatedJobs": ["x"]}),
        "TJ567",
        f"{JOBSET}.successPolicy.targetReplicatedJobs[0]",
    ),
    Broken(
        "coordinator",
        rt(f"{JOBSET}.coordinator", {"replicatedJob": "x"}),
        "TJ567",
        f"{JOBSET}.coordinator.replicatedJob",
    ),
    Broken("first waits", after("x", jobs=()), "TJ566", f"{JOBS}[0].dependsOn", "first ReplicatedJob"),
    Broken(
        "waits for nobody", after("x"), "TJ566", f"{JOBS}[1].dependsOn[0].name", "cannot depend on replicatedJob: x"
    ),
    Broken("waits for itself", after("node"), "TJ566", f"{JOBS}[1].dependsOn[0].name", "itself"),
    Broken(
        "claim without mount",
        claim("data"),
        "TJ568",
        f"{JOBSET}.volumeClaimPolicies[0].templates[0].metadata.name",
        "matching volumeMount",
        also=("TJ530",),
    ),
    Broken(
        "claim name",
        claim("A"),
        "TJ568",
        f"{JOBSET}.volumeClaimPolicies[0].templates[0].metadata.name",
        "valid name",
        also=("TJ530",),
    ),
    Broken(
        "claim twice",
        claim("cache", "cache"),
        "TJ568",
        f"{JOBSET}.volumeClaimPolicies[0].templates[1].metadata.name",
        "unique",
    ),
    Broken("claim and volume", claim("cache", "shm"), "TJ568", f"{POD}.volumes[0].name", "conflicts"),
)

PODS = (
    Broken("mount", rt(f"{NODE}.volumeMounts[0].name", "x"), "TJ530", f"{NODE}.volumeMounts[0].name", 'volume "x"'),
    Broken("image", rt(f"{NODE}.image", REMOVE), "TJ532", NODE, "no image"),
    Broken(
        "gpu limit",
        rt(f'{LIMITS}["nvidia.com/gpu"]', "4"),
        "TJ533",
        f'{NODE}.resources.requests["nvidia.com/gpu"]',
        "limit is 4",
    ),
    Broken(
        "memory", rt(f"{LIMITS}.memory", "1Gi"), "TJ534", f"{NODE}.resources.requests.memory", "more than its limit"
    ),
    Broken(
        "part of a device",
        rt(f"{NODE}.resources", {"limits": {"cpu": "1", "nvidia.com/gpu": "0.5"}}),
        "TJ535",
        f'{LIMITS}["nvidia.com/gpu"]',
    ),
    Broken(
        "volume", rt(f"{POD}.volumes[0].hostPath", {"path": "/x"}), "TJ536", f"{POD}.volumes[0]", "emptyDir, hostPath"
    ),
    Broken("variable", rt(f"{NODE}.env[0].valueFrom", {"fieldRef": {"fieldPath": "x"}}), "TJ537", f"{NODE}.env[0]"),
    Broken("names", rt(f"{POD}.initContainers", [{"name": "node", "image": "x"}]), "TJ538", f"{NODE}.name"),
)

ALL = SCHEMA + TRAINER + JOBSETS + PODS
