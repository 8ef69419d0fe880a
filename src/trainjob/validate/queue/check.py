"""TJ601 to TJ612: a TrainJob against the queues that it is meant for.

An error means that the job stays Suspended for ever, however empty the cluster is. What the given
manifests cannot tell is one warning (TJ611), never a guess.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from trainjob.findings import Finding
from trainjob.kube.names import QUEUE_LABEL
from trainjob.kube.schema import Path
from trainjob.targets import Target
from trainjob.validate.case import Case
from trainjob.validate.documents import Source, train_jobs
from trainjob.validate.queue import words
from trainjob.validate.queue.amounts import Amounts, listing, show
from trainjob.validate.queue.demand import Defaults, PodSet, demand, total
from trainjob.validate.queue.objects import Node, Queues
from trainjob.validate.queue.quota import Assignment, Mismatch, Short, Tree, assign
from trainjob.validate.queue.selectors import describe, selects
from trainjob.validate.view import dig, entries, mapping, since, text

PRIORITY_LABEL: Final = "kueue.x-k8s.io/priority-class"
# Kueue gives a job without a queue to the LocalQueue of this name, where there is one.
DEFAULT_QUEUE: Final = "default"
_LABELS: Final[Path] = ("metadata", "labels")


@dataclass(slots=True)
class Verdict:
    """What became of one TrainJob. `admitted`: Kueue can admit it, if others leave room."""

    name: str
    namespace: str = ""
    queue: str = ""
    cluster_queue: str = ""
    podsets: tuple[PodSet, ...] = ()
    admitted: bool = False
    findings: list[Finding] = field(default_factory=list)

    @property
    def total(self) -> Amounts:
        return total(self.podsets)

    def to_dict(self) -> dict[str, Any]:
        return {
            "job": self.name,
            "namespace": self.namespace,
            "queue": self.queue,
            "clusterQueue": self.cluster_queue,
            "canBeAdmitted": self.admitted,
            "podSets": [
                {"name": p.name, "count": p.count, "each": {r: show(r, a) for r, a in p.each.items()}}
                for p in self.podsets
            ],
            "total": {r: show(r, a) for r, a in self.total.items()},
        }

    def text(self) -> str:
        """One line for a person, for a job that can be admitted."""
        asked = f"{listing(self.total) or 'nothing'} in {words.pods(self.podsets)}"
        return f"{self.name} asks queue {self.queue} for {asked}: ClusterQueue {self.cluster_queue} can give that"


def check_queues(
    docs: Iterable[Source | Mapping[str, Any]],
    queues: Queues,
    target: Target,
    catalogue: Mapping[str, Mapping[str, Any]] | None = None,
    namespace: str = "",
) -> list[Verdict]:
    """A verdict for every TrainJob of the stream. `namespace` is that of jobs which name none."""
    return [_Trial(case, queues, namespace).verdict() for case in train_jobs(docs, target, catalogue)]


class _Trial:
    """One job before the queues: each step ends the trial when it finds an error."""

    def __init__(self, case: Case, queues: Queues, namespace: str) -> None:
        self.case, self.queues = case, queues
        self.labels = mapping(dig(case.obj, "metadata", "labels"))
        own = text(dig(case.obj, "metadata", "namespace")) or namespace
        name = text(dig(case.obj, "metadata", "name")) or text(dig(case.obj, "metadata", "generateName"))
        self.out = Verdict(name, own, text(self.labels.get(QUEUE_LABEL)))

    def verdict(self) -> Verdict:
        if not self.out.namespace:
            self._guess_namespace()
        if not self._queued():
            return self.out
        self._priority()
        self._managed()
        queue = self._cluster_queue()
        if queue is None:
            return self.out
        self._namespace_selected(queue)
        self._incomplete(queue)
        if self._demand():
            self._assign(queue)
        self.out.admitted = bool(self.out.podsets) and not any(f.severity.value == "error" for f in self.out.findings)
        return self.out

    def _say(self, code: str, path: Path, message: str, fix: str = "") -> None:
        self.out.findings.append(self.case.find(code, path, message, fix))

    def _guess_namespace(self) -> None:
        """A job without namespace goes where its queue is, when only one namespace has that queue."""
        places = sorted(ns for ns, name in self.queues.local_queues if name == self.out.queue)
        if len(places) == 1:
            self.out.namespace = places[0]
        elif places:
            self._say(
                "TJ611", ("metadata", "namespace"),
                f"the job names no namespace, and a LocalQueue {self.out.queue} is in {', '.join(places)}",
                "set metadata.namespace, or give --namespace",
            )  # fmt: skip

    def _queued(self) -> bool:
        """TJ608, TJ612: whether Kueue looks at the job at all."""
        if self.out.queue:
            return True
        elsewhere = next(_labels_elsewhere(self.case), None)
        if elsewhere is not None:
            self._say(
                "TJ608", _LABELS,
                f"the queue label {elsewhere[1]!r} is on {elsewhere[0]}, where Kueue does not read it for a TrainJob",
                f"put `{QUEUE_LABEL}: {elsewhere[1]}` under metadata.labels of the TrainJob",
            )  # fmt: skip
        if (self.out.namespace, DEFAULT_QUEUE) in self.queues.local_queues:
            self.out.queue = DEFAULT_QUEUE
            return True
        if elsewhere is None:
            known = sorted(name for ns, name in self.queues.local_queues if ns == self.out.namespace)
            self._say(
                "TJ612", _LABELS, "the job names no queue: Kueue passes it over, and it starts beside every quota",
                f"add the label {QUEUE_LABEL}" + (f": {' or '.join(known)}" if known else ""),
            )  # fmt: skip
        return False

    def _priority(self) -> None:
        name = text(self.labels.get(PRIORITY_LABEL))
        if not name or name in self.queues.priorities:
            return
        path = (*_LABELS, PRIORITY_LABEL)
        if self.queues.priorities:
            self._say(
                "TJ607", path,
                f"there is no WorkloadPriorityClass {name}: Kueue makes no Workload, and the job stays Suspended",
                f"use one of {', '.join(sorted(self.queues.priorities))}, or leave the label out",
            )  # fmt: skip
        else:
            self._say("TJ611", path, f"WorkloadPriorityClass {name} is not in the input: not checked")

    def _managed(self) -> None:
        """TJ606: the namespaces that Kueue looks at, by its configuration."""
        if self.queues.managed is None or self.out.namespace not in self.queues.namespaces:
            return
        if not selects(self.queues.managed, self._namespace_labels()):
            wanted = describe(self.queues.managed)
            self._say(
                "TJ606", ("metadata", "namespace"),
                f"Kueue does not look at namespace {self.out.namespace}, only at those with {wanted}",
                f"kubectl label namespace {self.out.namespace} {wanted}",
            )  # fmt: skip

    def _namespace_labels(self) -> Mapping[str, str]:
        given = mapping(dig(self.queues.namespaces.get(self.out.namespace), "metadata", "labels"))
        return {"kubernetes.io/metadata.name": self.out.namespace, **given}

    def _cluster_queue(self) -> Node | None:
        """TJ603, TJ604, TJ605."""
        queue, namespace, path = self.out.queue, self.out.namespace, (*_LABELS, QUEUE_LABEL)
        local = self.queues.local_queues.get((namespace, queue))
        if local is None:
            known = sorted(name for ns, name in self.queues.local_queues if ns == namespace)
            other = sorted(ns for ns, name in self.queues.local_queues if name == queue)
            where = f"in namespace {namespace}" if namespace else "for a job without namespace"
            self._say(
                "TJ603", path,
                f"there is no LocalQueue {queue} {where}"
                + (f"; it is in {', '.join(other)}" if other else "")
                + ": the job would stay Suspended",
                f"use {' or '.join(known)}" if known else "ask the platform team for a LocalQueue in your namespace",
            )  # fmt: skip
            return None
        name = text(dig(local, "spec", "clusterQueue"))
        self.out.cluster_queue = name
        node = self.queues.cluster_queues.get(name)
        stopped = [f"LocalQueue {queue}"] if _stopped(mapping(local.get("spec"))) else []
        if node is None:
            self._say("TJ604", path, f"LocalQueue {queue} leads to ClusterQueue {name}, which is not there")
            return None
        if _stopped(node.spec):
            stopped.append(f"ClusterQueue {name}")
        if stopped:
            self._say("TJ605", path, f"{' and '.join(stopped)} is stopped (stopPolicy): nothing is admitted")
        broken = _inactive(node, self.queues)
        if broken:
            self._say("TJ605", path, f"ClusterQueue {name} is inactive: {broken}")
        return None if Tree(self.queues).cycle(node) else node

    def _namespace_selected(self, queue: Node) -> None:
        selector = queue.spec.get("namespaceSelector")
        labels = self._namespace_labels()
        if selects(selector, labels):
            return
        if selector is None:
            message = f"ClusterQueue {queue.name} has no namespaceSelector, which selects no namespace"
            fix = "namespaceSelector: {} admits every namespace"
        elif self.out.namespace not in self.queues.namespaces and any(
            key != "kubernetes.io/metadata.name" for key in _keys(selector)
        ):
            return  # its labels are not known: TJ611 says so
        else:
            message = (
                f"ClusterQueue {queue.name} takes namespaces with {describe(selector)}; "
                f"{self.out.namespace} is none of them"
            )
            fix = f"kubectl label namespace {self.out.namespace} ..., or use another queue"
        self._say("TJ606", ("metadata", "namespace"), f"{message}: the job would stay Suspended", fix)

    def _incomplete(self, queue: Node) -> None:
        """TJ611: what would have to be given to be sure."""
        missing = [f"ResourceFlavor {f}" for g in queue.groups for f in g.flavors if f not in self.queues.flavors]
        if self.queues.flavors:
            missing = []  # then it is an error: TJ605
        selector = queue.spec.get("namespaceSelector")
        keys = _keys(selector) if isinstance(selector, Mapping) else set()
        if (keys - {"kubernetes.io/metadata.name"} or self.queues.managed) and (
            self.out.namespace not in self.queues.namespaces
        ):
            missing.append(f"Namespace {self.out.namespace}")
        if self.queues.transforms:
            missing.append("what Kueue's resource transformations make of the request")
        if missing:
            self._say(
                "TJ611", (*_LABELS, QUEUE_LABEL), f"not checked, since it is not in the input: {', '.join(missing)}"
            )

    def _demand(self) -> bool:
        if self.case.runtime is None:  # TJ511 says that it was not found
            return False
        defaults = self.queues.defaults(self.out.namespace)
        try:
            podsets = demand(self.case.obj, self.case.runtime, self.case.target, defaults)
            self.out.podsets = tuple(_without(p, self.queues.excluded) for p in podsets)
            self._miscounted(defaults)
        except ValueError:  # no quantity: TJ501 says so, with its place
            self.out.podsets = ()
        return bool(self.out.podsets)

    def _miscounted(self, defaults: Defaults) -> None:
        """TJ610: Trainer 2.3 merges resources, Kueue up to 0.19 replaces them."""
        assert self.case.runtime is not None
        if not since(self.case.target, "2.3"):
            return
        real = total(demand(self.case.obj, self.case.runtime, self.case.target, defaults, as_kueue=False))
        counted = self.out.total
        wrong = [
            f"{show(r, counted.get(r, 0))} {r} where the pods request {show(r, real[r])}"
            for r in sorted(real)
            if counted.get(r, 0) != real[r] and not r.startswith(self.queues.excluded or ("\0",))
        ]
        if wrong:
            self._say(
                "TJ610", ("spec", "trainer", "resourcesPerNode"),
                f"Kueue up to 0.19 counts {'; '.join(wrong)}",
                "name every resource of the runtime in resourcesPerNode, requests and limits",
            )  # fmt: skip

    def _assign(self, queue: Node) -> None:
        """TJ601, TJ602, TJ609."""
        result = assign(self.out.podsets, queue, self.queues)
        refused = result.refused
        if refused is None:
            return
        path: Path = (*_LABELS, QUEUE_LABEL)
        fix = self._remedy(queue)
        if refused.uncovered:
            self._say(
                "TJ602", path,
                f"queue {self.out.queue}: ClusterQueue {queue.name} covers no {refused.uncovered}, which "
                f"{refused.podset.name} requests: the job would stay Suspended",
                f"the platform team adds {refused.uncovered} to coveredResources, or to Kueue's "
                "excludeResourcePrefixes" + (f"; or {fix}" if fix else ""),
            )  # fmt: skip
            return
        short = [r for r in refused.reasons if isinstance(r, Short)]
        wrong = [r for r in refused.reasons if isinstance(r, Mismatch)]
        # A flavor that has none of a resource was never meant for the job: the other one is what matters.
        if wrong and all(r.capacity == 0 for r in short):
            self._say(
                "TJ609", path,
                f"queue {self.out.queue}: no flavor of ClusterQueue {queue.name} can carry {refused.podset.name}: "
                + "; ".join(f"{r.flavor}: {r.why}" for r in wrong),
                fix,
            )  # fmt: skip
            return
        for reason in words.nearest(short):
            self._say("TJ601", path, words.too_large(reason, refused.podset, self.out.queue, queue), fix)

    def _remedy(self, queue: Node) -> str:
        """Fewer nodes that fit, and other queues of the namespace that can carry the job."""
        parts = []
        fitting = self._nodes_that_fit(queue)
        if fitting:
            parts.append(f"set spec.trainer.numNodes to {fitting}, which fits")
        others = []
        for (namespace, name), local in sorted(self.queues.local_queues.items()):
            node = self.queues.cluster_queues.get(text(dig(local, "spec", "clusterQueue")))
            if namespace == self.out.namespace and name != self.out.queue and node is not None:
                usable = not _stopped(node.spec) and not _inactive(node, self.queues)
                if usable and assign(self.out.podsets, node, self.queues).refused is None:
                    others.append(name)
        if others:
            parts.append(f"use queue {' or '.join(others)}, which can give that")
        return " or ".join(parts) or "use a smaller runtime, or ask the platform team for more quota"

    def _nodes_that_fit(self, queue: Node) -> int:
        """The largest smaller numNodes with which the job is admitted; 0 when there is none."""
        trained = next((p for p in self.out.podsets if p.name == "node"), None)
        for nodes in range((trained.count if trained else 1) - 1, 0, -1):
            changed = [_resized(p, nodes) if p is trained else p for p in self.out.podsets]
            attempt: Assignment = assign(changed, queue, self.queues)
            if attempt.refused is None:
                return nodes
        return 0


def _resized(podset: PodSet, count: int) -> PodSet:
    return PodSet(podset.name, count, podset.each, podset.pod, podset.annotations)


def _without(podset: PodSet, prefixes: tuple[str, ...]) -> PodSet:
    if not prefixes:
        return podset
    each = {r: a for r, a in podset.each.items() if not r.startswith(prefixes)}
    return PodSet(podset.name, podset.count, each, podset.pod, podset.annotations)


def _stopped(spec: Mapping[str, Any]) -> bool:
    return spec.get("stopPolicy") not in (None, "None")


def _inactive(node: Node, queues: Queues) -> str:
    """Why Kueue holds a ClusterQueue inactive, or "". clusterqueue.go, inactiveReason."""
    if Tree(queues).cycle(node):
        return f"the cohorts above {node.parent} form a circle"
    names = [f for g in node.groups for f in g.flavors]
    missing = [f for f in names if f not in queues.flavors] if queues.flavors else []
    if missing:
        return f"there is no ResourceFlavor {', '.join(missing)}"
    topologies = {text(dig(queues.flavors.get(f), "spec", "topologyName")) for f in names} - {""}
    absent = sorted(topologies - queues.topologies.keys())
    return f"there is no Topology {', '.join(absent)}" if absent else ""


def _keys(selector: Mapping[str, Any]) -> set[str]:
    expressions = {text(e.get("key")) for _, e in entries(selector, "matchExpressions")}
    return {*mapping(selector.get("matchLabels")), *expressions}


def _labels_elsewhere(case: Case) -> Iterator[tuple[str, str]]:
    """(place, queue) where a queue label stands that Kueue does not read for this job."""
    name = text(dig(case.obj, "metadata", "annotations", QUEUE_LABEL))
    if name:
        yield "an annotation", name
    for place, keys in (
        ("the runtime", ("metadata", "labels", QUEUE_LABEL)),
        ("the runtime's JobSet template", ("spec", "template", "metadata", "labels", QUEUE_LABEL)),
    ):
        name = text(dig(case.runtime, *keys))
        if name:
            yield place, name
    for job in case.jobs:
        name = text(dig(job.spec, "template", "metadata", "labels", QUEUE_LABEL))
        if name:
            yield f"the pods of job {job.name} in the runtime", name
