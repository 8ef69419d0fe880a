"""The cluster's HTTP API through `kubectl proxy`: hundreds of small calls, which a kubectl each would make slow."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import subprocess
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tests.e2e.kube import Kubectl

Object = dict[str, Any]
# kind -> (path of its group and version, plural, namespaced)
KINDS: Final[dict[str, tuple[str, str, bool]]] = {
    "Namespace": ("/api/v1", "namespaces", False),
    "Node": ("/api/v1", "nodes", False),
    "Pod": ("/api/v1", "pods", True),
    "ConfigMap": ("/api/v1", "configmaps", True),
    "Secret": ("/api/v1", "secrets", True),
    "Service": ("/api/v1", "services", True),
    "ServiceAccount": ("/api/v1", "serviceaccounts", True),
    "PersistentVolumeClaim": ("/api/v1", "persistentvolumeclaims", True),
    "PriorityClass": ("/apis/scheduling.k8s.io/v1", "priorityclasses", False),
    "RuntimeClass": ("/apis/node.k8s.io/v1", "runtimeclasses", False),
    "PyTorchJob": ("/apis/kubeflow.org/v1", "pytorchjobs", True),
    "TrainJob": ("/apis/trainer.kubeflow.org/v1alpha1", "trainjobs", True),
    "TrainingRuntime": ("/apis/trainer.kubeflow.org/v1alpha1", "trainingruntimes", True),
    "Workload": ("/apis/kueue.x-k8s.io/v1beta2", "workloads", True),
    "ClusterQueue": ("/apis/kueue.x-k8s.io/v1beta2", "clusterqueues", False),
    "LocalQueue": ("/apis/kueue.x-k8s.io/v1beta2", "localqueues", True),
    "ResourceFlavor": ("/apis/kueue.x-k8s.io/v1beta2", "resourceflavors", False),
    "WorkloadPriorityClass": ("/apis/kueue.x-k8s.io/v1beta2", "workloadpriorityclasses", False),
}


class ApiError(Exception):
    """The server answered with an error; the text is its message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Api:
    """One proxy, one connection."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()

    def call(self, method: str, path: str, body: Any = None, content: str = "application/json") -> bytes:
        """The raw answer. A lost connection is opened anew once."""
        data = None if body is None else json.dumps(body).encode()
        for attempt in (0, 1):
            try:
                self._connection.request(method, path, data, {"Content-Type": content})
                answer = self._connection.getresponse()
                text = answer.read()
                break
            except (http.client.HTTPException, OSError):
                self._connection.close()
                if attempt:
                    raise
        if answer.status >= 400:
            raise ApiError(answer.status, _message(text))
        return text

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        """The object, or None when there is none."""
        try:
            return json.loads(self.call("GET", path(kind, namespace, name)))  # type: ignore[no-any-return]
        except ApiError as err:
            if err.status == 404:
                return None
            raise

    def list(self, kind: str, namespace: str = "", selector: str = "") -> list[Object]:
        """All objects of a kind in a namespace, or in every one."""
        query = f"?labelSelector={urllib.parse.quote(selector)}" if selector else ""
        return json.loads(self.call("GET", path(kind, namespace) + query))["items"] or []

    def create(self, obj: Mapping[str, Any], namespace: str, *, strict: bool = True, dry_run: bool = False) -> Object:
        """Creates; `strict` refuses unknown fields, else they are pruned as v1 servers did."""
        query = f"?fieldValidation={'Strict' if strict else 'Ignore'}" + ("&dryRun=All" if dry_run else "")
        return json.loads(self.call("POST", path(obj["kind"], namespace) + query, obj))  # type: ignore[no-any-return]

    def ensure(self, obj: Mapping[str, Any], namespace: str) -> None:
        """Creates what may be there already."""
        try:
            self.create(obj, namespace)
        except ApiError as err:
            if err.status != 409:
                raise

    def patch(self, kind: str, namespace: str, name: str, body: Mapping[str, Any], *, status: bool = False) -> None:
        """A merge patch."""
        where = path(kind, namespace, name) + ("/status" if status else "")
        self.call("PATCH", where, body, "application/merge-patch+json")

    def delete(self, kind: str, namespace: str, name: str) -> None:
        """Deletes with everything that it owns; not there is fine."""
        with contextlib.suppress(ApiError):
            self.call("DELETE", path(kind, namespace, name), {"propagationPolicy": "Background"})

    def logs(self, namespace: str, pod: str, container: str, *, previous: bool = False) -> str:
        """A container's log; empty when it cannot be had (any more)."""
        query = f"?container={container}" + ("&previous=true" if previous else "")
        try:
            return self.call("GET", f"{path('Pod', namespace, pod)}/log{query}").decode("utf-8", "replace")
        except ApiError:
            return ""


def path(kind: str, namespace: str = "", name: str = "") -> str:
    """The URL path of objects of a kind."""
    group, plural, namespaced = KINDS[kind]
    middle = f"/namespaces/{namespace}" if namespaced and namespace else ""
    return f"{group}{middle}/{plural}" + (f"/{name}" if name else "")


def _message(text: bytes) -> str:
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return text.decode("utf-8", "replace")[:500]


@contextlib.contextmanager
def proxy(kubectl: Kubectl) -> Iterator[Api]:
    """An Api for the cluster of this kubectl, for as long as the block lasts."""
    command = [kubectl.program, "--kubeconfig", str(kubectl.kubeconfig), "proxy", "--port=0", "--reject-paths=^$"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            port = re.search(r":(\d+)\s*$", line)
            if port is None:
                raise AssertionError(f"kubectl proxy did not start: {line!r}")
            api = Api(int(port[1]))
            try:
                yield api
            finally:
                api.close()
        finally:
            process.terminate()
