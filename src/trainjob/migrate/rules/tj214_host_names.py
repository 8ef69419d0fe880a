"""Host names of v1 replicas in commands, env and elsewhere become v2 host names.

What it does: `<job>-master-0` becomes `<job>-node-0-0.<job>`, Worker i the pod with index i+1 (i
without a Master); every replacement is listed.
Why it matters: v1 has a Service per replica, v2 one headless Service per job; the old names do not
resolve, and a rendezvous on them waits until its timeout.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainjob.findings import Finding
from trainjob.migrate.hosts import rewrite_all, v2_host
from trainjob.migrate.rule import Draft, Rule, Say
from trainjob.v1.kinds import MPI
from trainjob.v1.pytorchjob import PyTorchJob

_PARTS = ("command", "args", "env", "container", "init_containers", "sidecars", "annotations")


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    if job.name is None or draft.name is None:
        return
    say, name = Say("TJ214", job), draft.name
    has_master = "Master" in job.roles
    two_roles = draft.two_roles and job.kind is not MPI

    def host(role: str, index: int) -> str:
        return v2_host(name, role, index, has_master=has_master, two_roles=two_roles)

    for role in draft.roles:
        found: dict[str, str] = {}
        for part in _PARTS:
            new, pairs = rewrite_all(getattr(role, part), job.name, host)
            setattr(role, part, new)
            found |= dict(pairs)
        for old, new_host in found.items():
            yield say.note(role.main_path, f"the v1 host name {old} becomes {new_host}")


RULE = Rule("TJ214", "v1-host-names", (), _apply)
