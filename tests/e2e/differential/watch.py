"""What the cluster shows of the jobs under test, second by second: pods, their ends, and what the probe said."""

from __future__ import annotations

import base64
import json
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from tests.e2e.differential.api import Api, path
from tests.e2e.differential.shape import Object

MARK: Final = "@probe "
_ENDED: Final = ("Succeeded", "Failed")


@dataclass
class PodRecord:
    """One pod over its life. `first` is the object as first seen, `last` as last seen."""

    first: Object
    last: Object
    seen: float
    gone: bool = False
    # (container, exit code, reason) in the order in which they were seen.
    ends: list[tuple[str, int, str]] = field(default_factory=list)
    # Container id -> (container, what the probe said in it).
    logs: dict[str, tuple[str, list[Object]]] = field(default_factory=dict)
    noted: set[str] = field(default_factory=set)

    @property
    def name(self) -> str:
        return str(self.last["metadata"]["name"])

    @property
    def phase(self) -> str:
        return str(self.last.get("status", {}).get("phase", ""))

    @property
    def told(self) -> list[tuple[str, Object]]:
        """(container, what the probe said), oldest first."""
        return [(name, seen) for name, said in self.logs.values() for seen in said]

    @property
    def over(self) -> bool:
        return self.gone or self.phase in _ENDED

    def restarts(self, container: str) -> int:
        for status in self.last.get("status", {}).get("containerStatuses", []):
            if status["name"] == container:
                return int(status["restartCount"])
        return 0


class Watch:
    """Pods and jobs of all namespaces whose names begin with `prefix`."""

    def __init__(self, api: Api, prefix: str) -> None:
        self.api, self.prefix = api, prefix
        self.pods: dict[str, PodRecord] = {}
        self.jobs: dict[tuple[str, str, str], Object] = {}
        self._bound: set[str] = set()

    def look(self) -> None:
        """One round. A pod that ends between two rounds keeps what its status says of the end."""
        now = time.monotonic()
        present = set()
        for pod in self.api.list("Pod"):
            meta = pod["metadata"]
            if not meta["namespace"].startswith(self.prefix):
                continue
            present.add(meta["uid"])
            record = self.pods.setdefault(meta["uid"], PodRecord(pod, pod, now))
            record.last = pod
            self._ends(record)
            self._bind(pod)
        for uid, record in self.pods.items():
            record.gone = record.gone or uid not in present
        self.jobs = {}
        for kind in ("PyTorchJob", "TrainJob"):
            for job in self.api.list(kind):
                meta = job["metadata"]
                if meta["namespace"].startswith(self.prefix):
                    self.jobs[kind, meta["namespace"], meta["name"]] = job

    def of(self, namespace: str, since: float) -> list[PodRecord]:
        """The pods of a namespace that were first seen after a moment, oldest first."""
        found = [r for r in self.pods.values() if r.last["metadata"]["namespace"] == namespace and r.seen >= since]
        return sorted(found, key=lambda r: (r.last["metadata"]["creationTimestamp"], r.name))

    def _bind(self, pod: Object) -> None:
        """Puts a pod that waits for a scheduler of another name on a node, as that scheduler would."""
        meta, spec = pod["metadata"], pod["spec"]
        if spec.get("schedulerName") == "default-scheduler" or spec.get("nodeName") or meta["uid"] in self._bound:
            return
        self._bound.add(meta["uid"])
        nodes = sorted(node["metadata"]["name"] for node in self.api.list("Node"))
        target = {"apiVersion": "v1", "kind": "Node", "name": nodes[len(self._bound) % len(nodes)]}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": meta["name"]}, "target": target}
        self.api.call("POST", f"{path('Pod', meta['namespace'], meta['name'])}/binding", body)

    def _ends(self, record: PodRecord) -> None:
        """Reads a container's log at each of its ends, and before that until the probe has said something.

        A pod that is killed and deleted between two rounds takes its log with it.
        """
        status = record.last.get("status", {})
        for entry in [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]:
            for state, previous in (("lastState", True), ("state", False)):
                end = entry.get(state, {}).get("terminated")
                if end and end.get("containerID", "") not in record.noted:
                    record.noted.add(end.get("containerID", ""))
                    record.ends.append((entry["name"], int(end["exitCode"]), str(end.get("reason", ""))))
                    self._read(record, entry["name"], end.get("containerID", ""), previous=previous)
            running = entry.get("containerID", "") if "running" in entry.get("state", {}) else ""
            if running and not record.logs.get(running, ("", []))[1] and entry["name"] != "init-pytorch":
                self._read(record, entry["name"], running, previous=False)

    def _read(self, record: PodRecord, container: str, identity: str, *, previous: bool) -> None:
        meta = record.last["metadata"]
        log = self.api.logs(meta["namespace"], meta["name"], container, previous=previous)
        said = list(observations(log))
        if said or identity not in record.logs:
            record.logs[identity] = (container, said)


def observations(log: str) -> Iterator[Any]:
    """What the probe said in a log."""
    for line in log.splitlines():
        _, mark, text = line.partition(MARK)
        if mark:
            try:
                yield json.loads(zlib.decompress(base64.b64decode(text.strip())))
            except (ValueError, zlib.error):
                yield {"unreadable": text[:80]}


def condition(job: Object | None, *kinds: str) -> str:
    """The first of these conditions that is true, else ''."""
    for found in (job or {}).get("status", {}).get("conditions", []):
        if found["type"] in kinds and found["status"] == "True":
            return str(found["type"])
    return ""
