"""The CEL rules of the vendored CRDs, as Python predicates keyed by the exact text of the rule.

A CEL engine would be the heaviest part of the package, and the CRDs hold thirteen rules that
look at one object alone (kubeflow/trainer v2.0.1 to v2.3.0, manifests/base/crds). Rules that
compare with the old object (`oldSelf`) need a stored object and are not checked here. That the
table is complete, and agrees with a real CEL engine, is tested.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

# A predicate gets the value at the rule's node. It may raise: CEL counts an error as a refusal too.
Predicate = Callable[[Any], bool]

_RFC1035: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?\Z")
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://.+\Z")
_MANAGERS: Final = ("trainer.kubeflow.org/trainjob-controller", "kueue.x-k8s.io/multikueue")


def _has(value: Any, *keys: str) -> bool:
    """CEL's `has`: the last field is present. A missing field on the way is an error, as in CEL."""
    for key in keys[:-1]:
        value = value[key]
    return value.get(keys[-1]) is not None


def _policies_at_most_one(self: Any) -> bool:
    return sum(_has(self, p) for p in ("torch", "mpi", "jax", "xgboost", "flux")) <= 1


def _processes(self: Any) -> bool:
    return self in ("auto", "cpu", "gpu") if isinstance(self, str) else self > 0


def _startup_without_depends_on(self: Any) -> bool:
    # `!(a && b && c)`: in CEL one false part decides, even when another part is an error.
    if not _has(self, "startupPolicy"):
        return True
    order = self["startupPolicy"].get("startupPolicyOrder")
    if order is not None and order != "InOrder":
        return True
    return not any(_has(job, "dependsOn") for job in self["replicatedJobs"])


def _no_claim_namespace(self: Any) -> bool:
    return all(
        not _has(template, "metadata", "namespace") or not template["metadata"]["namespace"]
        for template in self["templates"]
    )


RULES: Final[Mapping[str, Predicate]] = {
    # TrainJob
    "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')": (
        lambda self: _RFC1035.match(self["metadata"]["name"]) is not None
    ),
    "size(self.metadata.name) <= 63": lambda self: len(self["metadata"]["name"]) <= 63,
    "self in ['trainer.kubeflow.org/trainjob-controller', 'kueue.x-k8s.io/multikueue']": (
        lambda self: self in _MANAGERS
    ),
    "self == '' || self.matches('^[A-Za-z][A-Za-z0-9+.-]*://.+$')": (
        lambda self: self == "" or _URI.match(self) is not None
    ),
    "has(self.lastUpdatedTime)": lambda self: _has(self, "lastUpdatedTime"),
    # TrainingRuntime and ClusterTrainingRuntime
    "!(has(self.torch) && has(self.mpi))": lambda self: not (_has(self, "torch") and _has(self, "mpi")),
    "[has(self.torch), has(self.mpi), has(self.jax), has(self.xgboost),has(self.flux)]"
    ".filter(x, x).size() <= 1": _policies_at_most_one,
    "!(has(self.numNodes) && (has(self.torch) && has(self.torch.elasticPolicy)))": (
        lambda self: not (_has(self, "numNodes") and _has(self, "torch") and _has(self, "torch", "elasticPolicy"))
    ),
    "self > 0 || self in ['auto', 'cpu', 'gpu']": _processes,
    "self >= 1": lambda self: self >= 1,
    "!self.exists(c, c == 'node')": lambda self: "node" not in self,
    "!(has(self.startupPolicy) && self.startupPolicy.startupPolicyOrder == 'InOrder' && "
    "self.replicatedJobs.exists(x, has(x.dependsOn)))": _startup_without_depends_on,
    "self.templates.all(t, !has(t.metadata.namespace) || size(t.metadata.namespace) == 0)": (_no_claim_namespace),
}


def is_transition(rule: str) -> bool:
    """True for a rule that compares an update with the stored object."""
    return "oldSelf" in rule


def rules(schema: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(rule, message) of every CEL rule in a structural schema, in document order."""
    for entry in schema.get("x-kubernetes-validations", ()):
        yield entry["rule"], entry.get("message", entry["rule"])
    for child in schema.get("properties", {}).values():
        yield from rules(child)
    for key in ("items", "additionalProperties"):
        child = schema.get(key)
        if isinstance(child, Mapping):
            yield from rules(child)


def unknown_rules(schema: Mapping[str, Any]) -> frozenset[str]:
    """The rules of a schema that could be checked on one object but have no predicate here."""
    return frozenset(rule for rule, _ in rules(schema) if not is_transition(rule) and rule not in RULES)
