"""A Kubernetes API server of 127.0.0.1 that lists what it was given, over real HTTP for the real client.

It does what an inventory can notice: pages, kinds that are not installed, rights that are missing, and
lists of metadata alone. Anything but a GET is refused. It records every request.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

from tests.http_server import Handler, serve

Obj = dict[str, Any]
CLUSTER_WIDE = ("Namespace", "ClusterTrainingRuntime", "CustomResourceDefinition", "PriorityClass",
                "WorkloadPriorityClass", "ClusterWorkflowTemplate", "RuntimeClass")  # fmt: skip
_PLURALS = {"PriorityClass": "priorityclasses", "RuntimeClass": "runtimeclasses",
            "WorkloadPriorityClass": "workloadpriorityclasses"}  # fmt: skip


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: Mapping[str, str]
    accept: str


@dataclass
class FakeCluster:
    """`installed`: list paths of kinds that exist. `forbidden`: parts of paths that may not be read."""

    objects: list[Obj] = field(default_factory=list)
    installed: set[str] = field(default_factory=set)
    forbidden: set[str] = field(default_factory=set)
    requests: list[Request] = field(default_factory=list)
    page: int = 500
    # The token of a page that is answered with 410 Gone.
    expires: str = ""
    url: str = ""

    def add(self, *manifests: str | Obj) -> None:
        for manifest in manifests:
            for obj in yaml.safe_load_all(manifest) if isinstance(manifest, str) else [manifest]:
                self.objects.append(obj)
                self.installed.add(_collection(obj))

    def kubeconfig(self, folder: Path, namespace: str = "nlp") -> Path:
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

    def answer(self, request: Request) -> tuple[int, Obj]:
        if request.method != "GET":
            return _failure(405, "MethodNotAllowed", f"{request.method} is not for an inventory")
        for part in self.forbidden:
            if part in request.path:
                return _failure(403, "Forbidden", f'User "me" cannot list resource at {request.path}')
        collection, namespace, name = _parse(request.path)
        if collection not in self.installed:
            return _failure(404, "NotFound", "the server could not find the requested resource")
        found = [o for o in self.objects if _collection(o) == collection]
        found = [o for o in found if not namespace or o["metadata"].get("namespace") == namespace]
        if name:
            match = next((o for o in found if o["metadata"]["name"] == name), None)
            return (200, match) if match else _failure(404, "NotFound", f"{name} not found")
        token = request.query.get("continue", "")
        if token and token == self.expires:
            return _failure(410, "Expired", "the provided continue parameter is too old")
        start = int(token or 0)
        size = min(int(request.query.get("limit", self.page)), self.page)
        end = start + size
        items = found[start:end]
        if "PartialObjectMetadataList" in request.accept:
            items = [{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": o["metadata"]}
                     for o in items]  # fmt: skip
        else:  # a typed list leaves the kind of its items out
            items = [{k: v for k, v in o.items() if k not in ("apiVersion", "kind")} for o in items]
        metadata = {"resourceVersion": "1"} | ({"continue": str(end)} if end < len(found) else {})
        return 200, {"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": items}


def _collection(obj: Obj) -> str:
    plural = _PLURALS.get(obj["kind"], f"{obj['kind'].lower()}s")
    root = "/api" if "/" not in obj["apiVersion"] else "/apis"
    return f"{root}/{obj['apiVersion']}/{plural}"


def _parse(path: str) -> tuple[str, str, str]:
    """(path of the collection, namespace, name)."""
    parts = path.strip("/").split("/")
    head, rest = (parts[:2], parts[2:]) if parts[0] == "api" else (parts[:3], parts[3:])
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    return f"/{'/'.join(head)}/{rest[0]}", namespace, rest[1] if len(rest) > 1 else ""


def _failure(status: int, reason: str, message: str) -> tuple[int, Obj]:
    return status, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message,
                    "code": status}  # fmt: skip


class _Handler(Handler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet an answer: no waiting for delayed acknowledgements
    cluster: FakeCluster

    def _serve(self) -> None:
        url = urlsplit(self.path)
        query = {key: values[-1] for key, values in parse_qs(url.query).items()}
        request = Request(self.command, url.path, query, self.headers.get("Accept", ""))
        self.cluster.requests.append(request)
        status, body = self.cluster.answer(request)
        content = json.dumps(body).encode()
        self.reply(status, content)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815


@contextmanager
def running(cluster: FakeCluster) -> Iterator[FakeCluster]:
    """Serve `cluster` until the end of the block."""
    with serve(_Handler, cluster=cluster) as url:
        cluster.url = url
        yield cluster
