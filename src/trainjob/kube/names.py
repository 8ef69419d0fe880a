"""Names: what is legal, and how much of the 63 characters a TrainJob may use.

JobSet refuses a set whose pod names `<trainjob>-<replicatedjob>-0-<index>-<5 random>` pass 63
characters (kubernetes-sigs/jobset v0.12.0 pkg/webhooks/jobset_webhook.go:231-256).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from typing import Any, Final

# On a job: the LocalQueue that it waits in (Kueue, apis/constants).
QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
_LABEL_1035: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?\Z")
_SUBDOMAIN_1123: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
MAX_NAME: Final = 63


def is_label(name: str) -> bool:
    """An RFC 1035 label, as TrainJob names must be."""
    return len(name) <= MAX_NAME and bool(_LABEL_1035.match(name))


def is_label_1123(name: str) -> bool:
    """An RFC 1123 label, as volume and container names must be: a digit may be first."""
    return len(name) <= MAX_NAME and "." not in name and is_subdomain(name)


def is_subdomain(name: str) -> bool:
    """An RFC 1123 subdomain, as most Kubernetes object names must be."""
    return len(name) <= 253 and bool(_SUBDOMAIN_1123.match(name))


def budget(jobs: Iterable[tuple[str, int]] = (("node", 1),)) -> int:
    """The longest TrainJob name for these (replicatedJob name, pods in it)."""
    return min(MAX_NAME - len(f"-{job}-0-{max(0, pods - 1)}-abcde") for job, pods in jobs)


def shorten(name: str, limit: int) -> str:
    """A name within `limit` that still tells two long names apart."""
    if len(name) <= limit:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:5]
    return f"{name[: limit - 6].rstrip('-.')}-{digest}"


def content_hash(data: Any) -> str:
    """Eight hex digits that depend on nothing but the content."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]
