"""A Kubernetes API server of 127.0.0.1 with the kinds of Trainer, for the real SDK over real HTTP.

It does what the SDK can notice: objects live in namespaces, unknown fields are refused under strict
validation, a dry run keeps nothing, a created TrainJob moves on a step each time it is read. It records
every request.
"""

from __future__ import annotations

import copy
import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.http_server import Handler, serve
from trainjob.kube import schema
from trainjob.targets import DEFAULT, Target

GROUP = "/apis/trainer.kubeflow.org/v1alpha1"
KINDS = {
    "trainjobs": "TrainJob",
    "trainingruntimes": "TrainingRuntime",
    "clustertrainingruntimes": "ClusterTrainingRuntime",
}
CREATED = "2026-11-30T12:00:00Z"


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    query: Mapping[str, str]
    body: Any = None


@dataclass(frozen=True, slots=True)
class Step:
    """What a TrainJob shows when it is read: phases of its pods and the type of its condition."""

    pods: tuple[str, ...] = ()
    condition: str = ""


# Held back by Kueue, then admitted: from the first condition on the SDK never says "Running".
USUAL = (
    Step(),
    Step(condition="Suspended"),
    Step(("Pending",), "Suspended"),
    Step(("Running",), "Suspended"),
    Step(("Succeeded",), "Complete"),
)


class RefusedError(Exception):
    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status, self.reason, self.message = status, reason, message


@dataclass(slots=True)
class FakeApi:
    """State of the server. `steps` is the life of every TrainJob; the last one stays."""

    target: Target = DEFAULT
    steps: tuple[Step, ...] = USUAL
    log: str = "epoch 1 loss 2.5\nepoch 2 loss 1.5\n"
    requests: list[Request] = field(default_factory=list)
    # (plural, namespace or "") -> name -> object
    objects: dict[tuple[str, str], dict[str, dict[str, Any]]] = field(default_factory=dict)
    reads: dict[str, int] = field(default_factory=dict)
    url: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, manifest: Mapping[str, Any], namespace: str = "") -> None:
        """An object that is in the cluster from the start."""
        plural = next(p for p, kind in KINDS.items() if kind == manifest["kind"])
        self._store(plural, namespace)[manifest["metadata"]["name"]] = _stored(manifest, namespace)

    def called(self, method: str, *, under: str = GROUP) -> list[Request]:
        return [r for r in self.requests if r.method == method and r.path.startswith(under)]

    def kubeconfig(self, folder: Path, namespace: str = "team-a") -> Path:
        """A kubeconfig that leads here."""
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "fake", "cluster": {"server": self.url}}],
            "users": [{"name": "me", "user": {"token": "not-a-secret"}}],
            "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "me", "namespace": namespace}}],
            "current-context": "fake",
        }
        path = folder / "kubeconfig"
        path.write_text(json.dumps(config), encoding="utf-8")
        return path

    def answer(self, request: Request) -> Any:
        """The body for a request; text for a log. Raises RefusedError."""
        path = request.path
        if match := re.fullmatch(rf"{GROUP}(?:/namespaces/([^/]+))?/([a-z]+)(?:/([^/]+))?", path):
            namespace, plural, name = match[1] or "", match[2], match[3] or ""
            if plural not in KINDS:
                raise RefusedError(404, "NotFound", f"the server could not find {plural}")
            return self._custom(request, plural, namespace, name)
        if match := re.fullmatch(r"/api/v1/namespaces/([^/]+)/pods", path):
            return self._pods(match[1], request.query.get("labelSelector", ""))
        if re.fullmatch(r"/api/v1/namespaces/[^/]+/pods/[^/]+/log", path):
            return self.log
        if path == "/api/v1/namespaces/kubeflow-system/configmaps/kubeflow-trainer-public":
            return {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "kubeflow-trainer-public", "namespace": "kubeflow-system"},
                "data": {"kubeflow_trainer_version": self.target.release},
            }
        raise RefusedError(404, "NotFound", "the server could not find the requested resource")

    def _store(self, plural: str, namespace: str) -> dict[str, dict[str, Any]]:
        return self.objects.setdefault((plural, namespace), {})

    def _custom(self, request: Request, plural: str, namespace: str, name: str) -> Any:
        store = self._store(plural, namespace)
        resource = f"{plural}.trainer.kubeflow.org"
        if request.method == "POST":
            return self._create(request, plural, namespace, store, resource)
        if not name:
            items = [self._read(plural, obj) for obj in store.values()]
            return _list(KINDS[plural], items)
        if name not in store:
            raise RefusedError(404, "NotFound", f'{resource} "{name}" not found')
        if request.method == "DELETE":
            del store[name]
            return {"apiVersion": "v1", "kind": "Status", "status": "Success"}
        return self._read(plural, store[name])

    def _create(
        self, request: Request, plural: str, namespace: str, store: dict[str, dict[str, Any]], resource: str
    ) -> Any:
        kind, body = KINDS[plural], request.body
        name = body["metadata"]["name"]
        strict = request.query.get("fieldValidation") == "Strict"
        for violation in schema.check(body, kind, self.target):
            if violation.rule == "unknown-field" and not strict:
                body = _without(body, violation.path)  # pruned, silently
                continue
            where = ".".join(map(str, violation.path))
            if violation.rule == "unknown-field":
                message = (
                    f'{kind} in version "v1alpha1" cannot be handled: strict decoding error: unknown field "{where}"'
                )
                raise RefusedError(400, "BadRequest", message)
            raise RefusedError(422, "Invalid", f'{kind} "{name}" is invalid: {where}: {violation.message}')
        if name in store:
            raise RefusedError(409, "AlreadyExists", f'{resource} "{name}" already exists')
        stored = _stored(body, namespace)
        if request.query.get("dryRun") != "All":
            store[name] = stored
        return stored

    def _read(self, plural: str, obj: dict[str, Any]) -> dict[str, Any]:
        """An object as it is now; reading a TrainJob moves it on."""
        if plural != "trainjobs":
            return obj
        name = obj["metadata"]["name"]
        with self.lock:
            step = self._step(name)
            self.reads[name] = self.reads.get(name, 0) + 1
        if not step.condition:
            return obj
        condition = {
            "type": step.condition,
            "status": "True",
            "reason": "Fake",
            "message": "",
            "lastTransitionTime": CREATED,
        }
        return {**obj, "status": {"conditions": [condition]}}

    def _step(self, name: str) -> Step:
        return self.steps[min(self.reads.get(name, 0), len(self.steps) - 1)]

    def _pods(self, namespace: str, selector: str) -> Any:
        match = re.match(r"jobset.sigs.k8s.io/jobset-name=([^,]+),", selector)
        assert match, selector
        name = match[1]
        job = self._store("trainjobs", namespace)[name]
        # The pods of the step that the job itself has just shown.
        step = self.steps[min(max(self.reads.get(name, 0) - 1, 0), len(self.steps) - 1)]
        pods = [
            {
                "metadata": {
                    "name": f"{name}-node-0-{i}-abcde",
                    "namespace": namespace,
                    "creationTimestamp": CREATED,
                    "labels": {
                        "jobset.sigs.k8s.io/jobset-name": name,
                        "jobset.sigs.k8s.io/replicatedjob-name": "node",
                        "batch.kubernetes.io/job-completion-index": str(i),
                    },
                },
                "spec": {
                    "containers": [
                        {
                            "name": "node",
                            "image": job["spec"]["trainer"].get("image", ""),
                            "resources": job["spec"]["trainer"].get("resourcesPerNode", {}),
                        }
                    ]
                },
                "status": {"phase": phase},
            }
            for i, phase in enumerate(step.pods)
        ]
        return {"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": pods}


