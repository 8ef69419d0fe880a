"""One side of a comparison as plain values, with the names of both versions brought to common words.

A view is a flat mapping: path -> text. Paths begin with what they speak of: `job`, `queue`,
`rank N pod`, `rank N train` (what the training process sees), `rank N NAME` (another container).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from tests.e2e.differential.run import Outcome, Side
from tests.e2e.differential.shape import Object
from tests.e2e.differential.watch import PodRecord
from trainjob.kube import quantity

View = dict[str, str]
MAIN: Final = {"PyTorchJob": "pytorch", "TrainJob": "node"}
_KEYS: Final = ("name", "mountPath", "key", "containerPort", "conditionType")
_DEFAULT_TOLERATIONS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
# Written by the API server, the scheduler or the kubelet about one pod.
_NO_MEANING: Final = ("nodeName", "serviceAccount")
# Where Linux takes free ports from.
_EPHEMERAL: Final = 32768
_TOKEN: Final = "kube-api-access-"
_TOKEN_PLACE: Final = "/run/secrets/kubernetes.io/serviceaccount"


def views(outcome: Outcome) -> tuple[View, View]:
    """Both sides of an outcome."""
    return view(outcome.v1), view(outcome.v2)


def view(side: Side) -> View:
    """Everything that was seen of one side."""
    if side.refused:
        return {"job refused": side.refused}
    words = _Words(side)
    out: View = {"job outcome": side.outcome, "job pods": str(len(words.ranks))}
    if side.suspended_pods is not None:
        out["job pods while suspended"] = str(side.suspended_pods)
    out["job is gone after its end"] = str(side.removed)
    for key in ("labels", "annotations"):
        for name, value in side.job.get("metadata", {}).get(key, {}).items():
            out[f"job {key} {name}"] = words.text(str(value))
    for rank, pods in sorted(words.ranks.items()):
        out |= _rank(rank, pods, words)
    if side.workload is not None:
        out |= _workload(side.workload)
    return out


class _Words:
    """The common words for one side: `{rank N}` for a pod or host, `{ip}` for an address, `train` for the container."""

    def __init__(self, side: Side) -> None:
        self.v1 = side.kind == "PyTorchJob"
        self.main = MAIN[side.kind]
        self.name = str(side.job.get("metadata", {}).get("name", ""))
        self.master = any(_role(pod.last) == "master" for pod in side.pods)
        self.ranks: dict[int, list[PodRecord]] = {}
        for pod in side.pods:
            self.ranks.setdefault(self.rank(pod.last), []).append(pod)
        self._hosts = self._patterns()
        self.nodes = {pod.last["spec"].get("nodeName", "") for pod in side.pods} - {""}

    def rank(self, pod: Object) -> int:
        """v1: the Master is 0, Worker i is i+1 (i without a Master). v2: JobSet's index of the pod."""
        labels, annotations = pod["metadata"].get("labels", {}), pod["metadata"].get("annotations", {})
        if self.v1:
            index = int(labels["training.kubeflow.org/replica-index"])
            return index + 1 if _role(pod) == "worker" and self.master else index
        if "worker" in labels.get("jobset.sigs.k8s.io/replicatedjob-name", ""):
            return int(labels["jobset.sigs.k8s.io/job-global-index"])
        return int(annotations["batch.kubernetes.io/job-completion-index"])

    def _patterns(self) -> list[tuple[re.Pattern[str], Callable[[re.Match[str]], str]]]:
        name, first = re.escape(self.name), 1 if self.master else 0
        end = r"(?![\w-])"
        if self.v1:
            return [
                (re.compile(rf"{name}-master-0{end}"), lambda _: "{rank 0}"),
                (re.compile(rf"{name}-worker-(\d+){end}"), lambda m: f"{{rank {int(m[1]) + first}}}"),
            ]
        tail = rf"(?:-[a-z0-9]{{5}})?(?:\.{name}(?![\w-])(?:\.{{namespace}}\.svc\.cluster\.local)?)?{end}"
        return [
            (re.compile(rf"{name}-node-0-(\d+){tail}"), lambda m: f"{{rank {m[1]}}}"),
            (re.compile(rf"{name}-worker-(\d+)-0{tail}"), lambda m: f"{{rank {int(m[1]) + 1}}}"),
        ]

    def text(self, value: str) -> str:
        value = re.sub(r"\bconformance-[0-9a-f]{4}-\d+\b", "{namespace}", value)
        value = re.sub(r"/tmp/tmp\.\w{10}", "/tmp/{random}", value)
        for pattern, word in self._hosts:
            value = pattern.sub(word, value)
        if self.name:
            value = re.sub(rf"(?<![\w-]){re.escape(self.name)}(?![\w-])", "{job}", value)
        return re.sub(r"\b10\.\d+\.\d+\.\d+\b|\b172\.\d+\.\d+\.\d+\b", "{ip}", value)

    def container(self, name: str) -> str:
        return "train" if name == self.main else name


def _role(pod: Object) -> str:
    return str(pod["metadata"].get("labels", {}).get("training.kubeflow.org/replica-type", ""))


def _rank(rank: int, pods: list[PodRecord], words: _Words) -> View:
    first = pods[0]
    stem = f"rank {rank}"
    out: View = {}
    talked = {name for pod in pods for name, _ in pod.told}
    for path, value in flat(_pod(first.first, words, talked)):
        out[f"{stem} pod {path}"] = words.text(value)
    last = pods[-1]
    ends = [f"{code} {reason}" for name, code, reason in last.ends if name == words.main]
    out[f"{stem} end"] = ends[-1] if ends else "none seen"
    out[f"{stem} tried again"] = str(len(pods) > 1 or last.restarts(words.main) > 0)
    out[f"{stem} left behind"] = ", ".join(sorted(pod.phase for pod in pods if not pod.gone)) or "nothing"
    out |= _told(stem, pods, words)
    return out


