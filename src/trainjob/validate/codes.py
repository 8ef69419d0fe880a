"""Every check there is: code, short name, severity, and what it finds. Docs are made from this.

ERROR: the API server or a webhook refuses the object, or the job cannot work. WARNING: it is
accepted and does something else than it says, or breaks later. Codes are never reused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from trainjob.findings import Severity

_E, _W = Severity.ERROR, Severity.WARNING


@dataclass(frozen=True, slots=True)
class Check:
    """One row of the table."""

    code: str
    name: str
    severity: Severity
    finds: str


CHECKS: Final[tuple[Check, ...]] = (
    # The CRD: any kind
    Check("TJ501", "invalid-field", _E, "a missing field, a wrong type or a value out of bounds"),
    Check("TJ502", "unknown-field", _E, "a field that this Trainer version does not have"),
    Check("TJ503", "duplicate-key", _E, "two entries of a list with the same key"),
    Check("TJ504", "rule-broken", _E, "a CEL rule of the CRD that does not hold"),
    # TrainJob and its runtime
    Check("TJ510", "unsupported-runtime", _E, "a runtimeRef of a kind or group that Trainer does not know"),
    Check("TJ511", "runtime-not-found", _W, "a runtime that is neither in the input nor in the catalogue"),
    Check("TJ512", "deprecated-runtime", _W, "a runtime that is labelled deprecated"),
    Check("TJ513", "name-too-long", _E, "a name from which JobSet would make pod names over 63 characters"),
    Check("TJ514", "invalid-name", _E, "a name that Trainer 2.0 accepts and JobSet refuses"),
    Check("TJ515", "no-trainer", _W, "no spec.trainer, so no PET_* variables and no port are set"),
    Check("TJ516", "node-count", _E, "a number of nodes below 1"),
    Check("TJ517", "process-count", _E, "a number of processes that the framework refuses or cannot start"),
    Check("TJ518", "process-guess", _W, "accelerators that Trainer does not count: a process per CPU starts"),
    Check("TJ519", "reserved-env", _E, "a variable in spec.trainer.env that the webhook refuses"),
    Check("TJ520", "overwritten-env", _W, "a variable that Trainer overwrites without a word"),
    Check("TJ521", "empty-value", _W, "an empty value that Kueue up to 0.19 removes, which blocks the job"),
    Check("TJ522", "no-initializer", _E, "an initializer without its job, container or mount in the runtime"),
    Check("TJ523", "torchtune", _E, "a TorchTune setting that the webhook refuses"),
    Check("TJ524", "trainer-without-effect", _E, "spec.trainer with a runtime that has no trainer job"),
    Check("TJ525", "resources-ignored", _W, "resources that Trainer drops without a word"),
    Check("TJ526", "volcano-queue", _E, "an empty Volcano queue name"),
    Check("TJ527", "devices-dropped", _W, "accelerators of the runtime that resourcesPerNode takes away"),
    Check("TJ528", "single-node-runtime", _W, "several nodes on a runtime for one, which the gate refuses"),
    # The pods that come out, of a runtime alone or merged with a TrainJob
    Check("TJ530", "mount-without-volume", _E, "a volumeMount whose volume does not exist"),
    Check("TJ531", "mount-path-twice", _W, "two volumes at one path of a container, of which one is lost"),
    Check("TJ532", "no-image", _E, "a container without an image; the API server accepts that in a runtime"),
    Check("TJ533", "device-limit", _E, "a device requested without an equal limit"),
    Check("TJ534", "request-over-limit", _E, "a request that is larger than its limit"),
    Check("TJ535", "part-of-a-device", _E, "an amount of a device that is not a whole number"),
    Check("TJ536", "two-volume-sources", _E, "a volume with more than one source, often from a patch"),
    Check("TJ537", "two-env-sources", _E, "a variable with both a value and a valueFrom"),
    Check("TJ538", "container-name-twice", _E, "two containers of a pod with one name"),
    # Patches of a TrainJob
    Check("TJ540", "patch-manager", _E, "a runtimePatch manager that is not a domain-prefixed path"),
    Check("TJ541", "kueue-manager", _E, "a runtimePatch with the manager that Kueue adds itself"),
    Check("TJ542", "patch-unknown-job", _E, "a patch of a job that the runtime does not have"),
    Check("TJ543", "patch-unknown-container", _E, "a patch of a container that the job does not have"),
    Check("TJ544", "patch-wrong-list", _E, "an init container patched under containers, or the reverse"),
    Check("TJ545", "patch-reserved-env", _E, "env of the node or an initializer container in a patch"),
    Check("TJ546", "patch-mounts-twice", _E, "one volume mounted twice in the patch of a container"),
    Check("TJ547", "patch-job-twice", _E, "a job that two podSpecOverrides patch (Trainer 2.0)"),
    Check("TJ548", "tolerations-replaced", _W, "tolerations in a patch that drop those of the runtime"),
    # Runtimes
    Check("TJ550", "no-framework-label", _W, "no framework label, so the Python SDK skips the runtime"),
    Check("TJ551", "no-ml-policy", _W, "no mlPolicy, which the Python SDK and resourcesPerNode need"),
    Check("TJ552", "no-trainer-job", _E, "no job with the trainer label, so spec.trainer has no effect"),
    Check("TJ553", "unknown-step", _W, "a trainjob-ancestor-step label of an unknown value"),
    Check("TJ554", "replicas", _E, "a labelled job with replicas other than 1"),
    Check("TJ555", "required-container", _E, "a labelled job without the container of the required name"),
    Check("TJ556", "trainer-job-name", _E, "a trainer job that is not called node, which breaks rendezvous"),
    Check("TJ557", "initializer-job-name", _E, "an initializer job that is not called like its label"),
    Check("TJ558", "subdomain", _E, "a fixed subdomain, which breaks the master address"),
    Check("TJ559", "ttl-reruns", _W, "a TTL: Trainer makes the deleted JobSet again and the job runs again"),
    Check("TJ560", "field-overwritten", _W, "a field of the template that Trainer overwrites"),
    Check("TJ561", "managed-by", _E, "a managedBy in the template, so no controller runs the JobSet"),
    Check("TJ562", "restart-policy", _E, "a restartPolicy that a Job does not allow"),
    Check("TJ563", "pod-failure-policy", _E, "a podFailurePolicy without restartPolicy Never"),
    Check("TJ564", "failure-rule", _E, "a failurePolicy rule that JobSet refuses"),
    Check("TJ565", "feature-gate", _W, "a JobSet feature that is off unless its gate is enabled"),
    Check("TJ566", "depends-on", _E, "a dependsOn that JobSet refuses or that can never be met"),
    Check("TJ567", "unknown-job", _E, "a policy that names a job which does not exist"),
    Check("TJ568", "volume-claim", _E, "a volumeClaimPolicies template that JobSet refuses"),
    Check("TJ569", "gang-with-initializer", _W, "a podGroupPolicy that waits for pods which wait for it"),
    Check("TJ570", "gang-scheduler", _W, "a podGroupPolicy without the scheduler that obeys it"),
    Check("TJ571", "sdk-device", _W, "limits from which the Python SDK cannot tell the device"),
    Check("TJ572", "unquoted-quantity", _W, "a number as quantity, which the Python SDK reads as 8.0"),
    Check("TJ573", "cluster-scope", _W, "a namespace on a cluster-scoped runtime"),
    Check("TJ574", "validation-disabled", _W, "a label that switches the runtime webhook off"),
    Check("TJ575", "env-injection", _E, "an envInjection target that the runtime does not have"),
    Check("TJ576", "mpi-jobs", _E, "an MPI runtime without both jobs, launcher and node"),
    Check("TJ577", "reserved-container", _E, "an init container name that the Flux plug-in reserves"),
    Check("TJ578", "job-name", _E, "a job name that cannot be part of a pod name"),
)
# A TrainJob against the queues of its cluster (validate/queue): `trainjob validate --queues`.
QUEUE_CHECKS: Final[tuple[Check, ...]] = (
    Check("TJ601", "queue-too-small", _E, "a job that asks more than its ClusterQueue can ever give, with the numbers"),
    Check("TJ602", "resource-not-covered", _E, "a requested resource that the ClusterQueue does not cover"),
    Check("TJ603", "no-local-queue", _E, "a queue that does not exist in the job's namespace"),
    Check("TJ604", "no-cluster-queue", _E, "a LocalQueue that leads to a ClusterQueue which does not exist"),
    Check("TJ605", "queue-inactive", _E, "a queue that is stopped, or lacks a flavor or a topology"),
    Check(
        "TJ606",
        "namespace-not-selected",
        _E,
        "a namespace from which the ClusterQueue, or Kueue, takes no jobs",
    ),
    Check("TJ607", "no-priority-class", _E, "a priority class that does not exist, so Kueue makes no Workload"),
    Check("TJ608", "queue-label-elsewhere", _W, "a queue label on the runtime or its pods and not on the TrainJob"),
    Check("TJ609", "no-flavor", _E, "pods that no flavor can carry: a taint, node labels or the topology"),
    Check("TJ610", "quota-miscount", _W, "resources that Kueue up to 0.19 counts otherwise than Trainer 2.3"),
    Check("TJ611", "queues-incomplete", Severity.NOTE, "queue objects that were not given, so a check was left out"),
    Check("TJ612", "no-queue", _W, "a job without a queue, which starts beside every quota"),
)
# The storage of a TrainJob (validate/storage.py), with the claims that are known.
STORAGE_CHECKS: Final[tuple[Check, ...]] = (
    Check("TJ580", "checkpoints-not-kept", _W, "checkpoints in a folder of the pod, which a restart empties"),
    Check("TJ581", "claim-of-one-node", _E, "a ReadWriteOnce claim that the pods of several nodes mount"),
    Check("TJ582", "claim-of-one-pod", _E, "a ReadWriteOncePod claim that several pods mount"),
    Check("TJ583", "read-only-checkpoints", _E, "a claim at /checkpoints that cannot be written"),
    Check("TJ584", "unknown-access-mode", _W, "several pods on a claim whose access mode the builder was not told"),
)
BY_CODE: Final[Mapping[str, Check]] = {check.code: check for check in (*CHECKS, *QUEUE_CHECKS, *STORAGE_CHECKS)}
