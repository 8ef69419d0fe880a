"""Reads a cluster through the `kubernetes` client, and never does anything else than GET.

Lists come in pages. Secrets and ConfigMaps of the target are asked for as PartialObjectMetadata: their
contents are not fetched (Kubernetes API concepts, "Receiving resources as Tables" and metadata).
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

PAGE: Final = 500
# Seconds to connect, seconds to wait for an answer.
_TIMEOUT: Final = (5, 60)
_JSON: Final = "application/json"
_METADATA: Final = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
Obj = Mapping[str, Any]


class ClusterError(RuntimeError):
    """The cluster cannot be asked at all. `fix` says what to do."""

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.message, self.fix = message, fix


class ReadError(RuntimeError):
    """One list or object cannot be read. `status` is the HTTP status, 404 for a kind that is not there."""

    def __init__(self, path: str, status: int, reason: str) -> None:
        super().__init__(f"{path}: {status} {reason}")
        self.path, self.status, self.reason = path, status, reason


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind as the API server lists it."""

    api: str
    plural: str
    kind: str
    namespaced: bool = True

    def path(self, namespace: str | None, name: str = "") -> str:
        """Of the list (of one namespace, or of all), or of one object."""
        root = f"/api/{self.api}" if "/" not in self.api else f"/apis/{self.api}"
        inside = f"/namespaces/{namespace}" if namespace and self.namespaced else ""
        return f"{root}{inside}/{self.plural}" + (f"/{name}" if name else "")

    @property
    def shown(self) -> str:
        """As RBAC names it: plural and group."""
        group = self.api.rpartition("/")[0]
        return f"{self.plural}.{group}" if group else self.plural


class Reader:
    """A connection to one cluster. `namespace` is the one of the context."""

    def __init__(self, client: Any, context: str, namespace: str) -> None:
        self._client, self.context, self.namespace = client, context, namespace
        self._errors = importlib.import_module("kubernetes.client.exceptions").ApiException

    @classmethod
    def connect(cls, kubeconfig: Path | None = None, context: str | None = None) -> Reader:
        """A reader for a context of the kubeconfig, or for the cluster of the pod that this runs in.

        Raises ClusterError.
        """
        try:
            config = importlib.import_module("kubernetes.config")
            client = importlib.import_module("kubernetes.client")
        except ImportError:
            raise ClusterError(
                "reading a cluster needs the package kubernetes", "pip install 'trainjob[cluster]'"
            ) from None
        file = str(kubeconfig) if kubeconfig is not None else None
        try:
            contexts, active = config.list_kube_config_contexts(config_file=file)
            chosen = active if context is None else next(c for c in contexts if c["name"] == context)
            api = config.new_client_from_config(config_file=file, context=chosen["name"])
            return cls(api, chosen["name"], chosen["context"].get("namespace") or "default")
        except StopIteration:
            raise ClusterError(f"the kubeconfig has no context {context!r}", "kubectl config get-contexts") from None
        except config.ConfigException as err:
            if file is None and context is None:
                try:
                    config.load_incluster_config()
                    return cls(client.ApiClient(), "in-cluster", _own_namespace())
                except config.ConfigException:
                    pass
            raise ClusterError(
                f"no cluster: {err}", "set KUBECONFIG, or say --kubeconfig FILE --context NAME"
            ) from None

    def get(self, path: str, query: Mapping[str, str] | None = None, accept: str = _JSON) -> dict[str, Any]:
        """One answer of the API server as plain data. Raises ReadError, or ClusterError when it is not there."""
        try:
            answer = self._client.call_api(
                path, "GET", query_params=list((query or {}).items()), header_params={"Accept": accept},
                auth_settings=["BearerToken"], response_type="object", _return_http_data_only=True,
                _request_timeout=_TIMEOUT,
            )  # fmt: skip
        except self._errors as err:
            raise ReadError(path, int(err.status or 0), _reason(err)) from None
        except Exception as err:  # urllib3's own family, and that of a credential plugin
            raise ClusterError(
                f"the cluster of context {self.context} does not answer: {str(err).splitlines()[0]}",
                "check with: kubectl cluster-info",
            ) from None
        return answer if isinstance(answer, dict) else {}

    def items(self, resource: Resource, namespace: str | None = None, *, names_only: bool = False) -> Iterator[Obj]:
        """The objects of a kind, page by page, with their kind filled in. Raises ReadError, ClusterError."""
        path, token = resource.path(namespace), ""
        accept = _METADATA if names_only else _JSON
        while True:
            query = {"limit": str(PAGE)} | ({"continue": token} if token else {})
            try:
                page = self.get(path, query, accept)
            except ReadError as err:
                if err.status != 410 or not token:
                    raise
                # The list grew too old while its pages were read: the rest in one piece, from the start.
                raise ReadError(path, 410, "the list changed while it was read; run it again") from None
            for item in page.get("items") or ():
                yield {"apiVersion": resource.api, "kind": resource.kind, **item} if "kind" not in item else item
            token = (page.get("metadata") or {}).get("continue") or ""
            if not token:
                return

    def one(self, resource: Resource, name: str, namespace: str | None = None) -> Obj | None:
        """One object, or None when there is none. Raises ReadError, ClusterError."""
        try:
            return self.get(resource.path(namespace, name))
        except ReadError as err:
            if err.status == 404:
                return None
            raise


def _own_namespace() -> str:
    try:
        return Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace").read_text(encoding="utf-8").strip()
    except OSError:
        return "default"


def _reason(err: Any) -> str:
    try:
        return str(json.loads(err.body)["message"])
    except (ValueError, KeyError, TypeError):
        return str(err.reason)
