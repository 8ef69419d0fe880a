"""Generated runtimes in a kustomize tree: one object stands in one file only."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from trainjob.kube import yaml
from trainjob.kube.yaml import Document, YamlError
from trainjob.migrate.engine import join
from trainjob.migrate.tree.objects import RUNTIME, Id, id_of


def unique_runtimes(texts: Mapping[Path, str]) -> dict[Path, str]:
    """Texts in which no TrainingRuntime stands twice: kustomize refuses an object that two files hold.

    Alike jobs share a runtime. Inside one file the second one goes; in a second file it gets a name of
    its own, with a number behind it.
    """
    owner: dict[Id, Path] = {}
    count: dict[Id, int] = {}
    out: dict[Path, str] = {}
    for path, text in texts.items():
        if "kind: TrainingRuntime" not in text:
            continue
        parts: list[str] = []
        here: set[Id] = set()
        for doc in yaml.split(text):
            i = _runtime_id(doc)
            if i is None or i not in here:
                parts.append(doc.text)
            if i is not None:
                here.add(i)
        new = join(parts) if len(here) else text
        for i in here:
            if owner.setdefault(i, path) != path:
                count[i] = count.get(i, 1) + 1
                new = new.replace(f" name: {i.name}\n", f" name: {i.name}-{count[i]}\n")
        if new != text:
            out[path] = new
    return out


def _runtime_id(doc: Document) -> Id | None:
    if "kind: TrainingRuntime" not in doc.text:
        return None
    try:
        data = yaml.parse(doc).data
    except YamlError:
        return None
    return id_of(data) if isinstance(data, Mapping) and data.get("kind") == RUNTIME else None
