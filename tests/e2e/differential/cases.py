"""Shapes from migration/cases: each job there that converts, made to run here."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tests.e2e.differential.shape import Object, Shape, jobs_of
from tests.e2e.differential.staging import stage
from trainjob.kube.yaml import dump, load
from trainjob.migrate import migrate_text

CASES: Final = Path(__file__).parents[3] / "migration" / "cases"
# Kinds that are made beside the job when the case's own stream holds them.
_BESIDE: Final = ("ConfigMap", "Secret", "Service", "PersistentVolumeClaim")
_CI: Final = ("12-", "43-")


@functools.cache
def cases() -> tuple[Shape, ...]:
    """A shape for each job of migration/cases that converts."""
    return tuple(shape for folder in sorted(CASES.iterdir()) for shape in _shapes(folder))


def _shapes(folder: Path) -> Iterator[Shape]:
    file = next(folder.glob("before.*"))
    result = migrate_text(file.read_bytes(), file=file.name)
    converted = [record for record in result.records if record.job is not None]
    if not converted:
        return
    documents = [d for doc in load(file.read_text(encoding="utf-8"), file.name) for d in _flat(doc.data)]
    beside = [d for d in documents if d.get("kind") in _BESIDE and not jobs_of(d) and "PyTorchJob" not in str(d)]
    whole = [d for d in documents if jobs_of(d) or "kind: PyTorchJob" in str(d)]
    names = {_name(record.data) for record in converted}
    for document in whole:
        inner = jobs_of(_unfolded(document))
        if len(inner) == 1 and _name(inner[0]) in names:
            yield _shape(folder.name if len(names) == 1 else f"{folder.name}/{_name(inner[0])}", document, beside)


def _shape(name: str, document: Object, beside: list[Object]) -> Shape:
    staged = stage([*beside, _unfolded(document)])
    main = staged.documents[-1]
    objects = [_fitting(d) for d in staged.documents[:-1]] + staged.objects
    return Shape(
        name,
        (_folded(main),),
        tuple(objects),
        adapted=tuple(staged.adapted),
        ci=name.startswith(_CI),
    )


def _fitting(obj: Object) -> Object:
    """Claims get the class that both nodes can mount."""
    if obj["kind"] == "PersistentVolumeClaim":
        obj["spec"] |= {"storageClassName": "shared", "accessModes": ["ReadWriteMany"]}
    return obj


def _name(job: Any) -> str:
    meta = job.get("metadata", {}) if isinstance(job, dict) else {}
    return str(meta.get("name") or meta.get("generateName") or "")


def _flat(data: Any) -> list[Object]:
    if not isinstance(data, dict):
        return []
    return list(data["items"]) if data.get("kind") == "List" else [data]


# A job that stands as text in a ConfigMap is staged as an object and written back.


def _unfolded(document: Object) -> Object:
    if document.get("kind") != "ConfigMap":
        return document
    data = {k: load(v)[0].data if "kind: PyTorchJob" in v else v for k, v in document["data"].items()}
    return {**document, "data": data}


def _folded(document: Object) -> Object:
    if document.get("kind") != "ConfigMap":
        return document
    data = {k: v if isinstance(v, str) else dump(v) for k, v in document["data"].items()}
    return {**document, "data": data}
