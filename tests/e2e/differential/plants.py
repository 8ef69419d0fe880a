"""Wrong migrations: each takes what the migrator made and breaks one thing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tests.e2e.differential.jobs import both, job
from tests.e2e.differential.shape import Object, Shape
from tests.e2e.differential.staging import stage

Break = Callable[[list[Object]], list[Object]]


def base() -> Shape:
    """A job with one of each thing that a plant breaks: env, a claim, an account, a priority, Never."""
    pod = {
        "metadata": {"labels": {"team": "blue"}},
        "serviceAccountName": "trainer",
        "priorityClassName": "conformance-plant",
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    }
    container = {
        "command": ["python", "train.py"],
        "env": [
            {"name": "MODE", "value": "full"},
            {"name": "PROBE_PLAN", "value": "0:sleep=6;1:exit=3"},
            {"name": "PROBE_STATE", "value": "/data"},
        ],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    staged = stage([job(*both(1, "Never", pod, **container))])
    return Shape("planted/nothing", tuple(staged.documents), tuple(staged.objects))


def _drop_variable(objects: list[Object]) -> list[Object]:
    env = _trainer(objects)["env"]
    env[:] = [entry for entry in env if entry["name"] != "MODE"]
    return objects


def _one_node_more(objects: list[Object]) -> list[Object]:
    _trainer(objects)["numNodes"] += 1
    return objects


def _lose_volume(objects: list[Object]) -> list[Object]:
    pod = _pod(objects)
    del pod["volumes"], pod["containers"][0]["volumeMounts"]
    return objects


def _other_account(objects: list[Object]) -> list[Object]:
    del _pod(objects)["serviceAccountName"]
    return objects


def _no_priority(objects: list[Object]) -> list[Object]:
    del _pod(objects)["priorityClassName"]
    return objects


def _retry(objects: list[Object]) -> list[Object]:
    batch = _batch(objects)
    batch["backoffLimit"] = 1
    return objects


def _no_label(objects: list[Object]) -> list[Object]:
    del _batch(objects)["template"]["metadata"]["labels"]["team"]
    return objects


def _other_argument(objects: list[Object]) -> list[Object]:
    _trainer(objects)["command"] = ["python", "-u", "train.py"]
    return objects


# name -> (what is broken, a path that the comparison must name)
PLANTS: Final[dict[str, tuple[Break, str]]] = {
    "drop-variable": (_drop_variable, "train: env.MODE"),
    "one-node-more": (_one_node_more, "job pods"),
    "lose-volume": (_lose_volume, "train: mounts./data.type"),
    "other-account": (_other_account, "pod serviceAccountName"),
    "no-priority": (_no_priority, "pod priorityClassName"),
    "retry": (_retry, "tried again"),
    "no-label": (_no_label, "pod labels.team"),
    "other-argument": (_other_argument, "train: argv"),
}


def _trainer(objects: list[Object]) -> Any:
    return objects[-1]["spec"]["trainer"]


def _batch(objects: list[Object]) -> Any:
    return objects[0]["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]


def _pod(objects: list[Object]) -> Any:
    return _batch(objects)["template"]["spec"]
