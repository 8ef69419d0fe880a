"""Where the pods may run: nodeSelector, affinity, tolerations, spreading.

What it does: carries them; selectors on v1's own pod labels are rewritten to JobSet's.
Why it matters: v2 pods have no `training.kubeflow.org/*` labels, so an affinity on them would match
nothing: a required one leaves the pods Pending, a preferred one is silently without effect.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trainjob.findings import Finding
from trainjob.kube.yaml import Path
from trainjob.migrate.rule import POD, Claim, Draft, Outcome, Rule, Say
from trainjob.v1.pytorchjob import PyTorchJob

_V1 = "training.kubeflow.org/"
_NEW_LABEL = {
    "job-name": "jobset.sigs.k8s.io/jobset-name",
    "replica-index": "batch.kubernetes.io/job-completion-index",
}
_PATCH = ("nodeSelector", "affinity", "tolerations", "schedulingGates")
_RUNTIME = ("topologySpreadConstraints", "nodeName")


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    say = Say("TJ303", job)
    for role in draft.roles:
        for key in (*_PATCH, *_RUNTIME):
            value = role.pod.get(key)
            if not value:
                continue
            found: list[tuple[Path, str, str | None]] = []
            role.spec[key] = _relabel(value, role.at(key), found, two_roles=draft.two_roles)
            for at, old, new in found:
                if new is None:
                    yield say.warning(
                        at,
                        f"pods have no label {old} in v2: this part of the selector is dropped, and it now matches "
                        "the pods of both roles",
                        "select by jobset.sigs.k8s.io/jobset-name or by a label of your own",
                    )
                else:
                    yield say.note(at, f"the v1 label {old} becomes {new}")
            if key in _RUNTIME:
                yield say.note(role.at(key), f"{key} needs a generated runtime")
        if role.pod.get("tolerations") and any("queue-name" in k for k in (job.metadata.get("labels") or {})):
            yield say.note(
                role.at("tolerations"),
                "Kueue up to 0.19 replaces these tolerations by those of the ResourceFlavor on admission",
                "put every toleration into the flavor too",
            )


def _relabel(value: Any, path: Path, found: list[tuple[Path, str, str | None]], *, two_roles: bool) -> Any:
    """A copy with v1 labels replaced, in matchLabels keys, matchExpressions and matchLabelKeys."""
    if isinstance(value, dict):
        out = {}
        for key, item in value.items():
            here = (*path, key)
            if isinstance(key, str) and key.startswith(_V1) and path and path[-1] == "matchLabels":
                new = _new(key, two_roles=two_roles)
                found.append((here, key, new))
                if new is not None:
                    out[new] = _role_value(key, item)
                continue
            out[key] = _relabel(item, here, found, two_roles=two_roles)
        return out
    if isinstance(value, list):
        items = []
        for i, item in enumerate(value):
            key = item.get("key") if isinstance(item, dict) else None
            if isinstance(key, str) and key.startswith(_V1):
                new = _new(key, two_roles=two_roles)
                found.append(((*path, i), key, new))
                if new is not None:
                    values = [_role_value(key, v) for v in item.get("values", [])]
                    items.append({**item, "key": new, **({"values": values} if values else {})})
                continue
            items.append(_relabel(item, (*path, i), found, two_roles=two_roles))
        return items
    return value


def _new(key: str, *, two_roles: bool) -> str | None:
    short = key.removeprefix(_V1)
    if short == "replica-type" and two_roles:
        return "jobset.sigs.k8s.io/replicatedjob-name"
    return _NEW_LABEL.get(short) if short != "replica-index" else None


def _role_value(key: str, value: str) -> str:
    if not key.endswith("replica-type"):
        return value
    return {"master": "node", "worker": "worker"}.get(value, value)


RULE = Rule(
    "TJ303",
    "placement",
    (
        *(Claim(f"{POD}.{f}", Outcome.CARRIED, f"patch {f}") for f in _PATCH),
        *(Claim(f"{POD}.{f}", Outcome.TRANSLATED, f"TrainingRuntime {f}") for f in _RUNTIME),
    ),
    _apply,
)
