"""Host network, host IPC and DNS settings are carried in a generated runtime.

What it does: copies them, and warns where the host network meets v2's way of finding rank 0.
Why it matters: on the host network without `dnsPolicy: ClusterFirstWithHostNet` the pod asks the
node's DNS, which does not know `<job>-node-0-0.<job>`; and port 29500 becomes a port of the node.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainjob.emit import MASTER_PORT
from trainjob.findings import Finding
from trainjob.migrate.rule import POD, Claim, Draft, Outcome, Rule, Say
from trainjob.v1.kinds import MPI
from trainjob.v1.pytorchjob import PyTorchJob

_FIELDS = ("hostNetwork", "hostIPC", "hostPID", "hostUsers", "dnsPolicy", "dnsConfig", "hostAliases")
# JobSet sets hostname and subdomain of its pods; another value would break their DNS names.
_DROPPED = ("hostname", "subdomain", "setHostnameAsFQDN", "hostnameOverride")


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    say = Say("TJ305", job)
    for role in draft.roles:
        pod = role.pod
        carried = []
        for key in _FIELDS:
            value = pod.get(key)
            if key == "dnsPolicy" and value == "ClusterFirst":
                yield say.note(role.at(key), "dnsPolicy ClusterFirst is the default and is left out")
                continue
            if value in (None, "", {}, []):
                continue
            if not value and key != "hostUsers":
                continue
            role.spec[key] = value
            carried.append(key)
        if carried:
            yield say.note(role.at(carried[0]), f"{', '.join(carried)}: a generated runtime carries this")
        if pod.get("hostNetwork"):
            if job.kind is not MPI:  # TJ217 speaks of its port
                yield say.warning(
                    role.at("hostNetwork"),
                    f"on the host network port {MASTER_PORT} is a port of the node: two pods of TrainJobs cannot share "
                    "one",
                )
            if pod.get("dnsPolicy") != "ClusterFirstWithHostNet" and draft.nodes > 1:
                yield say.warning(
                    role.at("hostNetwork"),
                    "hostNetwork without dnsPolicy ClusterFirstWithHostNet: names inside the cluster, such as the "
                    "address of rank 0, may not resolve",
                    "set dnsPolicy: ClusterFirstWithHostNet",
                )
        for key in _DROPPED:
            if pod.get(key):
                yield say.warning(role.at(key), f"{key} is dropped: JobSet names the hosts of its pods itself")


RULE = Rule(
    "TJ305",
    "host-and-dns",
    (
        *(Claim(f"{POD}.{f}", Outcome.TRANSLATED, f"TrainingRuntime {f}") for f in _FIELDS),
        *(Claim(f"{POD}.{f}", Outcome.DROPPED) for f in _DROPPED),
    ),
    _apply,
)
