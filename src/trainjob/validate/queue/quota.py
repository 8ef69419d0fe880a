"""How much a ClusterQueue can ever give, and which flavors Kueue would assign in an empty cluster.

kubernetes-sigs/kueue v0.17.0: pkg/cache/scheduler/resource_node.go (potentialAvailable) and
pkg/scheduler/flavorassigner/flavorassigner.go (findFlavorForPodSets). With nothing running, what a
flavor has free equals what it can ever give, so a job that is not assigned here never is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trainjob.validate.queue.demand import PodSet
from trainjob.validate.queue.objects import Group, Node, Queues, Quota
from trainjob.validate.queue.selectors import fits_nodes, untolerated
from trainjob.validate.view import dig, entries, mapping, text

FlavorResource = tuple[str, str]
_NONE = Quota()


@dataclass(frozen=True, slots=True)
class Short:
    """A flavor that is too small: `asked` is this pod set's and that of `earlier` ones together."""

    flavor: str
    resource: str
    asked: int
    capacity: int
    nominal: int
    earlier: tuple[PodSet, ...] = ()


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A flavor that cannot carry these pods, whatever its quota."""

    flavor: str
    why: str


@dataclass(frozen=True, slots=True)
class Refused:
    """Why the pod set gets no flavor. `uncovered`: no resource group has this resource."""

    podset: PodSet
    uncovered: str = ""
    reasons: tuple[Short | Mismatch, ...] = ()


@dataclass(slots=True)
class Assignment:
    """Flavors per pod set and resource, up to the first refusal."""

    flavors: dict[str, dict[str, str]] = field(default_factory=dict)
    usage: dict[FlavorResource, int] = field(default_factory=dict)
    refused: Refused | None = None


class Tree:
    """The cohorts over the ClusterQueues, with what each level can lend upwards."""

    def __init__(self, queues: Queues) -> None:
        self.queues = queues
        self._children: dict[str, list[Node]] = {}
        for node in (*queues.cluster_queues.values(), *queues.cohorts.values()):
            if node.parent:
                self._children.setdefault(node.parent, []).append(node)

    def cycle(self, node: Node) -> bool:
        """True when a cohort is above itself; Kueue then admits nothing in the whole tree."""
        seen: set[str] = set()
        above: Node | None = self._above(node)
        while above is not None:
            if above.name in seen:
                return True
            seen.add(above.name)
            above = self._above(above)
        return False

    def _above(self, node: Node) -> Node | None:
        if not node.parent:
            return None
        # A cohort needs no object: the name alone links its members.
        return self.queues.cohorts.get(node.parent) or Node(node.parent, "", (), {})

    def _subtree(self, node: Node, key: FlavorResource, *, cohort: bool) -> int:
        own = node.quotas.get(key, _NONE).nominal
        if not cohort:
            return own
        for child in self._children.get(node.name, ()):
            is_cohort = child.name in self.queues.cohorts and child is self.queues.cohorts[child.name]
            subtree = self._subtree(child, key, cohort=is_cohort)
            own += subtree - self._kept(child, key, subtree)
        return own

    @staticmethod
    def _kept(node: Node, key: FlavorResource, subtree: int) -> int:
        """What the lending limit keeps from the cohort."""
        lending = node.quotas.get(key, _NONE).lending
        return 0 if lending is None else max(0, subtree - lending)

    def capacity(self, node: Node, key: FlavorResource, *, cohort: bool = False) -> int:
        """The most that this ClusterQueue can ever give: nominal plus what it may borrow."""
        subtree = self._subtree(node, key, cohort=cohort)
        above = self._above(node)
        if above is None:
            return subtree
        out = self._kept(node, key, subtree) + self.capacity(above, key, cohort=True)
        borrowing = node.quotas.get(key, _NONE).borrowing
        return out if borrowing is None else min(out, subtree + borrowing)


def assign(podsets: Iterable[PodSet], queue: Node, queues: Queues) -> Assignment:
    """The flavors that Kueue gives each pod set in an empty cluster."""
    tree, out = Tree(queues), Assignment()
    done: list[PodSet] = []
    for podset in podsets:
        each = dict(podset.total)
        if queue.group_of("pods") is not None:
            each["pods"] = podset.count
        chosen: dict[str, str] = {}
        for resource in sorted(each):
            group = queue.group_of(resource)
            if resource in chosen or (group is None and each[resource] == 0):
                continue
            if group is None:
                out.refused = Refused(podset, uncovered=resource)
                return out
            wanted = {r: amount for r, amount in each.items() if r in group.covered}
            flavor, reasons = _choose(podset, wanted, group, queue, tree, out, done)
            if not flavor:
                out.refused = Refused(podset, reasons=tuple(reasons))
                return out
            chosen |= dict.fromkeys(wanted, flavor)
        for resource, flavor in chosen.items():
            key = (flavor, resource)
            out.usage[key] = out.usage.get(key, 0) + each[resource]
        out.flavors[podset.name] = chosen
        done.append(podset)
    return out


def _choose(
    podset: PodSet,
    wanted: Mapping[str, int],
    group: Group,
    queue: Node,
    tree: Tree,
    so_far: Assignment,
    done: list[PodSet],
) -> tuple[str, list[Short | Mismatch]]:
    reasons: list[Short | Mismatch] = []
    first = ""
    patient = text(dig(queue.spec, "flavorFungibility", "whenCanBorrow")) == "TryNextFlavor"
    for flavor in group.flavors:
        why = _mismatch(podset, flavor, group, queue, tree.queues)
        if why:
            reasons.append(Mismatch(flavor, why))
            continue
        short, borrows = [], False
        for resource, amount in sorted(wanted.items()):
            key = (flavor, resource)
            asked, nominal = so_far.usage.get(key, 0) + amount, queue.quotas.get(key, _NONE).nominal
            capacity = tree.capacity(queue, key)
            if asked > capacity:
                earlier = tuple(p for p in done if so_far.flavors[p.name].get(resource) == flavor)
                short.append(Short(flavor, resource, asked, capacity, nominal, earlier))
            borrows = borrows or asked > nominal
        if short:
            reasons += short
        elif borrows and patient:
            first = first or flavor
        else:
            return flavor, reasons
    return first, reasons


def _mismatch(podset: PodSet, name: str, group: Group, queue: Node, queues: Queues) -> str:
    """Why a flavor cannot carry the pods, or ""; nothing is known of a flavor that was not given."""
    flavor = queues.flavors.get(name)
    if flavor is None:
        return ""
    why = _topology(podset, flavor, queue, queues)
    if why:
        return why
    taint = untolerated(flavor, podset.pod)
    if taint:
        return f"the taint {taint} of the flavor is not tolerated"
    keys = {k for f in group.flavors for k in mapping(dig(queues.flavors.get(f), "spec", "nodeLabels"))}
    if not fits_nodes(podset.pod, mapping(dig(flavor, "spec", "nodeLabels")), keys):
        return "the pods' node selector or affinity excludes the nodes of the flavor"
    return ""


def _topology(podset: PodSet, flavor: Mapping[str, object], queue: Node, queues: Queues) -> str:
    """tas_flavorassigner.go, checkPodSetAndFlavorMatchForTAS."""
    topology = text(dig(flavor, "spec", "topologyName"))
    level = podset.topology
    if level is None:
        everywhere = all(dig(queues.flavors.get(f), "spec", "topologyName") for g in queue.groups for f in g.flavors)
        return "the flavor has a topology, and takes only pods that ask for one" if topology and not everywhere else ""
    if not topology:
        return "the pods ask for a topology, and the flavor has none"
    known = queues.topologies.get(topology)
    levels = [text(entry.get("nodeLabel")) for _, entry in entries(known, "spec", "levels")]
    if level and known is not None and level not in levels:
        return f"the topology {topology} has no level {level}, only {', '.join(levels)}"
    return ""
