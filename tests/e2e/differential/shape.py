"""What one comparison is about: a v1 job, what must exist beside it, and what is done to it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Object = dict[str, Any]


class Until(StrEnum):
    """What ends the observation of one side."""

    FINISHED = "the job has ended"
    STARTED = "every pod has told what it sees; the job itself goes on"
    SUSPENDED = "the job is suspended and has no pods"


class Act(StrEnum):
    """What is done to the job while it runs."""

    NONE = "nothing"
    SUSPEND = "suspended when its pods run, resumed when they are gone"
    WATCH_END = "watched for some seconds after its end"


@dataclass(frozen=True, slots=True)
class Shape:
    """One job, in the form in which both sides get it.

    `documents`: the stream that is migrated; it holds exactly one PyTorchJob that is compared, which
    may stand inside another object. `objects`: what must exist in the namespace before.
    """

    name: str
    documents: tuple[Object, ...]
    objects: tuple[Object, ...] = ()
    until: Until = Until.FINISHED
    act: Act = Act.NONE
    adapted: tuple[str, ...] = ()
    # Which of several jobs in the documents, by position.
    which: int = 0
    ci: bool = False
    # How long a side is looked at when its job does not end.
    seconds: float = 170


def jobs_of(value: Any) -> list[Object]:
    """Every PyTorchJob in a tree, in the order in which it is read; the objects themselves, not copies."""
    if isinstance(value, dict):
        if value.get("kind") == "PyTorchJob" and value.get("apiVersion") == "kubeflow.org/v1" and "spec" in value:
            return [value]
        return [job for item in value.values() for job in jobs_of(item)]
    if isinstance(value, list):
        return [job for item in value for job in jobs_of(item)]
    return []
