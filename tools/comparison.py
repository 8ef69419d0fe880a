"""Features of our runtimes beside those that Trainer and OpenShift AI ship, read from the manifests.

Each cell is computed: from our file, and from the facts in peers.json. `shown` names the row of
docs/evidence.md in which the cluster showed what the setting does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from trainjob.catalog import Catalog, Runtime

PEERS: Final = Path(__file__).with_name("peers.json")
OURS: Final = "torch-fsdp-8gpu"
NO: Final = "no"


@dataclass(frozen=True)
class View:
    """One runtime's manifest, from the places that the features ask."""

    spec: Mapping[str, Any]

    @property
    def jobset(self) -> Mapping[str, Any]:
        return self.spec["template"]["spec"]  # type: ignore[no-any-return]

    @property
    def job(self) -> Mapping[str, Any]:
        return self.jobset["replicatedJobs"][0]["template"]["spec"]  # type: ignore[no-any-return]

    @property
    def pod(self) -> Mapping[str, Any]:
        return self.job["template"]["spec"]  # type: ignore[no-any-return]

    @property
    def labels(self) -> Mapping[str, str]:
        return self.job["template"].get("metadata", {}).get("labels", {})  # type: ignore[no-any-return]

    @property
    def container(self) -> Mapping[str, Any]:
        return self.pod["containers"][0]  # type: ignore[no-any-return]

    @property
    def env(self) -> Mapping[str, str]:
        return {item["name"]: item.get("value", "") for item in self.container.get("env", [])}

    @property
    def rules(self) -> Mapping[str, str]:
        """Name -> action of JobSet's rules."""
        rules = self.jobset.get("failurePolicy", {}).get("rules", [])
        return {rule["name"]: rule["action"] for rule in rules}

    def volume(self, path: str) -> Mapping[str, Any]:
        mounts = {m["mountPath"]: m["name"] for m in self.container.get("volumeMounts", [])}
        return next((v for v in self.pod.get("volumes", []) if v["name"] == mounts.get(path)), {})


def _shm(v: View) -> str:
    shm = v.volume("/dev/shm").get("emptyDir", {})
    return f"in memory, {shm['sizeLimit']}" if shm.get("medium") == "Memory" else "64Mi"


def _caches(v: View) -> str:
    writable = all(v.volume(path) for path in ("/home/trainer", "/cache"))
    return "HOME, model and compile caches" if writable and "HF_HOME" in v.env else NO


def _restricted(v: View) -> str:
    pod, own = v.pod.get("securityContext", {}), v.container.get("securityContext", {})
    met = (
        pod.get("runAsNonRoot")
        and pod.get("seccompProfile", {}).get("type") == "RuntimeDefault"
        and own.get("allowPrivilegeEscalation") is False
        and own.get("capabilities", {}).get("drop") == ["ALL"]
    )
    return "Pod Security `restricted`" if met else NO


def _sizes(v: View) -> str:
    resources = v.container.get("resources", {})
    limits = resources.get("limits", {})
    if not limits or limits != resources.get("requests"):
        return "none: quota 0, one process a node"
    return f"requests equal limits, {limits['nvidia.com/gpu']} GPUs, one process each"


def _together(v: View) -> str:
    policy = v.jobset.get("failurePolicy", {})
    alone = v.pod.get("restartPolicy") == "Never" and v.job.get("backoffLimit") == 0
    return f"all pods, up to {policy['maxRestarts']} times" if policy and alone else "each pod for itself"


def _disruption(v: View) -> str:
    free = v.rules.get("onDisruption") == "RestartJobSetAndIgnoreMaxRestarts"
    return "restart, not counted" if free else "counted like a crash"


def _final(v: View) -> str:
    return "exit codes 64 to 78 fail at once" if v.rules.get("onFinalExit") == "FailJobSet" else "retried"


def _ending(v: View) -> str:
    return "at once" if v.pod.get("shareProcessNamespace") else "after the grace period"


