"""The rows of migration/DIFFERENCES.md, in its order; the first that matches holds."""

from __future__ import annotations

from typing import Final

from tests.e2e.differential.compare import ABSENT, Difference
from tests.e2e.differential.explain import Explanation, Facts, Tag, Test


def explain(difference: Difference, facts: Facts) -> Explanation | None:
    """The first row that explains a difference."""
    return next((row for row in EXPLANATIONS if row.matches(difference, facts)), None)


def _port_only(difference: Difference) -> bool:
    return difference.v1.replace("23456", "29500") == difference.v2


def _added(value: str = "") -> Test:
    return lambda d: d.v1 == ABSENT and (not value or d.v2 == value)


def _gone() -> Test:
    return lambda d: d.v2 == ABSENT


_PROGRAM: Final = r"[\w.-]+(?: #\d+)?"
_KUEUE: Final = r"kueue\.x-k8s\.io/"

EXPLANATIONS: Final[tuple[Explanation, ...]] = (
    # --- names -------------------------------------------------------------------------------------
    Explanation(
        "pod-labels-v1",
        "labels and annotations of pods",
        "`training.kubeflow.org/*`",
        "none of them",
        "The v1 operator's own labels. Select by `jobset.sigs.k8s.io/jobset-name` and "
        "`batch.kubernetes.io/job-completion-index`.",
        r"pod labels\.training\.kubeflow\.org/[\w-]+",
        holds=_gone(),
    ),
    Explanation(
        "pod-labels-v2",
        "labels and annotations of pods",
        "none of them",
        "`jobset.sigs.k8s.io/*`, `batch.kubernetes.io/*`, `job-name`, `controller-uid`",
        "JobSet and Job write them.",
        r"pod (?:labels|annotations)\.(?:(?:jobset\.sigs|batch\.kubernetes)[\w./-]+|job-name|controller-uid)",
        holds=_added(),
    ),
    Explanation(
        "host-name",
        "host name and domain of a pod",
        "the pod's name",
        "`<job>-node-0-<i>` in the domain `<job>`",
        "JobSet gives every pod a stable name in one headless Service.",
        rf"pod (?:hostname|subdomain)|{_PROGRAM}: hosts",
        holds=lambda d: d.what.endswith("hosts") or d.v1 == ABSENT,
    ),
    Explanation(
        "job-completion-index",
        "env `JOB_COMPLETION_INDEX`",
        "not set",
        "the index of the pod, in every container",
        "Kubernetes sets it in pods of an Indexed Job.",
        rf"{_PROGRAM}: env\.JOB_COMPLETION_INDEX"
        r"|pod (?:containers|initContainers)\[[\w-]+\]\.env\[JOB_COMPLETION_INDEX\].*",
        holds=_added(),
    ),
    Explanation(
        "origin",
        "annotations of the job",
        "none",
        "`trainjob.dev/migrated-from`, `trainjob.dev/source-sha256`",
        "Where the TrainJob came from; leave them out and nothing changes.",
        r"job annotations trainjob\.dev/(?:migrated-from|source-sha256)",
        holds=_added(),
    ),
    Explanation(
        "last-applied",
        "annotations of the job",
        "`kubectl.kubernetes.io/last-applied-configuration`",
        "left out",
        "kubectl wrote it about the v1 object.",
        r"job annotations kubectl\.kubernetes\.io/last-applied-configuration",
        ("TJ106",),
        _gone(),
    ),
    # --- rendezvous --------------------------------------------------------------------------------
    Explanation(
        "init-pytorch",
        "init container `init-pytorch` of Workers",
        "waits for the Master's name",
        "none",
        "JobSet publishes names of pods that are not ready yet, and torch tries again.",
        r"pod initContainers\[init-pytorch\].*",
        holds=_gone(),
    ),
    Explanation(
        "port",
        "port of the rendezvous",
        "23456, or the port called `pytorchjob-port`",
        "29500",
        "The variables say it, and the program reads them; a port written into a command stays.",
        rf"{_PROGRAM}: (?:env\.(?:PET_)?MASTER_PORT|rendezvous\.port|argv)"
        r"|pod containers\[[\w.-]+\]\.(?:env\[(?:PET_)?MASTER_PORT\].*|args|command)",
        holds=lambda d: _port_only(d) or (d.what.endswith(("PORT", "port")) and d.v2 == "29500" and d.v1.isdigit()),
    ),
    Explanation(
        "container-ports",
        "container ports",
        "`pytorchjob-port`, and informing ports",
        "29500 from Trainer",
        "A containerPort alone informs; the headless Service lets every port through.",
        r"pod containers\[train\]\.ports(?:\[[\w-]+\]\.(?!hostPort).*)?",
    ),
    Explanation(
        "host-port",
        "port of the node that a pod on the host network takes",
        "23456, or the port called `pytorchjob-port`",
        "29500 where Trainer adds it, else none",
        "On the host network a containerPort is a port of the node.",
        r"pod containers\[train\]\.ports\[[\w-]+\]\.hostPort",
        ("TJ305",),
        lambda d: {d.v1, d.v2} <= {ABSENT, "23456", "29500"},
    ),
    Explanation(
        "host-network-names",
        "Workers on the host network that cannot find rank 0",
        "wait in `init-pytorch`, unnoticed, when the Master has succeeded",
        "run, and fail or wait as the program does",
        "Set `dnsPolicy: ClusterFirstWithHostNet`.",
        r"train said|end|left behind|tried again",
        ("TJ305",),
        tags=(Tag.WORKER_GOES_ON,),
    ),
    Explanation(
        "worker-only-variables",
        "env of jobs without a Master",
        "no `MASTER_*`, `RANK`, `WORLD_SIZE`; `PET_*` without address and rank",
        "all of them",
        "v1 gave such pods no rank. Trainer does; a script that asks for it trains together with its peers.",
        rf"{_PROGRAM}: (?:env\.(?:PET_)?(?:MASTER_ADDR|MASTER_PORT|RANK|NODE_RANK|WORLD_SIZE)|rendezvous\.\w+)",
        holds=lambda d: d.v1 in (ABSENT, "", "no address") or (d.what.endswith("rank") and d.v1 == "0"),
        tags=(Tag.NO_MASTER,),
    ),
    Explanation(
        "worker-only-program",
        "what a program without a Master does with `$RANK` and its like",
        "they are empty, or stay text",
        "rank and world size",
        "A shell that switches on `$RANK` takes the branch of rank 0 now; before, no pod did.",
        rf"{_PROGRAM}: argv",
        ("TJ206",),
        tags=(Tag.NO_MASTER,),
    ),
    Explanation(
        "operator-reference",
        "`$(RANK)` and its like in the value of a variable",
        "stay text: the operator's variables stand behind the user's",
        "are filled in",
        "Write `$$(RANK)` to keep the text.",
        rf"{_PROGRAM}: env\.\w+",
        ("TJ204",),
        lambda d: "$(" in d.v1 and "$(RANK)" not in d.v2,
    ),
    Explanation(
        "launcher-world-size",
        "`WORLD_SIZE` of torchrun itself",
        "pods x `nprocPerNode`",
        "pods",
        "torchrun does not read it, and sets it for its workers.",
        r"train: env\.WORLD_SIZE",
        holds=lambda d: d.v1.isdigit() and d.v2.isdigit(),
        tags=(Tag.TORCHRUN,),
    ),
    Explanation(
        "processes-variable",
        "env `PET_NPROC_PER_NODE` of programs that start no processes by it",
        "`auto`",
        "a number, from the CPU request",
        "Only torchrun reads it. Where torchrun does, TJ103 speaks of it.",
        rf"{_PROGRAM}: env\.PET_NPROC_PER_NODE|pod containers\[[\w.-]+\]\.env\[PET_NPROC_PER_NODE\].*",
        holds=lambda d: d.v1 == "auto",
        tags=(Tag.NO_COUNT,),
    ),
    Explanation(
        "processes",
        "processes that torchrun starts without GPUs",
        "`auto`: one for each CPU of the host",
        "one for each CPU that is requested",
        "Set `nprocPerNode`.",
        rf"{_PROGRAM}: env\.PET_NPROC_PER_NODE",
        ("TJ103",),
        lambda d: d.v1 == "auto",
    ),
    Explanation(
        "processes-gpu",
        "env `PET_NPROC_PER_NODE` where v1 said `gpu`",
        "`gpu`",
        "`auto`",
        "With GPUs in the pod both are their number.",
        rf"{_PROGRAM}: env\.PET_NPROC_PER_NODE",
        holds=lambda d: (d.v1, d.v2) == ("gpu", "auto"),
    ),
    Explanation(
        "process-count",
        "ranks and world size of torchrun's workers without GPUs",
        "count the CPUs of the host",
        "count the CPUs that are requested",
        "Set `nprocPerNode`.",
        r"train(?: #\d+)?: (?:env\.(?:LOCAL_|ROLE_|GROUP_)?(?:WORLD_SIZE|RANK)|rendezvous\.rank)|train #\d+ said",
        ("TJ103",),
        tags=(Tag.TORCH_WORKERS,),
    ),
    Explanation(
        "elastic",
        "rendezvous variables of `elasticPolicy`",
        "`PET_NNODES` as a range; the endpoint is Worker 0",
        "a fixed size; the endpoint is rank 0, port 29400",
        "A TrainJob has a fixed size.",
        rf"{_PROGRAM}: (?:env\.PET_(?:NNODES|RDZV_ENDPOINT|STANDALONE)|rendezvous\.(?:host|port|nodes|rank))",
        ("TJ104",),
    ),
    # --- pods --------------------------------------------------------------------------------------
    Explanation(
        "two-programs",
        "command of a job whose Master and Worker run different programs",
        "each its own",
        "one script that switches on `PET_NODE_RANK`",
        "A TrainJob has one pod template. The process that runs is the same.",
        r"pod containers\[train\]\.(?:command|args)",
        ("TJ102",),
    ),
    Explanation(
        "merged-labels",
        "labels and annotations that only one role has",
        "on that role's pods",
        "on all pods",
        "A TrainJob has one pod template.",
        r"pod (?:labels|annotations)\.(?!training\.|jobset\.|batch\.).+",
        ("TJ102",),
        _added(),
    ),
    Explanation(
        "istio",
        '`sidecar.istio.io/inject: "false"`',
        "a label, or an annotation",
        "both",
        "Older meshes read one, newer the other.",
        r"pod (?:labels|annotations)\.sidecar\.istio\.io/inject",
        ("TJ308",),
        _added("false"),
    ),
    Explanation(
        "queue-label-of-pods",
        "queue labels on the pod template",
        "on the pods",
        "left out",
        "Kueue reads them from the job.",
        rf"pod labels\.{_KUEUE}(?:queue-name|priority-class)",
        ("TJ308",),
        _gone(),
    ),
    Explanation(
        "selectors",
        "selectors on the v1 operator's labels",
        "`training.kubeflow.org/*`",
        "JobSet's labels, or the whole job",
        "v2 pods do not have the old ones.",
        r"pod (?:affinity|topologySpreadConstraints).*",
        ("TJ303",),
        lambda d: "training.kubeflow.org/" in d.v1,
    ),
    Explanation(
        "index-variable",
        "a variable that takes the v1 replica index",
        "index within the role",
        "index of the pod in the job",
        "The label is gone; a Worker's number is one higher.",
        rf"{_PROGRAM}: env\.(?!PET_|MASTER_|RANK$|WORLD_SIZE$|LOCAL_).+",
        ("TJ204",),
        lambda d: d.v1.isdigit() and d.v2.isdigit() and int(d.v2) - int(d.v1) in (0, 1),
    ),
    Explanation(
        "label-file",
        "a file of the downward API that lists the pod's labels",
        "`training.kubeflow.org/*`",
        "JobSet's and Job's labels",
        "The file shows the labels that the pod has.",
        rf"{_PROGRAM}: mounts\..+\.files\.\w+",
        holds=lambda d: "training.kubeflow.org/" in d.v1 and "jobset.sigs.k8s.io/" in d.v2,
    ),
    # --- queue -------------------------------------------------------------------------------------
    Explanation(
        "pod-sets",
        "Kueue's pod sets",
        "`master` and `worker`",
        "`node` (and `worker`)",
        "The same pods and the same amounts in other groups.",
        rf"queue pod sets|pod labels\.{_KUEUE}podset",
    ),
    Explanation(
        "workload-name",
        "annotation `kueue.x-k8s.io/workload` of pods",
        "`pytorchjob-...`",
        "`trainjob-...`",
        "Kueue names a Workload by the kind of its job.",
        rf"pod annotations\.{_KUEUE}workload",
    ),
    Explanation(
        "queue-priority",
        "priority in the queue from `schedulingPolicy.priorityClass`",
        "that of the class",
        "0, or that of the pods",
        "Give the TrainJob the label `kueue.x-k8s.io/priority-class`.",
        r"queue priority(?: class)?",
        ("TJ408",),
    ),
    # --- ends --------------------------------------------------------------------------------------
    Explanation(
        "success-of-all",
        "success where a Worker still runs or fails",
        "when the Master has succeeded",
        "when every pod has",
        "A program whose ranks all end by themselves shows no difference.",
        r"job outcome|end|tried again|left behind",
        ("TJ409",),
        tags=(Tag.WORKER_GOES_ON,),
    ),
    Explanation(
        "clean-up",
        "pods that are left after the end",
        "as `cleanPodPolicy` says",
        "those that ended stay, those that still run are deleted",
        "JobSet decides, not the job.",
        r"left behind|end",
        ("TJ404",),
    ),
    Explanation(
        "success-of-rank-0",
        "Workers of a job whose roles differ",
        "run on when the Master has succeeded, and stay",
        "are deleted when rank 0 has succeeded",
        "The runtime has two jobs, and JobSet ends what still runs of the second.",
        r"left behind|end|tried again",
        ("TJ102",),
        lambda d: 0 not in d.ranks,
    ),
    Explanation(
        "deadline",
        "pods at `activeDeadlineSeconds`",
        "run on, or stay with their logs",
        "are deleted with their logs",
        "Trainer deletes the JobSet. v1 looks at the deadline only when something else changes: a job of 20 s went "
        "on until its programs ended.",
        r"left behind|end",
        ("TJ403",),
    ),
    Explanation(
        "failed-pods",
        "pods of a failed try, and pods that still run when the job fails",
        "a failed pod that is tried again is deleted, others go on",
        "the failed pod stays, running ones are deleted",
        "JobSet ends what still runs when a job has failed; Job keeps failed pods for their logs.",
        r"left behind|end",
        ("TJ401", "TJ402"),
        tags=(Tag.FAILED, Tag.TRIED_AGAIN),
    ),
    Explanation(
        "always",
        "`restartPolicy: Always`",
        "runs again after exit 0, and never ends",
        "succeeds",
        "A Job cannot restart a program that has succeeded.",
        r"job outcome|tried again|end|left behind|pod restartPolicy",
        ("TJ401",),
        tags=(Tag.ALWAYS,),
    ),
    Explanation(
        "time-to-live",
        "`ttlSecondsAfterFinished`",
        "the job is deleted",
        "it stays, and an annotation keeps the number",
        "JobSet's TTL would run a failed job again.",
        r"job is gone after its end|job outcome|left behind"
        r"|job annotations trainjob\.dev/v1-ttl-seconds-after-finished",
        ("TJ405",),
    ),
)
