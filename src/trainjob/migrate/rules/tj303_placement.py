"""Where the pods may run: nodeSelector, affinity, tolerations, spreading.

What it does: carries them; selectors on v1's own pod labels are rewritten to JobSet's.
Why it matters: v2 pods have no `training.kubeflow.org/*` labels, so an affinity on them would match
nothing: a required one leaves the pods Pending, a preferred one is silently without effect.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trainjob.emit import LAUNCHER, NODE, WORKER
from trainjob.findings import Finding
from trainjob.kube.yaml import Path
from trainjob.migrate.rule import POD, Claim, Draft, Outcome, Rule, Say
from trainjob.v1.kinds import MPI
from trainjob.v1.pytorchjob import PyTorchJob
from trainjob.v1.traced import derived

_V1 = "training.kubeflow.org/"
# replica-index and replica-type have no counterpart: a pod's index is one higher than its Worker's.
_NEW_LABEL = {"job-name": "jobset.sigs.k8s.io/jobset-name"}
# v1's name of a role -> the replicated job that has its pods.
_JOBS = {"master": NODE, "worker": WORKER}
_MPI_JOBS = {"launcher": LAUNCHER, "worker": NODE}
_PATCH = ("nodeSelector", "affinity", "tolerations", "schedulingGates")
_RUNTIME = ("topologySpreadConstraints", "nodeName")
# The others, and nodeAffinity, speak of labels and taints of nodes.
_SELECTS_PODS = ("affinity", "topologySpreadConstraints")
_LABEL_KEYS = ("matchLabelKeys", "mismatchLabelKeys")


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    say = Say("TJ303", job)
    for role in draft.roles:
        for key in (*_PATCH, *_RUNTIME):
            value = role.pod.get(key)
            if not value:
                continue
            labels = _Relabel(job, two_roles=draft.two_roles)
            role.spec[key] = labels.value(value, role.at(key)) if key in _SELECTS_PODS else value
            for at, old, new in labels.found:
                if new is None:
                    yield say.warning(
                        at,
                        f"pods have no label {old} in v2: this part of the selector is dropped, and the rest of it "
                        "matches the job's pods of both roles",
                        "select by a label of your own",
                    )
                else:
                    yield say.note(at, f"the v1 label {old} becomes {new}")
            if labels.lost is not None:
                raise say.refuse(
                    labels.lost,
                    "a selector on the v1 role label alone would match every pod of the namespace in v2, and a job "
                    "without a fixed name cannot name its own pods",
                    "select by a label of your own",
                )
            if key in _RUNTIME:
                yield say.note(role.at(key), f"{key} needs a generated runtime")
        if role.pod.get("tolerations") and any("queue-name" in k for k in (job.metadata.get("labels") or {})):
            yield say.note(
                role.at("tolerations"),
                "Kueue up to 0.19 replaces these tolerations by those of the ResourceFlavor on admission",
                "put every toleration into the flavor too",
            )


class _Relabel:
    """A copy of a fragment with v1 labels replaced: keys of matchLabels and of matchExpressions."""

    def __init__(self, job: PyTorchJob, *, two_roles: bool) -> None:
        self.name, self.two_roles = job.name, two_roles
        self.jobs = _MPI_JOBS if job.kind is MPI else _JOBS
        self.found: list[tuple[Path, str, str | None]] = []
        self.lost: Path | None = None

    def value(self, value: Any, path: Path) -> Any:
        if isinstance(value, dict):
            before = len(self.found)
            out = {}
            for key, item in value.items():
                here = (*path, key)
                if key == "nodeAffinity":
                    out[key] = item
                elif key == "matchLabels":
                    out[key] = self._labels(item, here)
                elif key in _LABEL_KEYS:
                    out[key] = [new for i, old in enumerate(item) if (new := self._key(old, (*here, i)))]
                else:
                    out[key] = self.value(item, here)
            dropped = any(new is None for _, _, new in self.found[before:])
            if dropped and ("matchLabels" in value or "matchExpressions" in value):
                out = {k: v for k, v in out.items() if v}
                if not out:
                    # An empty selector matches every pod of the namespace.
                    if self.name is None:
                        self.lost = path
                    out = {"matchLabels": {_NEW_LABEL["job-name"]: self.name}}
            return out
        if isinstance(value, list):
            items = [self._expression(item, (*path, i)) for i, item in enumerate(value)]
            return [item for item in items if item is not None]
        return value

    def _labels(self, labels: Any, path: Path) -> Any:
        out = {}
        for key, item in labels.items():
            if not key.startswith(_V1):
                out[key] = item
                continue
            new = self._new(key)
            self.found.append(((*path, key), key, new))
            if new is not None:
                out[new] = self._role(key, item)
        return out

    def _expression(self, item: Any, path: Path) -> Any:
        key = item.get("key") if isinstance(item, dict) else None
        if not (isinstance(key, str) and key.startswith(_V1)):
            return self.value(item, path)
        new = self._new(key)
        self.found.append((path, key, new))
        if new is None:
            return None
        new = derived(new, key)
        values = [self._role(key, v) for v in item.get("values", [])]
        return {**item, "key": new, **({"values": values} if values else {})}

    def _key(self, key: str, path: Path) -> str | None:
        if not key.startswith(_V1):
            return key
        new = self._new(key)
        self.found.append((path, key, new))
        return None if new is None else derived(new, key)

    def _role(self, key: str, value: str) -> str:
        return derived(self.jobs.get(value, value), value) if key.endswith("replica-type") else value

    def _new(self, key: str) -> str | None:
        short = key.removeprefix(_V1)
        if short == "replica-type" and self.two_roles:
            return "jobset.sigs.k8s.io/replicatedjob-name"
        return _NEW_LABEL.get(short)


RULE = Rule(
    "TJ303",
    "placement",
    (
        *(Claim(f"{POD}.{f}", Outcome.CARRIED, f"patch {f}") for f in _PATCH),
        *(Claim(f"{POD}.{f}", Outcome.TRANSLATED, f"TrainingRuntime {f}") for f in _RUNTIME),
    ),
    _apply,
)
