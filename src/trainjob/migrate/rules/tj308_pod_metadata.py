"""Labels and annotations of the pods are carried to the pods.

What it does: copies them; an Istio opt-out is given as label and as annotation; a queue label that
belongs on the job is left out.
Why it matters: `sidecar.istio.io/inject: "false"` must survive, or the mesh's sidecar keeps the pod
from ever completing; own labels are what affinities, Services and NetworkPolicies select.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainjob.findings import Finding
from trainjob.kube.names import QUEUE_LABEL
from trainjob.migrate.rule import REPLICA, Claim, Draft, Outcome, Rule, Say
from trainjob.v1.pytorchjob import PyTorchJob
from trainjob.v1.traced import derived

_META = f"{REPLICA}.template.metadata"
_ISTIO = "sidecar.istio.io/inject"
_QUEUE_LABELS = (QUEUE_LABEL, "kueue.x-k8s.io/priority-class")


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    say = Say("TJ308", job)
    for role in draft.roles:
        base = (*role.replica.path, "template", "metadata")
        meta = role.replica.metadata
        labels, annotations = dict(meta.get("labels") or {}), dict(meta.get("annotations") or {})
        for key in _QUEUE_LABELS:
            if key in labels:
                value = labels.pop(key)
                own = draft.labels.get(key)
                yield say.note(
                    (*base, "labels", key),
                    f"{key}: {value} is left out of the pods: Kueue reads it from the TrainJob"
                    + ("" if own else ", which has none; the v1 job was not queued by it either"),
                )
        for key in [k for k in labels if k.startswith("training.kubeflow.org/")]:
            del labels[key]
            yield say.warning(
                (*base, "labels", key),
                f"the label {key} was the v1 operator's own; v2 pods have jobset.sigs.k8s.io/* labels",
            )
        if labels.get(_ISTIO) == "false" or annotations.get(_ISTIO) == "false":
            missing = "label" if _ISTIO not in labels else "annotation" if _ISTIO not in annotations else ""
            out = derived("false", labels.get(_ISTIO), annotations.get(_ISTIO))
            labels[_ISTIO] = annotations[_ISTIO] = out
            if missing:
                yield say.note(
                    base, f'{_ISTIO}: "false" is set as {missing} too: older meshes read one, newer the other'
                )
        if labels and len(job.roles) == 2 and draft.two_roles and role is draft.roles[0]:
            other = dict(draft.roles[1].replica.metadata.get("labels") or {})
            if any(labels.get(k) != v for k, v in other.items()):
                yield say.note((*base, "labels"), "the roles' own labels are kept, each on its own job of the runtime")
        role.labels |= labels
        role.annotations |= annotations
        for key in ("name", "namespace", "finalizers"):
            if meta.get(key):
                yield say.note(
                    (*base, key), f"template.metadata.{key} is left out: the v1 operator ignored or overwrote it"
                )
        for key in annotations:
            if key.startswith("kueue.x-k8s.io/podset-"):
                yield say.note(
                    (*base, "annotations", key),
                    "Kueue's pod sets are called `node` (and `worker`) now, not Master and Worker",
                )


RULE = Rule(
    "TJ308",
    "pod-metadata",
    (
        Claim(f"{_META}.labels", Outcome.CARRIED, "patch pod metadata.labels"),
        Claim(f"{_META}.annotations", Outcome.CARRIED, "patch pod metadata.annotations"),
        *(Claim(f"{_META}.{f}", Outcome.DROPPED) for f in ("name", "namespace", "finalizers")),
    ),
    _apply,
)
