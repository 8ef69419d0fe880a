"""Objects that hold a job: Katib Experiments and AppWrappers. What must change around the job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from trainjob.emit import NODE
from trainjob.findings import Finding, Severity
from trainjob.kube.names import QUEUE_LABEL
from trainjob.kube.yaml import Document, Path
from trainjob.migrate.codes import WRAPPER_EDIT
from trainjob.migrate.locate import Holder, Site
from trainjob.v1.pytorchjob import dict_at

# Katib evaluates these with gjson over the trial's object.
_SUCCESS: Final = 'status.conditions.#(type=="Complete")#|#(status=="True")#'
_FAILURE: Final = 'status.conditions.#(type=="Failed")#|#(status=="True")#'
_RANK_0: Final = {
    "jobset.sigs.k8s.io/replicatedjob-name": NODE,
    "batch.kubernetes.io/job-completion-index": "0",
}


def put(root: Mapping[str, Any], path: Path, value: Any) -> dict[str, Any]:
    """A copy of `root` with the value at `path` replaced; what is not on the path is shared."""
    out = _put(root, path, value)
    assert isinstance(out, dict)
    return out


def _put(node: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    head, rest = path[0], path[1:]
    if isinstance(node, list):
        assert isinstance(head, int)
        return [_put(v, rest, value) if i == head else v for i, v in enumerate(node)]
    return {k: _put(v, rest, value) if k == head else v for k, v in node.items()}


def metadata_of(root: Any) -> Mapping[str, Any]:
    """The metadata of an object of any kind, empty where there is none."""
    return dict_at(root, "metadata") if isinstance(root, Mapping) else {}


def edit(root: dict[str, Any], site: Site, nodes: int, doc: Document) -> tuple[dict[str, Any], list[Finding]]:
    """The wrapper after its job was replaced, with a finding for each change."""
    if site.holder is Holder.KATIB:
        return _katib(root, doc)
    if site.holder is Holder.APPWRAPPER:
        return _appwrapper(root, site, nodes, doc)
    return root, []


def _finding(doc: Document, path: Path, severity: Severity, message: str, fix: str = "") -> Finding:
    return Finding(WRAPPER_EDIT, severity, message, doc.locate(path), fix, str(doc.data.get("kind", "")))


def _katib(root: dict[str, Any], doc: Document) -> tuple[dict[str, Any], list[Finding]]:
    at: Path = ("spec", "trialTemplate")
    template = dict(root["spec"]["trialTemplate"])
    found = []
    wanted = {
        "primaryContainerName": NODE,
        "primaryPodLabels": _RANK_0,
        "successCondition": _SUCCESS,
        "failureCondition": _FAILURE,
    }
    for key, value in wanted.items():
        if template.get(key) != value:
            was = template.get(key)
            template[key] = value
            text = f"{key} was {was!r}" if was is not None else f"{key} was not set"
            found.append(_finding(doc, (*at, key), Severity.NOTE, f"{text}; it is {value!r} now, for a TrainJob"))
    found.append(
        _finding(
            doc,
            at,
            Severity.WARNING,
            "Katib must know TrainJob as a trial resource, and be allowed to create it",
            "add TrainJob.v1alpha1.trainer.kubeflow.org to Katib's trialResources and its role",
        )
    )
    root = put(root, at, template)
    metadata = metadata_of(root)
    if metadata.get("namespace") == "":
        root = put(root, ("metadata",), {k: v for k, v in metadata.items() if k != "namespace"})
    return root, found


def _appwrapper(root: dict[str, Any], site: Site, nodes: int, doc: Document) -> tuple[dict[str, Any], list[Finding]]:
    at = site.path[:3]
    component = dict(root["spec"]["components"][site.path[2]])
    found = []
    if component.get("podSets"):
        component["podSets"] = [{"replicas": nodes, "path": "template.spec.trainer"}]
        found.append(
            _finding(
                doc,
                (*at, "podSets"),
                Severity.WARNING,
                f"the pod sets become one of {nodes} pods; a TrainJob holds no pod template that a path could name",
                "check what your AppWrapper version wants for a TrainJob; without podSets it may infer them",
            )
        )
        root = put(root, at, component)
    metadata = dict(metadata_of(root))
    annotations = dict(dict_at(metadata, "annotations"))
    if QUEUE_LABEL in annotations:
        queue = annotations.pop(QUEUE_LABEL)
        metadata["labels"] = {QUEUE_LABEL: queue, **dict_at(metadata, "labels")}
        metadata["annotations"] = annotations
        if not annotations:
            del metadata["annotations"]
        root = {k: (metadata if k == "metadata" else v) for k, v in root.items()}
        found.append(
            _finding(
                doc,
                ("metadata", "annotations", QUEUE_LABEL),
                Severity.NOTE,
                f"the legacy annotation becomes the label {QUEUE_LABEL}: {queue}",
            )
        )
    found.append(
        _finding(
            doc,
            at,
            Severity.WARNING,
            "the AppWrapper controller must know TrainJob and may create it; a generated runtime stands beside it",
            "register trainer.kubeflow.org/v1alpha1 TrainJob with it, or use Kueue on the TrainJob without a wrapper",
        )
    )
    return root, found


def listed(data: Mapping[str, Any]) -> Iterator[Any]:
    """The items of a List."""
    yield from data.get("items") or ()
