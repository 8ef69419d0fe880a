"""TJ305: host network, host IPC and DNS."""

from __future__ import annotations

from typing import Any

import pytest

from tests.migrate.rules.support import POD, alone, chain, noop, v1
from trainjob.migrate.rules import tj101_replicas, tj102_roles, tj305_host

RULE = tj305_host.RULE
AFTER = (tj102_roles.RULE, tj101_replicas.RULE)


def test_noop_for_defaults() -> None:
    """`false` and empty parts say nothing."""
    noop(RULE)
    noop(RULE, v1(pod={"hostNetwork": False, "hostIPC": False, "dnsConfig": {}, "hostAliases": []}))


def test_the_default_dns_policy_is_left_out() -> None:
    """With a note."""
    ran = alone(RULE, v1(pod={"dnsPolicy": "ClusterFirst"}))
    ran.says("note", "dnsPolicy ClusterFirst is the default", at=f"{POD}.dnsPolicy")
    assert ran.role.spec == {}


@pytest.mark.parametrize(
    "pod",
    [
        {"hostIPC": True, "hostPID": True},
        {"hostUsers": False},
        {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["1.1.1.1"]}},
        {"hostAliases": [{"ip": "1.2.3.4", "hostnames": ["h"]}]},
    ],
)
def test_they_are_carried_in_a_runtime(pod: Any) -> None:
    """One note that lists them."""
    ran = alone(RULE, v1(pod=pod))
    ran.says("note", f"{', '.join(pod)}: a generated runtime carries this")
    assert {k: chain(v1(pod=pod)).pod()[k] for k in pod} == pod


def test_port_29500_becomes_a_port_of_the_node() -> None:
    """Two TrainJobs cannot share one then."""
    pod = {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
    ran = alone(RULE, v1(pod=pod, workers=1), after=AFTER)
    ran.says("warning", "port 29500 is a port of the node", at=f"{POD}.hostNetwork")
    assert [s for s, _ in ran.summary] == ["note", "warning"]


@pytest.mark.parametrize(("workers", "warned"), [(0, False), (2, True)])
def test_the_name_of_rank_0_may_not_resolve(workers: int, warned: bool) -> None:
    """On the host network without the matching dnsPolicy, for more than one pod."""
    ran = alone(RULE, v1(pod={"hostNetwork": True}, workers=workers), after=AFTER)
    assert any("without dnsPolicy ClusterFirstWithHostNet" in f.message for f in ran.findings) is warned


@pytest.mark.parametrize(("key", "value"), [("hostname", "h"), ("subdomain", "s"), ("setHostnameAsFQDN", True)])
def test_names_of_hosts_are_jobsets(key: str, value: Any) -> None:
    """Another one would break the pods' DNS names."""
    ran = alone(RULE, v1(pod={key: value}))
    ran.says("warning", f"{key} is dropped: JobSet names the hosts", at=f"{POD}.{key}")
    assert key not in ran.role.spec
