"""Labels and annotations of the job, with the queue labels that Kueue reads.

What it does: carries them to the TrainJob; turns Kueue's legacy queue annotation into the label;
leaves out what a tool wrote (`kubectl.kubernetes.io/last-applied-configuration`).
Why it matters: Kueue reads queue and priority from the TrainJob, nothing from the runtime. Labels of
the job reach the pods in neither version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainjob.findings import Finding
from trainjob.kube.names import QUEUE_LABEL
from trainjob.migrate.rule import Claim, Draft, Outcome, Rule, Say
from trainjob.v1.pytorchjob import PyTorchJob

_QUEUE_OF_A_SCHEDULER = re.compile(r"(?:^|[/.-])queue(?:-name|Name)?$")
_WRITTEN_BY_TOOLS = ("kubectl.kubernetes.io/last-applied-configuration",)
# Keys that mean the same on any kind.
_NEUTRAL = (
    "kueue.x-k8s.io/", "app.kubernetes.io/", "helm.sh/", "meta.helm.sh/", "argocd.argoproj.io/",
    "kustomize.toolkit.fluxcd.io/", "trainer.kubeflow.org/", "kubernetes.io/", "sidecar.istio.io/",
)  # fmt: skip


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    say = Say("TJ106", job)
    labels = dict(job.metadata.get("labels") or {})
    annotations = dict(job.metadata.get("annotations") or {})
    at = ("metadata", "annotations")
    for key in list(annotations):
        if key in _WRITTEN_BY_TOOLS or key.startswith("kubeflow.org/"):
            del annotations[key]
            yield say.note((*at, key), f"the annotation {key} is left out: a tool wrote it about the v1 object")
    if QUEUE_LABEL in annotations:
        queue = annotations.pop(QUEUE_LABEL)
        labels.setdefault(QUEUE_LABEL, queue)
        yield say.note(
            (*at, QUEUE_LABEL), f"the legacy annotation becomes the label {QUEUE_LABEL}: {labels[QUEUE_LABEL]}"
        )
    if QUEUE_LABEL in labels:
        queue = labels[QUEUE_LABEL]
        yield say.note(
            ("metadata", "labels", QUEUE_LABEL),
            f"Kueue queues the TrainJob in {queue!r} if its integrations list trainer.kubeflow.org/trainjob",
        )
    for scheduler in labels:
        if _QUEUE_OF_A_SCHEDULER.search(scheduler) and not scheduler.startswith("kueue.x-k8s.io/"):
            yield say.warning(
                ("metadata", "labels", scheduler),
                f"the queue label {scheduler} stands on the TrainJob; its scheduler must read it from there or from "
                "the pods, and knows PyTorchJob and perhaps not TrainJob",
                "ask the scheduler's owner, or set the label on the pod template",
            )
    foreign = [k for k in annotations if "/" in k and not k.startswith(_NEUTRAL)]
    if foreign:
        yield say.note(
            (*at, foreign[0]),
            f"kept: {', '.join(foreign)}. A controller that reads them watches PyTorchJobs and may not know TrainJobs",
        )
    draft.labels |= labels
    draft.annotations |= annotations


RULE = Rule(
    "TJ106",
    "job-labels",
    (
        Claim("metadata.labels", Outcome.CARRIED, "metadata.labels"),
        Claim("metadata.annotations", Outcome.CARRIED, "metadata.annotations"),
    ),
    _apply,
)
