"""The two sides of `trainjob runtimes diff`, and how the differences are shown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from trainjob import emit, kustomize
from trainjob.catalog import catalog
from trainjob.cli.inputs import STDIN, Input, collect
from trainjob.findings import Finding
from trainjob.kube import yaml
from trainjob.rundiff import KINDS, MEANS, Change, Difference, Effect
from trainjob.targets import Target

_KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_WIDTH: Final = 72
_SIGNS: Final = {"add": "+", "remove": "-", "replace": "~", "order": "~"}


class SideError(Exception):
    """A side that cannot be read. `fix` says the remedy."""

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.fix = fix


def side(argument: str, target: Target) -> list[Mapping[str, Any]]:
    """The runtimes behind an argument: `-`, `catalogue`, a name of it, a file, an overlay or a folder.

    Catalogue runtimes come in the shape of `target`. Raises SideError.
    """
    if argument == "catalogue":
        return [emit.for_target(runtime.manifest, target) for runtime in catalog().values()]
    if argument in catalog():
        return [emit.for_target(catalog()[argument].manifest, target)]
    path = Path(argument)
    if argument != STDIN and not path.exists():
        known = ", ".join(catalog())
        raise SideError(f"{argument} is no file, no folder and no runtime of the catalogue", f"it has: {known}")
    if any((path / name).is_file() for name in _KUSTOMIZATIONS):
        found = list(_runtimes(_rendered(path)))
    else:
        found = list(_runtimes(_read(argument)))
    if not found:
        raise SideError(f"{argument} holds no ClusterTrainingRuntime and no TrainingRuntime")
    names = [f"{o['kind']} {o['metadata']['name']}" for o in found]
    for name in names:
        if names.count(name) > 1:
            raise SideError(f"{argument} holds {name} more than once", "compare one namespace, or one file, at a time")
    return found


def chosen(
    old: list[Mapping[str, Any]], new: list[Mapping[str, Any]], arguments: tuple[str, str]
) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """Both sides; a single runtime meets the one of its own name on a side of several. Raises SideError."""
    if len(old) == 1 < len(new):
        return old, [_named(new, old[0], arguments[1])]
    if len(new) == 1 < len(old):
        return [_named(old, new[0], arguments[0])], new
    return old, new


def _named(side_: Sequence[Mapping[str, Any]], wanted: Mapping[str, Any], argument: str) -> Mapping[str, Any]:
    for obj in side_:
        if (obj["kind"], obj["metadata"]["name"]) == (wanted["kind"], wanted["metadata"]["name"]):
            return obj
    names = ", ".join(str(o["metadata"]["name"]) for o in side_)
    raise SideError(f"{argument} holds no {wanted['kind']} {wanted['metadata']['name']}", f"it has: {names}")


def _rendered(folder: Path) -> list[yaml.Document]:
    try:
        return yaml.load(kustomize.build(folder, kustomize.find_engine()).decode("utf-8"), str(folder))
    except kustomize.KustomizeError as err:
        raise SideError(err.message, err.fix) from err


def _read(argument: str) -> list[yaml.Document]:
    findings: list[Finding] = []
    documents = [doc for item in collect((argument,), findings) for doc in _documents(item)]
    if findings:
        raise SideError(findings[0].message, findings[0].fix)
    return documents


def _documents(item: Input) -> Iterator[yaml.Document]:
    try:
        for doc in yaml.split_lines(item.lines(), item.name):
            yield yaml.parse(doc)
    except yaml.YamlError as err:
        raise SideError(f"{err.where}: {err.message}", err.fix) from err
    except UnicodeDecodeError as err:
        raise SideError(f"{item.name} is not UTF-8 text: {err.reason} at byte {err.start}") from err
    except OSError as err:
        raise SideError(f"cannot read {item.name}: {err.strerror or err}") from err


def _runtimes(documents: list[yaml.Document]) -> Iterator[Mapping[str, Any]]:
    """The runtimes of a stream; a List as `kubectl get -o yaml` writes it is opened."""
    for doc in documents:
        items = doc.data.get("items") if isinstance(doc.data, Mapping) else None
        for obj in items if isinstance(items, list) else [doc.data]:
            if not isinstance(obj, Mapping) or obj.get("kind") not in KINDS:
                continue
            metadata, spec = obj.get("metadata"), obj.get("spec")
            if not isinstance(metadata, Mapping) or not metadata.get("name") or not isinstance(spec, Mapping):
                raise SideError(f"{doc.locate(())}: a {obj['kind']} without metadata.name or spec")
            yield obj


# --- how it is shown -------------------------------------------------------------------------------------


def as_json(found: Sequence[Difference], target: Target) -> str:
    """For a tool: every difference, and what the effects mean."""
    used = effects(found)
    body = {
        "target": target.name,
        "runtimes": [d.to_dict() for d in found],
        "effects": {e.value: {"count": n, "means": MEANS[e]} for e, n in used.items()},
    }
    return json.dumps(body, indent=2, default=str)


def effects(found: Sequence[Difference]) -> dict[Effect, int]:
    """How many changes have each effect, worst first. A runtime that comes or goes counts as one."""
    all_ = [e for d in found for e in ([c.effect for c in d.changes] or [d.effect])]
    return {e: all_.count(e) for e in Effect if e in all_}


def as_text(found: Sequence[Difference]) -> Iterator[str]:
    """Lines for a terminal, a block for each runtime."""
    for difference in found:
        head = f"{difference.kind} {difference.name}"
        if difference.new_name:
            head += f" -> {difference.new_name}"
        if difference.status != "changed":
            which = "first" if difference.status == "removed" else "second"
            yield f"{head}: only in the {which}  [{difference.effect}]"
            continue
        yield head
        for change in difference.changes:
            yield f"  {_SIGNS[change.op]} {_place(change)}: {_values(change)}  [{change.effect}]"


def _place(change: Change) -> str:
    """The path, with `pod` for the long way to a pod template."""
    return re.sub(
        r"^spec\.template\.spec\.(replicatedJobs\[[^]]*\])\.template\.spec\.template\.", r"\1.pod.", change.where
    )


def _values(change: Change) -> str:
    if change.op == "add":
        return _short(change.new)
    if change.op == "remove":
        return _short(change.old)
    if change.op == "order":
        return f"order {', '.join(change.old)} -> {', '.join(change.new)}"
    return f"{_short(change.old)} -> {_short(change.new)}"


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    text = text.replace("\n", "\\n")
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."
