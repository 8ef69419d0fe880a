"""TJ407: managedBy."""

from __future__ import annotations

from tests.migrate.rules.support import alone, chain, noop, refusal, v1
from trainjob.migrate.rules import tj407_managed_by

RULE = tj407_managed_by.RULE
AT = "spec.runPolicy.managedBy"


def managed(by: str) -> dict[str, object]:
    return v1(spec={"runPolicy": {"managedBy": by}})


def test_noop_without_a_manager() -> None:
    """Trainer is the default."""
    noop(RULE)
    noop(RULE, managed(""))


def test_multikueue_stays() -> None:
    """With a warning: it copies the job, not its runtime."""
    data = managed("kueue.x-k8s.io/multikueue")
    alone(RULE, data).says("warning", "copies the TrainJob to a worker cluster, not its runtime", at=AT)
    assert chain(data).job["spec"]["managedBy"] == "kueue.x-k8s.io/multikueue"


def test_the_v1_operator_is_left_out() -> None:
    """With a note."""
    data = managed("kubeflow.org/training-operator")
    alone(RULE, data).says("note", "is left out: Trainer is the default", at=AT)
    assert "managedBy" not in chain(data).job["spec"]


def test_others_are_refused() -> None:
    """Trainer would ignore the job without a word."""
    assert "v1 knows no managedBy 'acme'" in refusal(RULE, managed("acme")).message
