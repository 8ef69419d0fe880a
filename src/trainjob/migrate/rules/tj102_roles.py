"""Master and Worker are compared; what differs decides the shape of the output.

What it does: equal roles become one pod template. Roles that differ in labels, annotations or
ports only are merged. Roles that differ in command or args only get a switch on the rank. All
other differences lead to a runtime with two jobs, `node` (the Master) and `worker`.
Why it matters: a TrainJob has one pod template; taking the Master's alone changes the workers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from trainjob.findings import Finding
from trainjob.migrate.roles import differences, merged_ports, overwritten, rank_switch
from trainjob.migrate.rule import Draft, Rule, Say
from trainjob.v1.kinds import PYTORCH
from trainjob.v1.pytorchjob import PyTorchJob, Replica
from trainjob.v1.traced import derived

_PROGRAM = {"containers.command", "containers.args"}
_HARMLESS = {"metadata.labels", "metadata.annotations", "containers.ports"}


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    if not draft.two_roles:
        return
    say = Say("TJ102", job)
    master, worker = draft.roles
    unlike = set(differences(master.replica, worker.replica))
    program = unlike & _PROGRAM
    rest = unlike - _PROGRAM
    both_commands = master.main.get("command") and worker.main.get("command")
    ports = merged_ports(master.replica, worker.replica)
    if rest <= _HARMLESS and (not program or both_commands) and ports is not None:
        if rest & {"metadata.labels", "metadata.annotations"}:
            yield say.warning(
                (*worker.replica.path, "template", "metadata"),
                "Master and Worker differ in "
                + " and ".join(sorted(r.partition(".")[2] for r in rest))
                + "; every pod gets all of them, and of one key the Master's value",
                "check selectors, NetworkPolicies and dashboards that tell the roles apart by label",
            )
        if program:
            rank = "PET_NODE_RANK" if job.kind is PYTORCH else job.kind.rank
            command, args = rank_switch(
                (master.main.get("command") or [], master.main.get("args") or []),
                (worker.main.get("command") or [], worker.main.get("args") or []),
                rank,
            )
            yield say.warning(
                (*worker.main_path, "command" if "containers.command" in program else "args"),
                f"Master and Worker run different programs; both stand in one script that switches on {rank}",
                "the image needs a POSIX shell as `sh`" if command[:2] == ["sh", "-c"] else "",
            )
            master.replica = _with_program(master.replica, master.index, command, args)
        for place, text in overwritten(master.replica, worker.replica):
            yield say.note(place, f"{text} of the Worker is left out: the v1 operator wrote it")
        master.replica = _with_metadata(master.replica, worker.replica)
        if ports:
            master.replica = _with_container(master.replica, master.index, {**master.main, "ports": ports})
        master.pods = derived(master.pods + worker.pods, master.pods, worker.pods)
        draft.roles = [master]
        return
    names = ", ".join(sorted(u.removeprefix("containers.") for u in unlike))
    yield say.warning(
        worker.replica.path,
        f"Master and Worker differ in {names}: the generated runtime has two jobs, `node` (the Master) "
        "and `worker`; the TrainJob is complete when `node` is, as in v1",
        "`TrainerClient` lists only the pods of `node`; make the roles equal to get one pod template",
    )
    if job.name is None:
        raise say.refuse(
            worker.replica.path,
            "a job without a fixed name cannot have two kinds of pods: their address of rank 0 holds the name",
            "give the job a name, or make Master and Worker equal",
        )


def _with_program(replica: Replica, index: int, command: list[str], args: list[str] | None) -> Replica:
    container = {**replica.containers[index], "command": command}
    container.pop("args", None)
    if args:
        container["args"] = args
    return _with_container(replica, index, container)


def _with_container(replica: Replica, index: int, container: Mapping[str, Any]) -> Replica:
    containers = [container if i == index else c for i, c in enumerate(replica.containers)]
    pod = {**replica.pod, "containers": containers}
    data = {**replica.data, "template": {**replica.template, "spec": pod}}
    return dataclasses.replace(replica, data=data)


def _with_metadata(master: Replica, worker: Replica) -> Replica:
    metadata = dict(master.metadata)
    for key in ("labels", "annotations"):
        both = {**worker.metadata.get(key, {}), **master.metadata.get(key, {})}
        if both:
            metadata[key] = both
    data = {**master.data, "template": {**master.template, "metadata": metadata}}
    return dataclasses.replace(master, data=data)


RULE = Rule("TJ102", "roles-differ", (), _apply)