def _without(obj: Any, path: tuple[str | int, ...]) -> Any:
    """A copy of `obj` that lacks the field at `path`."""
    out = copy.deepcopy(obj)
    parent = out
    for key in path[:-1]:
        parent = parent[key]
    del parent[path[-1]]
    return out


def _list(kind: str, items: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": f"{kind}List",
        "metadata": {"resourceVersion": "1"},
        "items": items,
    }


def _stored(manifest: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    metadata = {
        **manifest["metadata"],
        "uid": "2a8c0f4e-0000-4000-8000-000000000000",
        "resourceVersion": "1",
        "generation": 1,
        "creationTimestamp": CREATED,
    }
    if namespace:
        metadata["namespace"] = namespace
    return {**manifest, "metadata": metadata}


class _Handler(Handler):
    protocol_version = "HTTP/1.1"
    api: FakeApi

    def _serve(self) -> None:
        url = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        query = {key: values[-1] for key, values in parse_qs(url.query).items()}
        request = Request(self.command, url.path, query, body)
        with self.api.lock:
            self.api.requests.append(request)
        try:
            status, answer = 200, self.api.answer(request)
        except RefusedError as err:
            status = err.status
            answer = {
                "apiVersion": "v1",
                "kind": "Status",
                "status": "Failure",
                "reason": err.reason,
                "message": err.message,
                "code": err.status,
            }
        text = isinstance(answer, str)
        content = answer.encode() if text else json.dumps(answer).encode()
        self.reply(status, content, "text/plain" if text else "application/json")

    do_GET = do_POST = do_DELETE = _serve  # noqa: N815


@contextmanager
def running(api: FakeApi) -> Iterator[FakeApi]:
    """Serve `api` until the end of the block."""
    with serve(_Handler, api=api) as url:
        api.url = url
        yield api
