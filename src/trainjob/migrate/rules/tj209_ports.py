"""Container ports: v1's own port is dead, others are kept where a runtime is generated anyway.

What it does: drops `pytorchjob-port` and any 29500 (Trainer adds that one itself); a hostPort, which
really opens something, needs a generated runtime.
Why it matters: a containerPort alone informs only; the headless Service filters no ports.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainjob.emit import MASTER_PORT
from trainjob.findings import Finding
from trainjob.migrate.rule import CONTAINER, Claim, Draft, Outcome, Rule, Say
from trainjob.v1.pytorchjob import PyTorchJob

_SAYS = {"PyTorchJob": "MASTER_PORT", "XGBoostJob": "MASTER_PORT", "JAXJob": "COORDINATOR_PORT"}


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    say = Say("TJ209", job)
    for role in draft.roles:
        keep = []
        for i, port in enumerate(role.main.get("ports") or ()):
            at = (*role.main_path, "ports", i)
            number = port.get("containerPort")
            if port.get("name") == job.kind.port_name:
                says = _SAYS.get(job.kind.name)
                yield say.note(
                    at,
                    f"{job.kind.port_name} {number} is left out"
                    + (f": the rendezvous is at {MASTER_PORT} now, as {says} says" if says else ""),
                )
            elif number == MASTER_PORT and not port.get("hostPort"):
                yield say.note(at, f"port {MASTER_PORT} is left out: Trainer adds it to the container itself")
            else:
                keep.append(port)
                if not port.get("hostPort"):
                    yield say.note(
                        at,
                        f"port {number} only informs: kept where a runtime is generated, else left out; it stays open",
                    )
        if keep:
            role.container["ports"] = keep


RULE = Rule(
    "TJ209", "ports", (Claim(f"{CONTAINER}.ports", Outcome.TRANSLATED, "TrainingRuntime container.ports"),), _apply
)
