"""Progress in the TrainJob itself: `kubectl get trainjob NAME -o jsonpath={.status.trainerStatus}`.

Trainer 2.2 and 2.3 take it at an address of their own when the feature gate TrainJobStatus is on; then the
pods have three variables (kubeflow/trainer v2.3.0, pkg/runtime/framework/plugins/trainjobstatus):

    KUBEFLOW_TRAINER_SERVER_URL      https://.../namespaces/NAMESPACE/trainjobs/NAME/status
    KUBEFLOW_TRAINER_SERVER_CA_CERT  file of the certificate authority
    KUBEFLOW_TRAINER_SERVER_TOKEN    file of a token that the kubelet renews within the hour

The server answers 200, or with a Kubernetes Status whose message says why not: 403 for the token, 404 without
the TrainJob, 413 above 64 KiB, 422 for values that the schema refuses (pkg/statusserver/server.go).
"""

from __future__ import annotations

import json
import math
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from trainjob.train.watch.meter import Record
from trainjob.train.watch.talk import warn

URL: Final = "KUBEFLOW_TRAINER_SERVER_URL"
CA_CERT: Final = "KUBEFLOW_TRAINER_SERVER_CA_CERT"
TOKEN: Final = "KUBEFLOW_TRAINER_SERVER_TOKEN"

# The server allows itself 5 requests a second for all jobs of the cluster (statusServer.qps).
INTERVAL: Final = 10.0
_LONGEST_WAIT: Final = 300.0
_TIMEOUT: Final = 10.0
_INT32: Final = 2**31 - 1


def body(record: Record) -> dict[str, Any]:
    """UpdateTrainJobStatusRequest (pkg/apis/trainer/v1alpha1/trainjob_types.go).

    Percent and seconds are int32, metrics are strings of 1 to 64 characters, at most 256 of them.
    """
    status: dict[str, Any] = {
        "metrics": [{"name": name, "value": f"{value:.6g}"} for name, value in _metrics(record).items()],
        "lastUpdatedTime": datetime.fromtimestamp(record.time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    if record.total:
        status["progressPercentage"] = min(100 * record.step // record.total, 100)
    if record.remaining is not None and math.isfinite(record.remaining):
        status["estimatedRemainingSeconds"] = min(round(record.remaining), _INT32)
    return {"trainerStatus": status}


def _metrics(record: Record) -> dict[str, float]:
    steps = {"step": float(record.step)}
    return {**steps, **({"total_steps": float(record.total)} if record.total else {}), **record.metrics}


@dataclass
class TrainerStatus:
    """Posts the newest record from a thread, at most every `interval` seconds, and the last one at the end.

    A failure is told once; the next try comes later and later, up to 5 minutes. Training never waits.
    """

    url: str
    ca_cert: str
    token: str
    interval: float = INTERVAL
    warn: Callable[[str], None] = warn
    _newest: Record | None = field(default=None, init=False)
    _closing: bool = field(default=False, init=False)
    _failures: int = field(default=0, init=False)
    _told: bool = field(default=False, init=False)
    _wake: threading.Condition = field(default_factory=threading.Condition, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> TrainerStatus | None:
        """None where the cluster does not offer it."""
        url, ca_cert, token = (environ.get(name, "") for name in (URL, CA_CERT, TOKEN))
        return cls(url, ca_cert, token) if url and ca_cert and token else None

    def log(self, record: Record) -> None:
        with self._wake:
            self._newest = record
            self._wake.notify()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="trainer status", daemon=True)
            self._thread.start()

    def saved(self, step: int) -> None:
        """Nothing: TrainerStatus has no field for checkpoints."""

    def close(self, ok: bool) -> None:  # noqa: ARG002
        """The run ended: the last record is posted. Does not wait."""
        with self._wake:
            self._closing = True
            self._wake.notify()

    def join(self, timeout: float) -> None:
        """Waits until that is done, for at most `timeout` seconds."""
        if self._thread is not None:
            self._thread.join(timeout)

    def _run(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._newest is not None or self._closing)
                record, self._newest = self._newest, None
                closing = self._closing
            if record is not None:
                self._try(record)
            if closing:
                return
            wait = min(self.interval * 2**self._failures, _LONGEST_WAIT)
            with self._wake:
                self._wake.wait_for(lambda: self._closing, wait)

    def _try(self, record: Record) -> None:
        try:
            self._post(json.dumps(body(record)).encode())
        except Exception as error:
            self._failures = min(self._failures + 1, 16)
            if not self._told:
                self._told = True
                self.warn(f"the TrainJob's status shows no progress: {_why(error)}; will try again")
        else:
            self._failures = 0

    def _post(self, content: bytes) -> None:
        # Both files are read each time: the kubelet renews the token, Trainer its certificate.
        headers = {"Authorization": f"Bearer {Path(self.token).read_text().strip()}"}
        request = urllib.request.Request(
            self.url, content, {**headers, "Content-Type": "application/json"}, method="POST"
        )
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}),  # an address of the cluster is never behind a proxy
            urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=self.ca_cert)),
        )
        with opener.open(request, timeout=_TIMEOUT) as answer:
            answer.read()


def _why(error: Exception) -> str:
    """With the message of the Kubernetes Status that came back."""
    if isinstance(error, urllib.error.HTTPError):
        try:
            message = json.loads(error.read(65536)).get("message", "")
        except (ValueError, AttributeError, OSError):
            message = ""
        return f"HTTP {error.code} {message or error.reason}"
    return f"{type(error).__name__}: {error}"
