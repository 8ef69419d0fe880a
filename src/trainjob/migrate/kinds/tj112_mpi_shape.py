"""An MPIJob's launcher and Workers become the jobs `launcher` and `node` of one generated runtime.

What it does: Worker.replicas is numNodes, slotsPerWorker is numProcPerNode; the launcher's program stands in the
TrainJob, the Workers' in the runtime; runLauncherAsNode is false, so the launcher takes no rank. Refuses the rest.
Why it matters: a launcher that counts as a node would train on one pod more, or on one with other resources; a
missing numProcPerNode makes Trainer count GPUs instead (v2.3.0 pkg/runtime/framework/plugins/mpi/mpi.go).
"""

from __future__ import annotations

from collections.abc import Iterator

from trainjob.findings import Finding
from trainjob.migrate.rule import REPLICA, Claim, Draft, Outcome, Rule, Say
from trainjob.v1.pytorchjob import PyTorchJob
from trainjob.v1.traced import derived


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    say = Say("TJ112", job)
    if not draft.two_roles:
        raise say.refuse(
            job.kind.path,
            "the MPIJob has no Worker: v1 ran the launcher alone, with an empty hostfile",
            "add Workers, or make it a plain Job: nothing of it needs MPI over several pods",
        )
    launcher, worker = draft.roles
    devices = [key for c in launcher.replica.containers for key in (c.get("resources") or {}).get("limits") or {}]
    gpus = [key for key in devices if "gpu" in key]
    if gpus:
        raise say.refuse(
            (*launcher.replica.pod_path, "containers"),
            f"the launcher asks for {gpus[0]}: v1 then listed it in the hostfile and ran ranks on it, with other "
            "resources than the Workers; Trainer can do so only where all nodes are alike",
            "move its share to one more Worker and take the GPUs from the launcher",
        )
    main = job.spec.get("mainContainer")
    if main:
        first = worker.main.get("name")
        if main != first:
            raise say.refuse(
                ("spec", "mainContainer"),
                f"v1 started the ranks in the container {main!r} of a Worker; its first container is {first!r}",
                f"make {main!r} the first container of the Worker: Trainer starts ranks in the container `node`",
            )
        yield say.note(("spec", "mainContainer"), f"{main!r} is the container `node` now, where the ranks start")
    slots = job.spec.get("slotsPerWorker")
    if slots is not None and slots < 1:
        raise say.refuse(("spec", "slotsPerWorker"), f"slotsPerWorker is {slots}", "set at least 1")
    draft.procs_per_node = derived(1 if slots is None else slots, slots)
    draft.nodes = worker.pods
    draft.world_size = draft.nodes * draft.procs_per_node
    yield say.note(
        job.kind.path,
        f"1 launcher and {draft.nodes} Worker{'s' if draft.nodes != 1 else ''} with {draft.procs_per_node} "
        f"slot{'s' if draft.procs_per_node != 1 else ''} each: jobs `launcher` and `node` of a generated runtime, "
        f"numNodes {draft.nodes}; the TrainJob is complete when the launcher is, as in v1",
    )
    clean = job.spec.get("cleanPodPolicy")
    if clean == "All":
        yield say.warning(
            ("spec", "cleanPodPolicy"),
            "cleanPodPolicy All is dropped: finished pods stay until the TrainJob is deleted",
            "delete finished TrainJobs with a janitor",
        )
    elif clean:
        yield say.note(
            ("spec", "cleanPodPolicy"),
            f"cleanPodPolicy {clean}: JobSet deletes the Workers that still run when the launcher "
            "has succeeded, and keeps finished pods",
        )


RULE = Rule(
    "TJ112",
    "mpi-shape",
    (
        Claim(f"{REPLICA}.replicas", Outcome.TRANSLATED, "spec.trainer.numNodes"),
        Claim("spec.slotsPerWorker", Outcome.TRANSLATED, "spec.trainer.numProcPerNode"),
        Claim("spec.mainContainer", Outcome.TRANSLATED, "node"),
        Claim("spec.cleanPodPolicy", Outcome.DROPPED),
    ),
    _apply,
)
