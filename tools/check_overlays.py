"""Checks every kustomization under `runtimes/` and `overlays/` against the overlay policy.

    python tools/check_overlays.py [FOLDER]      FOLDER holds runtimes/ and overlays/

kustomize fails quietly: a patch that matches nothing, a misspelt image or a component in the wrong
place all end with exit code 0 (docs/adr/0003). These checks make each of them loud, also for overlays
that you add. Exit code 1 when a rule is broken.
"""

from __future__ import annotations

import itertools
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import yaml

from trainjob.kustomize import BuildError, Engine, build, find_engine

FILE: Final = "kustomization.yaml"
FIELDS: Final = frozenset({"apiVersion", "kind", "resources", "components", "images", "labels", "patches"})
HEAD: Final = {
    "Kustomization": "kustomize.config.k8s.io/v1beta1",
    "Component": "kustomize.config.k8s.io/v1alpha1",
}
# The only image that is another image: it must not keep the digest of the one it stands in for.
STAND_IN: Final = "cpu-stand-in"
KIND: Final = "ClusterTrainingRuntime"
GATED: Final = "multi-node"
# The admission lock, beside the runtimes: its policies come whole or not at all.
GATE: Final = "multi-node-gate"
GATE_ALL: Final = "multi-node-gate-all"
GATE_KINDS: Final = frozenset({"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"})
# Overlays of Kueue objects are rendered and applied by themselves, beside the runtimes.
QUEUES: Final = "queues"
QUEUE_KINDS: Final = frozenset(
    {"ClusterQueue", "Cohort", "LocalQueue", "Namespace", "ResourceFlavor", "Topology", "WorkloadPriorityClass"}
)
# What our runtimes request: a ClusterQueue that lacks one of them admits none of their jobs.
COVERED: Final = frozenset({"cpu", "memory", "ephemeral-storage", "nvidia.com/gpu"})
_NOBODY: Final = "matches-nothing"

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Kustomization = dict[str, Any]


@dataclass(frozen=True)
class Layer:
    """One kustomization file."""

    folder: Path
    data: Kustomization
    root: Path

    @property
    def name(self) -> str:
        return str(self.folder.relative_to(self.root))

    @property
    def is_component(self) -> bool:
        return self.data.get("kind") == "Component"

    def entries(self, field: str) -> list[Any]:
        return list(self.data.get(field) or ())

    def references(self) -> Iterator[Path]:
        """Everything that it lists, as real paths."""
        for entry in (*self.entries("resources"), *self.entries("components")):
            yield (self.folder / str(entry)).resolve()


