"""Build a TrainJob from a few keywords: `train_job(name=..., runtime=..., ...)`.

The result is checked for its Trainer version before it is returned, so what comes back is known to
be accepted. Nothing is sent anywhere: `to_yaml()` is for kubectl, `to_dict()` for a client.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Final

from trainjob import emit
from trainjob.catalog import Runtime, catalog
from trainjob.findings import Finding, Severity
from trainjob.intent import Lifetime, PodParts, Program, Role, TrainingIntent
from trainjob.kube.names import QUEUE_LABEL
from trainjob.storage import ANNOTATION, NONE, Claim, StorageError, storage
from trainjob.targets import DEFAULT, Target
from trainjob.validate import KnownClaim, check_job_storage, check_trainjob

PRIORITY_LABEL: Final = "kueue.x-k8s.io/priority-class"
MULTI_NODE_REASON: Final = "trainjob.dev/allow-multi-node"
_log = logging.getLogger(__name__)


class _Unset(Enum):
    """Not given, where None says something."""

    UNSET = "unset"


def _say(finding: Finding) -> None:
    """A warning through `logging`, which puts it on stderr unless the program says otherwise."""
    _log.warning("%s", finding.text())


class BuildError(ValueError):
    """What was asked for gives no valid TrainJob. `findings` holds every reason."""

    def __init__(self, message: str, findings: Sequence[Finding] = ()) -> None:
        super().__init__(message)
        self.findings = tuple(findings)


def train_job(
    *,
    name: str,
    runtime: str | Runtime,
    image: str | None = None,
    command: Sequence[str] | None = None,
    args: Sequence[str] | None = None,
    env: Mapping[str, str | Mapping[str, Any]] | None = None,
    namespace: str | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    queue: str | None = None,
    priority: str | None = None,
    nodes: int | None = None,
    allow_multi_node: str | None = None,
    procs_per_node: int | None = None,
    resources: Mapping[str, str] | None = None,
    checkpoints: str | Claim | _Unset | None = _Unset.UNSET,
    s3_secret: str | None = None,
    cache: str | Claim | None = None,
    claims: Mapping[str, str | Claim] | None = None,
    node_selector: Mapping[str, str] | None = None,
    tolerations: Sequence[Mapping[str, Any]] = (),
    service_account: str | None = None,
    image_pull_secrets: Sequence[str] = (),
    active_deadline_seconds: int | None = None,
    suspend: bool = False,
    target: Target = DEFAULT,
    on_warning: Callable[[Finding], None] = _say,
) -> emit.TrainJob:
    """A TrainJob on a runtime of the catalogue.

    Args:
        name: RFC 1035 label; 48 characters for up to 10 nodes.
        runtime: catalogue name such as "torch-fsdp-8gpu", or a `Runtime`.
        env: name to text, or to a `valueFrom` source such as {"secretKeyRef": {...}}.
        nodes: pods; the runtime's own number when None. More than one needs `allow_multi_node`: the
            reason why one node is not enough, which is kept as an annotation.
        resources: per node, over the runtime's, as one text for request and limit: {"cpu": "16"}.
            The TrainJob always carries the complete set, because quota and process count follow it.
        checkpoints: a PersistentVolumeClaim, mounted at /checkpoints: its name, "name/folder:rwx", or a
            `Claim`; or "s3://bucket/folder". The program finds the folder in TRAINJOB_CHECKPOINT_URL. None: keep
            nothing, and say so in an annotation; left out: the same with a warning.
        s3_secret: the Secret with the S3 credentials, such as a data connection of OpenShift AI.
        cache: a PersistentVolumeClaim at /cache, where HF_HOME is, for models that jobs share.
        claims: mount path to PersistentVolumeClaim. Several nodes need ReadWriteMany ("name:rwx").
        active_deadline_seconds: from creation or the last resume; Trainer 2.2 and later.
        on_warning: gets each warning; by default `logging` writes it to stderr.

    Returns: a `TrainJob`; its `runtime` is set when only a runtime of its own can carry the job.

    Raises:
        BuildError: with every finding that says why Trainer would refuse the job.
        CatalogError: no such runtime.
    """
    base = runtime if isinstance(runtime, Runtime) else catalog()[runtime]
    count = base.nodes if nodes is None else nodes
    notes = dict(annotations or {})
    if count > 1:
        notes |= _multi_node(base, count, allow_multi_node)
    try:
        where = None if isinstance(checkpoints, _Unset) else checkpoints
        stored = storage(where, cache, claims or {}, s3_secret, env or {})
    except StorageError as err:
        raise BuildError(str(err)) from err
    if checkpoints is None:
        notes[ANNOTATION] = NONE
    intent = TrainingIntent(
        role=Role(
            count,
            Program(
                image,
                None if command is None else tuple(command),
                None if args is None else tuple(args),
                _env(stored.env),
                _resources(base, resources or {}),
            ),
            _pod(stored.mounts, node_selector, tolerations, service_account, image_pull_secrets),
        ),
        name=name,
        namespace=namespace,
        labels=_labels(labels, queue, priority),
        annotations=notes,
        procs_per_node=procs_per_node,
        lifetime=Lifetime(active_deadline_seconds=active_deadline_seconds, suspend=suspend),
    )
    job = emit.build(intent, base, target)
    live = job.runtime if job.runtime is not None else emit.for_target(base.manifest, target)
    said = check_trainjob(job.manifest, target, live)
    bad = [f for f in said if f.severity is Severity.ERROR]
    if bad:
        raise BuildError(f"Trainer {target} would refuse this TrainJob: {_reasons(bad)}", bad)
    known = [KnownClaim(c.name, "", frozenset({c.access})) for c in stored.mounts.values() if c.access]
    found = check_job_storage(job.manifest, target, live, known)
    bad = [f for f in found if f.severity is Severity.ERROR]
    if bad:
        raise BuildError(f"the storage does not fit: {_reasons(bad)}", bad)
    for finding in (*(f for f in said if f.code == "TJ512"), *found):
        on_warning(finding)
    return job


def _reasons(findings: Sequence[Finding]) -> str:
    return "; ".join(f"{f.message} ({f.where.path})" if f.where and f.where.path else f.message for f in findings)


def _multi_node(base: Runtime, count: int, reason: str | None) -> dict[str, str]:
    if base.topology == "single-node":
        raise BuildError(
            f"{base.name} is a single-node runtime; {count} nodes need torch-fsdp-multinode. Keep the tune on one "
            "node until it does not fit"
        )
    if not reason or not reason.strip():
        raise BuildError(
            f"{count} nodes: say why one node is not enough (allow_multi_node). Larger GPUs, LoRA, activation "
            "checkpointing and gradient accumulation come first; traffic between nodes costs throughput"
        )
    return {MULTI_NODE_REASON: reason.strip()}


def _labels(labels: Mapping[str, str] | None, queue: str | None, priority: str | None) -> dict[str, str]:
    out = dict(labels or {})
    if queue is not None:
        out[QUEUE_LABEL] = queue
    if priority is not None:
        out[PRIORITY_LABEL] = priority
    return out


def _env(env: Mapping[str, str | Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    return tuple(
        {"name": key, "value": value} if isinstance(value, str) else {"name": key, "valueFrom": dict(value)}
        for key, value in env.items()
    )


def _resources(base: Runtime, own: Mapping[str, str]) -> dict[str, Any]:
    """The runtime's resources with the caller's over them, complete, requests equal to limits."""
    out: dict[str, Any] = {kind: dict(copy.deepcopy(base.resources.get(kind, {}))) for kind in ("requests", "limits")}
    for key, value in own.items():
        resource = "nvidia.com/gpu" if key == "gpu" else key
        for kind in out:
            out[kind][resource] = str(value)
    return {kind: amounts for kind, amounts in out.items() if amounts}


def _pod(
    claims: Mapping[str, Claim],
    node_selector: Mapping[str, str] | None,
    tolerations: Sequence[Mapping[str, Any]],
    service_account: str | None,
    pull_secrets: Sequence[str],
) -> PodParts:
    mounts = {path: claim.name for path, claim in claims.items()}
    names = {claim: _volume_name(claim, i) for i, claim in enumerate(dict.fromkeys(mounts.values()))}
    spec: dict[str, Any] = {}
    container: dict[str, Any] = {}
    if mounts:
        spec["volumes"] = [{"name": n, "persistentVolumeClaim": {"claimName": c}} for c, n in names.items()]
        container["volumeMounts"] = [
            {"name": names[c.name], "mountPath": path, **({"readOnly": True} if c.read_only else {})}
            for path, c in claims.items()
        ]
    if node_selector:
        spec["nodeSelector"] = dict(node_selector)
    if tolerations:
        spec["tolerations"] = [dict(t) for t in tolerations]
    if service_account:
        spec["serviceAccountName"] = service_account
    if pull_secrets:
        spec["imagePullSecrets"] = [{"name": s} for s in pull_secrets]
    return PodParts(spec=spec, container=container)


def _volume_name(claim: str, index: int) -> str:
    """A volume name after the claim; claims may have dots and be long, volumes may not."""
    plain = claim.replace(".", "-")
    return plain if len(plain) <= 63 and not plain.startswith("runtime-") else f"claim-{index}"
