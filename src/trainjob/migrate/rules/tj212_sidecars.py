"""Containers beside the training container are carried in a generated runtime, with v1's env.

What it does: copies them and gives them the v1 variables; on Trainer 2.3 `envInjection` adds PET_*.
Why it matters: v1 set the rendezvous variables in every container, v2 in `node` alone. A sidecar that
runs on when training ends keeps a Job's pod from finishing, in both versions.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainjob.findings import Finding
from trainjob.migrate.rule import Draft, Rule, Say
from trainjob.migrate.rules.tj204_env import translate
from trainjob.migrate.rules.tj206_rendezvous import rendezvous_env
from trainjob.v1.kinds import MPI, PYTORCH
from trainjob.v1.pytorchjob import PyTorchJob
from trainjob.v1.traced import derived


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    say = Say("TJ212", job)
    for role in draft.roles:
        for i, container in enumerate(role.replica.containers):
            if i == role.index:
                continue
            at = role.at("containers", i)
            env: list[dict[str, object]] = []
            yield from translate(
                say, list(container.get("env") or ()), (*at, "env"), env, job, two_roles=draft.two_roles
            )
            have = {e["name"] for e in env}
            shim = rendezvous_env(draft) if job.kind is PYTORCH else draft.shim
            env += [dict(e) for e in shim if e["name"] not in have]
            sidecar = {k: v for k, v in container.items() if k != "env"}
            role.sidecars.append({**sidecar, **({"env": env} if env else {})})
            name = derived(str(container.get("name")), container.get("name"))
            inject = draft.target.env_injection and job.kind is PYTORCH
            if inject and not draft.two_roles:
                draft.env_targets.append(name)
            yield say.warning(
                at,
                f"container {name!r} needs a generated runtime"
                + ("; it has the v1 variables" if job.kind is not MPI else "")
                + (" and, through envInjection, PET_*" if inject else ""),
                "a container that does not end by itself keeps the job running: end it with the training, or make "
                "it an init container with restartPolicy Always",
            )


RULE = Rule("TJ212", "sidecars", (), _apply)
