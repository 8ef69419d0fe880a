"""The queue objects of a cluster, read from manifests or from `kubectl get -o yaml`.

Field names of v1beta2 (kubernetes-sigs/kueue v0.17.0 apis/kueue/v1beta2) and, where they differ, of
v1beta1: `cohort` for `cohortName`, `parent` for `parentName`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from trainjob.findings import Location
from trainjob.kube import yaml
from trainjob.validate.queue import amounts
from trainjob.validate.queue.demand import Defaults
from trainjob.validate.view import dig, entries, listed, mapping, text

KUEUE: Final = "kueue.x-k8s.io/"
CONFIGURATION: Final = "config.kueue.x-k8s.io/"
OPENSHIFT: Final = "kueue.openshift.io/"
# The label without which the Red Hat build of Kueue passes a namespace over.
MANAGED: Final = {"kueue.openshift.io/managed": "true"}
_KUEUE_KINDS: Final = (
    "ClusterQueue", "LocalQueue", "Cohort", "ResourceFlavor", "Topology", "WorkloadPriorityClass",
)  # fmt: skip
Object = Mapping[str, Any]


class QueuesError(ValueError):
    """A queue manifest that cannot be used. `where` says the place."""

    def __init__(self, message: str, where: Location) -> None:
        super().__init__(message)
        self.message, self.where = message, where


@dataclass(frozen=True, slots=True)
class Quota:
    """One resource of one flavor, in Kueue's units. None: no limit."""

    nominal: int = 0
    borrowing: int | None = None
    lending: int | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """A resource group: resources that come from the same flavor."""

    covered: tuple[str, ...]
    flavors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """A ClusterQueue or a Cohort: its own quotas and the cohort above it."""

    name: str
    parent: str
    groups: tuple[Group, ...]
    quotas: Mapping[tuple[str, str], Quota]
    spec: Object = field(repr=False, default_factory=dict)

    def group_of(self, resource: str) -> Group | None:
        return next((g for g in self.groups if resource in g.covered), None)