class Repository:
    """The runtimes and overlays below one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        files = sorted(f for part in ("runtimes", "overlays") for f in (self.root / part).rglob(FILE))
        return tuple(Layer(f.parent, yaml.safe_load(f.read_text("utf-8")), self.root) for f in files)

    @property
    def components(self) -> tuple[Layer, ...]:
        return tuple(x for x in self.layers if x.is_component)

    @property
    def overlays(self) -> tuple[Layer, ...]:
        """What a user applies."""
        return tuple(x for x in self.layers if not x.is_component and x.folder.is_relative_to(self.root / "overlays"))

    def at(self, folder: Path) -> Layer | None:
        return next((x for x in self.layers if x.folder == folder.resolve()), None)

    def of_queues(self, layer: Layer) -> bool:
        """True when the layer, or a component that it chooses, is about Kueue objects."""
        if any(entry.get("target", {}).get("kind") in QUEUE_KINDS for entry in layer.entries("patches")):
            return True
        files = [layer.folder / str(entry) for entry in layer.entries("resources")]
        if any(o.get("kind") in QUEUE_KINDS for f in files if f.is_file() for o in objects(f.read_bytes())):
            return True
        chosen = [self.at(layer.folder / str(entry)) for entry in layer.entries("components")]
        return any(self.of_queues(component) for component in chosen if component is not None)


# --- one file --------------------------------------------------------------------------------------


def fields(layer: Layer) -> Iterator[str]:
    """Five fields and no more; the others rename, merge or move things behind our back."""
    for name in sorted(layer.data.keys() - FIELDS):
        yield f"{layer.name}: field {name} is not allowed"
    kind = str(layer.data.get("kind"))
    if layer.data.get("apiVersion") != HEAD.get(kind):
        yield f"{layer.name}: apiVersion {layer.data.get('apiVersion')} does not belong to kind {kind}"
    for entry in layer.entries("labels"):
        if entry.keys() - {"pairs"}:
            yield f"{layer.name}: labels may only have pairs"


def images(layer: Layer) -> Iterator[str]:
    """`newTag` alone silently drops a digest."""
    for entry in layer.entries("images"):
        allowed = {"name", "newName"}
        if layer.folder.name == STAND_IN or "digest" in entry:
            allowed |= {"newTag", "digest"}
        if entry.keys() - allowed:
            yield f"{layer.name}: image {entry.get('name')} sets {', '.join(sorted(entry.keys() - allowed))}"
        if layer.folder.name == STAND_IN and not entry.get("newTag"):
            yield f"{layer.name}: image {entry.get('name')} needs a newTag, or it keeps a foreign digest"
    named = [entry.get("name") for entry in layer.entries("images")]
    for name in sorted({n for n in named if named.count(n) > 1}):
        yield f"{layer.name}: image {name} is listed twice, the last one wins"


def patches(layer: Layer) -> Iterator[str]:
    """JSON 6902 on our kind, guarded: it begins with a test, and tests the name at every list index."""
    for number, entry in enumerate(layer.entries("patches")):
        where = f"{layer.name}: patch {number}"
        if entry.keys() != {"target", "patch"}:
            yield f"{where} must have a target and an inline patch"
            continue
        if entry["target"].get("kind") not in {KIND, *QUEUE_KINDS, *GATE_KINDS}:
            yield f"{where} must target kind {KIND}, or one of Kueue or of the gate"
        operations = yaml.safe_load(entry["patch"])
        if not isinstance(operations, list):
            yield f"{where} is a strategic merge"
            continue
        yield from (f"{where} {text}" for text in _unguarded(operations))


def _unguarded(operations: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if operations[0].get("op") != "test":
        yield "does not begin with a test"
    if all(operation.get("op") == "test" for operation in operations):
        yield "only tests"
    tested: set[str] = set()
    for operation in operations:
        path = str(operation.get("path", ""))
        if operation.get("op") == "test":
            tested.add(path)
        for match in re.finditer(r"/\d+(?=/|$)", path):
            element = path[: match.end()]
            if path[: match.start()].endswith("/resourceGroups"):  # has no name; its flavors do
                continue
            if f"{element}/name" not in tested:
                yield f"uses {element} without a test of its name"


def _rank(layer: Layer) -> int:
    """Producers 0, modifiers 1, image rewrites 2."""
    if layer.entries("resources"):
        return 0
    return 2 if layer.entries("images") else 1


# --- how files refer to each other -------------------------------------------------------------------


def order(repo: Repository, layer: Layer) -> Iterator[str]:
    """A component changes only what was there before it, so producers first and the registry last."""
    ranks = []
    for entry in layer.entries("components"):
        component = repo.at(layer.folder / str(entry))
        if component is None or not component.is_component:
            yield f"{layer.name}: {entry} is no component"
        else:
            ranks.append((_rank(component), entry))
    for (before, first), (after, second) in itertools.pairwise(ranks):
        if before > after:
            yield f"{layer.name}: {second} must come before {first}, which does not see it otherwise"


def gate(repo: Repository, layer: Layer) -> Iterator[str]:
    """The gated runtimes are reachable through their component only."""
    gated = repo.root / "runtimes" / GATED
    own = repo.root / "overlays" / "components" / GATED
    for path in layer.references():
        if path.is_relative_to(gated) and layer.folder not in (gated, own):
            yield f"{layer.name}: only overlays/components/{GATED} may list runtimes/{GATED}"


def listing(repo: Repository, layer: Layer) -> Iterator[str]:
    """A folder of runtimes lists exactly its own files."""
    if not layer.folder.is_relative_to(repo.root / "runtimes"):
        return
    files = sorted(f.name for f in layer.folder.glob("*.y*ml") if f.name != FILE)
    if layer.entries("resources") != files:
        yield f"{layer.name}: resources must be {', '.join(files)}"


# --- what comes out ------------------------------------------------------------------------------------


def objects(rendered: bytes) -> list[dict[str, Any]]:
    """The documents of a rendered overlay."""
    return [doc for doc in yaml.load_all(rendered, Loader=_Loader) if doc is not None]


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Paths and values. Lists of named things are addressed by name, so that their order is free."""
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from leaves(item, f"{path}/{str(key).replace('/', '~1')}")
    elif isinstance(value, list) and value:
        for number, item in enumerate(value):
            key = item.get("name") or item.get("mountPath") if isinstance(item, Mapping) else None
            yield from leaves(item, f"{path}/{key or number}")
    else:
        yield path, value