def _grace(v: View) -> str:
    return f"{v.pod.get('terminationGracePeriodSeconds', 30)} s"


def _hang(v: View) -> str:
    seconds = v.env.get("TRAINJOB_COLLECTIVE_TIMEOUT")
    return f"{seconds} s, NCCL and gloo" if seconds else "600 s with NCCL, 1800 s with gloo"


def _words(v: View) -> str:
    return "end of the log" if v.container.get("terminationMessagePolicy") == "FallbackToLogsOnError" else NO


def _record(v: View) -> str:
    return "beside the checkpoints" if "TORCH_FR_DUMP_TEMP_FILE" in v.env else NO


def _token(v: View) -> str:
    return "none" if v.pod.get("automountServiceAccountToken") is False else "the default account's"


def _mesh(v: View) -> str:
    return "kept out" if v.labels.get("sidecar.istio.io/inject") == "false" else "injected"


@dataclass(frozen=True)
class Feature:
    """A row: what a user cares for, how it is read from a manifest, where the cluster showed it."""

    name: str
    cell: Callable[[View], str]
    shown: tuple[str, ...] = ()


FEATURES: Final = (
    Feature("a pod is lost", _disruption, ("test_worker_pod_deleted", "test_pod_evicted", "test_node_drained")),
    Feature("a process dies (torchrun)", _together, ("test_killed_under_torchrun", "test_worker_process_killed")),
    Feature("an exit code that asks for no restart", _final, ("test_final_exit_code",)),
    Feature("SIGTERM while the launcher starts", _ending, ("test_told_to_end_while_starting",)),
    Feature("time for a last checkpoint", _grace, ("test_preempted_and_admitted_again",)),
    Feature("a rank hangs", _hang, ("test_hanging_rank",)),
    Feature("termination message", _words, ("test_bug_fails_soon_with_its_traceback",)),
    Feature("NCCL flight recorder", _record),
    Feature("`/dev/shm`", _shm, ("test_shared_memory",)),
    Feature("writable folders under any user id", _caches, ("test_restricted_namespace_with_a_random_user",)),
    Feature("security context", _restricted, ("test_restricted_namespace_with_a_random_user",)),
    Feature("CPU, memory, disk, GPUs", _sizes, ("test_single_node_fsdp-torch-fsdp-8gpu",)),
    Feature("service account token", _token),
    Feature("mesh sidecar", _mesh),
)


def views() -> Iterator[tuple[str, View]]:
    """Column title -> runtime; ours first."""
    runtime: Runtime = Catalog()[OURS]
    yield f"`{OURS}`", View(runtime.manifest["spec"])
    for title, peer in json.loads(PEERS.read_text(encoding="utf-8")).items():
        yield f"{title} `{peer['name']}`", View(peer["spec"])


def page() -> str:
    """docs/comparison.md, without its first line."""
    columns = list(views())
    lines = [
        "# Our runtimes beside those that ship",
        "",
        "Every cell is read from the manifests by `tools/comparison.py`. The last column links to the rows of",
        "[evidence.md](evidence.md) in which a cluster showed what the setting does. How long a disturbed job takes",
        "to train again, beside a runtime shaped like the shipped ones: [ADR 0012](adr/0012-survival.md).",
        "",
        "| | " + " | ".join(title for title, _ in columns) + " | shown |",
        "|---|" + "---|" * (len(columns) + 1),
    ]
    for feature in FEATURES:
        links = ", ".join(f"[{i}](evidence.md#{row})" for i, row in enumerate(feature.shown, 1))
        cells = [feature.cell(view) for _, view in columns]
        lines.append(f"| {feature.name} | " + " | ".join(cells) + f" | {links or 'manifest'} |")
    lines += ["", "Sources of the others:", ""]
    lines += [f"- {title}: {p['source']}" for title, p in json.loads(PEERS.read_text(encoding="utf-8")).items()]
    return "\n".join([*lines, ""])
