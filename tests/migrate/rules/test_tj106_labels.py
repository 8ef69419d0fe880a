"""TJ106: labels and annotations of the job."""

from __future__ import annotations

import pytest

from tests.migrate.rules.support import alone, chain, noop, v1
from trainjob.migrate.rules import tj106_labels

RULE = tj106_labels.RULE
QUEUE = "kueue.x-k8s.io/queue-name"


def meta(**parts: dict[str, str]) -> dict[str, object]:
    return {"name": "demo", **parts}


def test_noop_without_labels() -> None:
    """Nothing to carry."""
    noop(RULE)


def test_labels_and_annotations_are_carried() -> None:
    """Neutral ones without a word."""
    metadata = meta(
        labels={"app.kubernetes.io/name": "x", "team": "t"}, annotations={"helm.sh/chart": "c", "note": "n"}
    )
    ran = alone(RULE, v1(metadata=metadata))
    assert ran.findings == []
    assert chain(v1(metadata=metadata)).job["metadata"] == metadata


def test_a_queue_label_needs_kueues_integration() -> None:
    """Kueue reads it from the TrainJob."""
    ran = alone(RULE, v1(metadata=meta(labels={QUEUE: "q"})))
    ran.says("note", r"queues the TrainJob in 'q' if its integrations list trainer.kubeflow.org/trainjob")
    assert ran.draft.labels == {QUEUE: "q"}


def test_the_legacy_queue_annotation_becomes_the_label() -> None:
    """A label that is there wins."""
    ran = alone(RULE, v1(metadata=meta(annotations={QUEUE: "old"})))
    ran.says("note", "the legacy annotation becomes the label", at=f'metadata.annotations["{QUEUE}"]')
    assert (ran.draft.labels, ran.draft.annotations) == ({QUEUE: "old"}, {})
    ran = alone(RULE, v1(metadata=meta(annotations={QUEUE: "old"}, labels={QUEUE: "new"})))
    assert ran.draft.labels == {QUEUE: "new"}


@pytest.mark.parametrize("key", ["kubectl.kubernetes.io/last-applied-configuration", "kubeflow.org/anything"])
def test_what_tools_wrote_is_left_out(key: str) -> None:
    """It is about the v1 object."""
    ran = alone(RULE, v1(metadata=meta(annotations={key: "{}"})))
    ran.says("note", "is left out: a tool wrote it", at=f'metadata.annotations["{key}"]')
    assert ran.draft.annotations == {}


@pytest.mark.parametrize("key", ["kai.scheduler/queue", "volcano.sh/queue-name", "runai/queue", "queue"])
def test_queues_of_other_schedulers_are_pointed_out(key: str) -> None:
    """They may know PyTorchJob and not TrainJob."""
    ran = alone(RULE, v1(metadata=meta(labels={key: "q"})))
    ran.says("warning", f"the queue label {key} stands on the TrainJob")
    assert ran.draft.labels == {key: "q"}


def test_annotations_of_unknown_controllers_are_kept_with_a_note() -> None:
    """Whoever reads them watches PyTorchJobs."""
    ran = alone(RULE, v1(metadata=meta(annotations={"acme.io/a": "1", "acme.io/b": "2"})))
    ran.says("note", "kept: acme.io/a, acme.io/b", at='metadata.annotations["acme.io/a"]')
    assert ran.draft.annotations == {"acme.io/a": "1", "acme.io/b": "2"}