def outcome(repo: Repository, layer: Layer, rendered: bytes, base: bytes) -> Iterator[str]:
    """An overlay of runtimes: nothing else, cluster-scoped, each with everything that its file has."""
    gated_in = any(c.name == GATED for c in (Path(str(e)) for e in layer.entries("components")))
    gated = {f.stem for f in (repo.root / "runtimes" / GATED).glob("*.yaml")}
    originals = {doc["metadata"]["name"]: doc for doc in objects(base)}
    seen: set[str] = set()
    docs = objects(rendered)
    yield from lock(repo, layer, docs)
    for doc in docs:
        name = doc["metadata"]["name"]
        if doc["kind"] in GATE_KINDS:
            continue
        seen.add(name)
        if doc["kind"] != KIND:
            yield f"{layer.name}: renders {doc['kind']} {name}; overlays hold runtimes only"
            continue
        if "namespace" in doc["metadata"]:
            yield f"{layer.name}: {name} has a namespace, but is cluster-scoped"
        if name in gated and not gated_in:
            yield f"{layer.name}: renders the gated {name}"
        if name in originals:
            paths = {path for path, _ in leaves(doc)}
            for path, _ in leaves(originals[name]):
                # A value may become richer (`torch: {}`), never disappear.
                if path not in paths and not any(p.startswith(f"{path}/") for p in paths):
                    yield f"{layer.name}: {name} lost {path}"
    for name in sorted(originals.keys() - gated - seen):
        yield f"{layer.name}: {name} is missing"