def _told(stem: str, pods: list[PodRecord], words: _Words) -> View:
    """What the programs of each container said in the first pod that said something, numbered in their order."""
    out: View = {}
    by_container: dict[str, list[Object]] = {}
    telling = next((pod for pod in pods if pod.told), pods[0])
    for name, seen in telling.told:
        by_container.setdefault(words.container(name), []).append(seen)
    for container, programs in by_container.items():
        programs.sort(key=lambda seen: int(seen.get("env", {}).get("LOCAL_RANK", -1)))
        programs = _first_try(programs)
        for number, seen in enumerate(programs):
            label = f"{stem} {container}" + (f" #{number}" if number else "")
            for path, value in flat(_clean(seen, words.nodes)):
                out[f"{label}: {path}"] = words.text(value)
    return out


def _first_try(programs: list[Object]) -> list[Object]:
    """Without what a container said again after a restart: the same words as at first."""
    out: list[Object] = []
    for seen in programs:
        key = (seen.get("argv"), seen.get("env", {}).get("LOCAL_RANK"))
        if all(key != (known.get("argv"), known.get("env", {}).get("LOCAL_RANK")) for known in out):
            out.append(seen)
    return out


def _clean(seen: Object, nodes: set[str]) -> Object:
    env = {
        key: value
        for key, value in seen.get("env", {}).items()
        if not key.startswith("KUBERNETES_") and key not in ("TORCHELASTIC_ERROR_FILE",)
    }
    if env.get("HOSTNAME") in nodes:
        env["HOSTNAME"] = "{node}"
    rendezvous = dict(seen.get("rendezvous", {}))
    if env.get("TORCHELASTIC_RUN_ID") and int(env.get("MASTER_PORT", 0)) >= _EPHEMERAL:
        env["MASTER_PORT"] = rendezvous["port"] = "{random}"  # torchrun takes a free one with c10d
    mounts = {place.replace("/var/run/", "/run/"): m for place, m in seen.get("mounts", {}).items()}
    if _TOKEN_PLACE in mounts:
        mounts[_TOKEN_PLACE] = {"type": "token"}
    return {**seen, "env": env, "mounts": mounts, **({"rendezvous": rendezvous} if rendezvous else {})}


def _pod(pod: Object, words: _Words, talked: set[str]) -> Object:
    """The pod template as it reached the API server, with the server's own additions taken away.

    The env of a container that told what it sees is compared there, by value.
    """
    meta, spec = pod["metadata"], {k: v for k, v in pod["spec"].items() if k not in _NO_MEANING}
    spec["tolerations"] = [
        t
        for t in spec.get("tolerations", [])
        if t.get("key") not in _DEFAULT_TOLERATIONS or "tolerationSeconds" not in t
    ]
    spec["volumes"] = [v for v in spec.get("volumes", []) if not v["name"].startswith(_TOKEN)]
    for key in ("containers", "initContainers"):
        if key in spec:
            spec[key] = [_container(c, words, talked) for c in spec[key]]
    annotations = {k: v for k, v in meta.get("annotations", {}).items() if not k.startswith("cni.")}
    for key, value in (("labels", meta.get("labels")), ("annotations", annotations)):
        if value:
            spec[key] = value
    return {key: value for key, value in spec.items() if value not in ({}, [])}


def _container(container: Object, words: _Words, talked: set[str]) -> Object:
    out = {key: value for key, value in container.items() if value not in ({}, [])}
    if container["name"] in talked:
        out.pop("env", None)
    mounts = [m for m in container.get("volumeMounts", []) if not m["name"].startswith(_TOKEN)]
    out.pop("volumeMounts", None)
    return {**out, "name": words.container(container["name"]), **({"volumeMounts": mounts} if mounts else {})}


def _workload(workload: Object) -> View:
    spec = workload["spec"]
    pods = sum(int(s["count"]) for s in spec["podSets"])
    out = {
        "queue name": str(spec.get("queueName", "")),
        "queue priority": str(spec.get("priority", "")),
        "queue priority class": json.dumps(
            spec.get("priorityClassRef", spec.get("priorityClassName", "")), sort_keys=True
        ),
        "queue pods": str(pods),
        "queue pod sets": ", ".join(f"{s['name']} {s['count']}" for s in spec["podSets"]),
    }
    total: dict[str, float] = {}
    for entry in workload.get("status", {}).get("admission", {}).get("podSetAssignments", []):
        for name, amount in entry.get("resourceUsage", {}).items():
            total[name] = total.get(name, 0) + float(quantity.parse(str(amount)))
    out |= {f"queue usage {name}": f"{amount:g}" for name, amount in sorted(total.items())}
    return out


def flat(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Leaves of a tree. Lists of objects with a name are keyed by it, other lists are one leaf."""
    if isinstance(value, Mapping) and value:
        for key, item in sorted(value.items(), key=lambda pair: str(pair[0])):
            yield from flat(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and value and all(isinstance(v, Mapping) for v in value):
        key = next((k for k in _KEYS if all(k in v for v in value)), None)
        names = [str(v[key]) for v in value] if key else []
        if key and len(set(names)) == len(names):
            for item in value:
                rest = {k: v for k, v in item.items() if k != key}
                yield from flat(rest or "", f"{path}[{item[key]}]")
        else:
            items = sorted(json.dumps(v, sort_keys=True) for v in value)
            yield path, "[" + ", ".join(items) + "]"
    elif isinstance(value, str):
        yield path, value
    else:
        yield path, json.dumps(value, sort_keys=True)