@dataclass(slots=True)
class Queues:
    """What the manifests say. Namespaced objects are keyed by (namespace, name)."""

    cluster_queues: dict[str, Node] = field(default_factory=dict)
    cohorts: dict[str, Node] = field(default_factory=dict)
    local_queues: dict[tuple[str, str], Object] = field(default_factory=dict)
    flavors: dict[str, Object] = field(default_factory=dict)
    topologies: dict[str, Object] = field(default_factory=dict)
    priorities: dict[str, Object] = field(default_factory=dict)
    namespaces: dict[str, Object] = field(default_factory=dict)
    limit_ranges: dict[tuple[str, str], Object] = field(default_factory=dict)
    # Of Kueue's own configuration: what it leaves out, and the namespaces that it looks at.
    excluded: tuple[str, ...] = ()
    transforms: bool = False
    managed: Object | None = None

    @classmethod
    def read(cls, documents: Iterable[yaml.Document]) -> Queues:
        """From parsed documents; a `List` is opened, and of two objects with one name the later counts.

        Raises QueuesError for a quota that is no quantity, and when there is neither a ClusterQueue
        nor a LocalQueue.
        """
        out = cls()
        file = ""
        for doc in documents:
            file = doc.file
            for obj, path in _objects(doc.data, ()):
                out._add(obj, doc, path)
        if not out.cluster_queues and not out.local_queues:
            raise QueuesError("there is no ClusterQueue and no LocalQueue in it", Location(file))
        return out

    def defaults(self, namespace: str) -> Defaults:
        """What the LimitRanges of a namespace fill in for containers; the first one wins."""
        limits: dict[str, Any] = {}
        requests: dict[str, Any] = {}
        for (where, _), limit_range in sorted(self.limit_ranges.items()):
            for _, limit in entries(limit_range, "spec", "limits"):
                if where == namespace and limit.get("type") == "Container":
                    limits = {**mapping(limit.get("default")), **limits}
                    requests = {**mapping(limit.get("defaultRequest")), **requests}
        return Defaults(limits, requests)

    def _add(self, obj: Object, doc: yaml.Document, path: yaml.Path) -> None:
        api, kind = text(obj.get("apiVersion")), text(obj.get("kind"))
        name, namespace = text(dig(obj, "metadata", "name")), text(dig(obj, "metadata", "namespace"))
        if api.startswith(KUEUE) and kind in _KUEUE_KINDS:
            if kind in ("ClusterQueue", "Cohort"):
                nodes = self.cluster_queues if kind == "ClusterQueue" else self.cohorts
                nodes[name] = _node(obj, name, doc, path)
            elif kind == "LocalQueue":
                self.local_queues[namespace, name] = obj
            else:
                by_kind = {
                    "ResourceFlavor": self.flavors, "Topology": self.topologies,
                    "WorkloadPriorityClass": self.priorities,
                }  # fmt: skip
                by_kind[kind][name] = obj
        elif api == "v1" and kind == "Namespace":
            self.namespaces[name] = obj
        elif api == "v1" and kind == "LimitRange":
            self.limit_ranges[namespace, name] = obj
        elif api == "v1" and kind == "ConfigMap":
            self._configured_by(text(dig(obj, "data", "controller_manager_config.yaml")), doc.file)
        elif api.startswith(CONFIGURATION) and kind == "Configuration":
            self._configure(obj)
        elif api.startswith(OPENSHIFT) and kind == "Kueue":
            self.managed = {"matchLabels": MANAGED}

    def _configured_by(self, config: str, file: str) -> None:
        """A ConfigMap kueue-manager-config holds the configuration as text."""
        if "config.kueue.x-k8s.io" in config:
            for inner in yaml.load(config, file):
                self._configure(mapping(inner.data))

    def _configure(self, config: Object) -> None:
        resources = mapping(config.get("resources"))
        self.excluded = tuple(text(prefix) for prefix in listed(resources.get("excludeResourcePrefixes")))
        self.transforms = bool(listed(resources.get("transformations")))
        if isinstance(config.get("managedJobsNamespaceSelector"), Mapping):
            self.managed = config["managedJobsNamespaceSelector"]


def _objects(data: Any, path: yaml.Path) -> Iterator[tuple[Object, yaml.Path]]:
    if not isinstance(data, Mapping):
        return
    items = data.get("items")
    if text(data.get("kind")).endswith("List") and isinstance(items, list):
        for index, item in enumerate(items):
            yield from _objects(item, (*path, "items", index))
    else:
        yield data, path


def _node(obj: Object, name: str, doc: yaml.Document, path: yaml.Path) -> Node:
    spec = mapping(obj.get("spec"))
    groups, quotas = [], {}
    for g, group in entries(spec, "resourceGroups"):
        covered = tuple(text(r) for r in listed(group.get("coveredResources")))
        flavors = []
        for f, flavor in entries(group, "flavors"):
            flavors.append(text(flavor.get("name")))
            for r, resource in entries(flavor, "resources"):
                at = (*path, "spec", "resourceGroups", g, "flavors", f, "resources", r)
                key = (flavors[-1], text(resource.get("name")))
                quotas[key] = Quota(
                    _amount(resource, "nominalQuota", doc, at) or 0,
                    _amount(resource, "borrowingLimit", doc, at),
                    _amount(resource, "lendingLimit", doc, at),
                )
        groups.append(Group(covered, tuple(flavors)))
    parents = ("cohortName", "cohort") if obj.get("kind") == "ClusterQueue" else ("parentName", "parent")
    parent = next((text(spec[key]) for key in parents if spec.get(key)), "")
    return Node(name, parent, tuple(groups), quotas, spec)


def _amount(resource: Object, key: str, doc: yaml.Document, at: yaml.Path) -> int | None:
    value = resource.get(key)
    if value is None:
        return None
    try:
        return amounts.read(text(resource.get("name")), value)
    except ValueError as err:
        raise QueuesError(f"{key}: {err}", doc.locate((*at, key))) from None