def lock(repo: Repository, layer: Layer, docs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The gate with everything that its files have, and no runtimes of several nodes without it."""
    chosen = {Path(str(entry)).name for entry in layer.entries("components")}
    if GATED in chosen and GATE not in chosen:
        yield f"{layer.name}: {GATED} goes with {GATE}, which decides where those runtimes may be used"
    folder = repo.root / "overlays" / "components" / GATE
    files = [f for f in sorted(folder.glob("*.y*ml")) if f.name != FILE] if GATE in chosen else []
    wanted = {f"{d['kind']} {d['metadata']['name']}" for f in files for d in objects(f.read_bytes())}
    found = {f"{d['kind']} {d['metadata']['name']}" for d in docs if d["kind"] in GATE_KINDS}
    for name in sorted(wanted - found):
        yield f"{layer.name}: {name} is missing"
    for name in sorted(found - wanted):
        yield f"{layer.name}: {name} is not of {GATE}"


def queues(layer: Layer, rendered: bytes) -> Iterator[str]:
    """An overlay of Kueue objects: nothing else, every reference leads somewhere, nothing left uncovered."""
    docs = objects(rendered)
    names = {kind: {d["metadata"]["name"] for d in docs if d["kind"] == kind} for kind in QUEUE_KINDS}

    def missing(doc: Mapping[str, Any], kind: str, name: Any) -> Iterator[str]:
        if name and name not in names[kind]:
            yield f"{layer.name}: {doc['kind']} {doc['metadata']['name']} needs {kind} {name}, which is not rendered"

    for doc in docs:
        spec, name = doc.get("spec", {}), f"{doc['kind']} {doc['metadata']['name']}"
        if doc["kind"] not in QUEUE_KINDS:
            yield f"{layer.name}: renders {name}; an overlay of queues holds Kueue objects and namespaces only"
        yield from missing(doc, "Cohort", spec.get("cohortName"))
        yield from missing(doc, "ClusterQueue", spec.get("clusterQueue"))
        yield from missing(doc, "Topology", spec.get("topologyName"))
        yield from missing(doc, "Namespace", doc["metadata"].get("namespace"))
        groups = spec.get("resourceGroups", ())
        for flavor in (f for group in groups for f in group["flavors"]):
            yield from missing(doc, "ResourceFlavor", flavor["name"])
        uncovered = COVERED - {r for group in groups for r in group["coveredResources"]}
        if doc["kind"] == "ClusterQueue" and uncovered:
            yield f"{layer.name}: {name} does not cover {', '.join(sorted(uncovered))}"


def without(data: Kustomization, field: str, number: int) -> Kustomization:
    """The same kustomization with one patch, image or component that does nothing."""
    copy = {**data, field: list(data[field])}
    if field == "components":
        del copy[field][number]
    elif field == "patches":
        copy[field][number] = {**copy[field][number], "target": {"kind": KIND, "name": _NOBODY}}
    else:
        copy[field][number] = {**copy[field][number], "name": _NOBODY}
    return copy


class Workshop:
    """A copy of the repository in which kustomizations are changed and rendered."""

    def __init__(self, repo: Repository, folder: Path, engine: Engine) -> None:
        for part in ("runtimes", "overlays"):
            shutil.copytree(repo.root / part, folder / part)
        self.root = folder
        self.engine = engine

    def write(self, name: str, data: Kustomization) -> None:
        target = self.root / name
        target.mkdir(parents=True, exist_ok=True)
        (target / FILE).write_text(yaml.safe_dump(data), encoding="utf-8")

    def render(self, name: str) -> bytes:
        return build(self.root / name, self.engine)

    def probe_queues(self, component: str) -> str:
        """An overlay of what all queues need, with this component after it."""
        name = "overlays/probe-queues"
        chosen = dict.fromkeys((QUEUES, component))
        data = {"apiVersion": HEAD["Kustomization"], "kind": "Kustomization"}
        self.write(name, data | {"components": [f"../components/{c}" for c in chosen]})
        return name

    def probe(self, *components: str, name: str = "overlays/probe") -> str:
        """An overlay of all runtimes with these components after the gated ones."""
        first = (GATED, GATE) if GATE_ALL in components else (GATED,)
        chosen = (*first, *(c for c in components if c not in first))
        data = {"apiVersion": HEAD["Kustomization"], "kind": "Kustomization", "resources": ["../../runtimes"]}
        self.write(name, data | {"components": [f"../components/{c}" for c in chosen]})
        return name


def effects(repo: Repository, shop: Workshop) -> Iterator[str]:
    """Everything that changes nothing: each patch, image and component is taken away in turn."""
    for layer in (*repo.components, *repo.overlays):
        probe = shop.probe_queues if repo.of_queues(layer) else shop.probe
        shown = probe(layer.folder.name) if layer.is_component else layer.name
        whole = shop.render(shown)
        choices = () if layer.is_component else ("components",)
        for field in ("patches", "images", *choices):
            for number, entry in enumerate(layer.entries(field)):
                shop.write(layer.name, without(layer.data, field, number))
                if shop.render(shown) == whole:
                    label = entry if field == "components" else entry.get("target", entry.get("name"))
                    yield f"{layer.name}: {field}[{number}] changes nothing ({label})"
        shop.write(layer.name, layer.data)


@dataclass(frozen=True)
class Result:
    """The broken rules, and how much was looked at."""

    broken: tuple[str, ...]
    layers: int
    components: int
    overlays: int
    entries: int

    def __str__(self) -> str:
        return (
            f"saw {self.layers} kustomizations: {self.overlays} overlays, {self.components} components, "
            f"{self.entries} patches and images; {len(self.broken)} broken rules"
        )


def static(repo: Repository) -> Iterator[str]:
    """The rules that need no engine."""
    alone: Iterable[Callable[[Layer], Iterator[str]]] = (fields, images, patches)
    related: Iterable[Callable[[Repository, Layer], Iterator[str]]] = (order, gate, listing)
    for layer in repo.layers:
        for rule in alone:
            yield from rule(layer)
        for relation in related:
            yield from relation(repo, layer)


def outcomes(repo: Repository, shop: Workshop) -> Iterator[str]:
    """The rules about what each overlay renders."""
    base = shop.render(shop.probe())
    for layer in repo.overlays:
        try:
            rendered = shop.render(layer.name)
            rules = queues(layer, rendered) if repo.of_queues(layer) else outcome(repo, layer, rendered, base)
            yield from rules
        except BuildError as error:
            yield f"{layer.name}: {error.stderr}"


def check(root: Path, engine: Engine | None = None) -> Result:
    """The whole policy over the runtimes and overlays below `root`."""
    repo = Repository(root)
    broken = list(static(repo))
    with tempfile.TemporaryDirectory() as folder:
        shop = Workshop(repo, Path(folder), engine or find_engine())
        try:
            broken += outcomes(repo, shop)
            broken += effects(repo, shop)
        except BuildError as error:
            broken.append(str(error))
    entries = sum(len(x.entries("patches")) + len(x.entries("images")) for x in repo.layers)
    return Result(tuple(broken), len(repo.layers), len(repo.components), len(repo.overlays), entries)


def main(arguments: Sequence[str]) -> int:
    """Prints the broken rules; 1 when there are any."""
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parents[1]
    if not (root / "overlays").is_dir() or not (root / "runtimes").is_dir():
        print(f"error: {root} holds no runtimes/ and overlays/; give the folder above them", file=sys.stderr)
        return 2
    result = check(root)
    for line in result.broken:
        print(line)
    print(result)
    return 1 if result.broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
