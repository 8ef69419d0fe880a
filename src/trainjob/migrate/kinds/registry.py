"""Which rules read which kind of job, in the order in which they run."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import Final

from trainjob.migrate.kinds import (
    tj110_policy,
    tj112_mpi_shape,
    tj215_jax_env,
    tj216_xgboost_env,
    tj217_mpi_ssh,
    tj410_mpi_restart,
)
from trainjob.migrate.rule import Rule
from trainjob.migrate.rules import RULES
from trainjob.v1.kinds import JAX, MPI, PYTORCH, XGBOOST, Kind

# Rules of these kinds alone; every other rule is one of PyTorchJob's.
KIND_RULES: Final[tuple[Rule, ...]] = (
    tj110_policy.RULE,
    tj112_mpi_shape.RULE,
    tj215_jax_env.RULE,
    tj216_xgboost_env.RULE,
    tj217_mpi_ssh.RULE,
    tj410_mpi_restart.RULE,
)
# What only a PyTorchJob has, or what the kind's own rules say instead: code -> the rules in its place.
_FIRST: Final = "TJ107"
_CHANGES: Final[dict[str, dict[str, tuple[Rule, ...]]]] = {
    JAX.name: {"TJ102": (), "TJ103": (), "TJ104": (), "TJ206": (tj215_jax_env.RULE,), "TJ409": ()},
    XGBOOST.name: {"TJ103": (), "TJ104": (), "TJ206": (tj216_xgboost_env.RULE,)},
    MPI.name: {
        "TJ101": (),
        "TJ102": (tj112_mpi_shape.RULE,),
        "TJ103": (),
        "TJ104": (),
        "TJ206": (),
        "TJ401": (tj410_mpi_restart.RULE,),
        # After volumes, init containers and probes, which it adds to.
        "TJ409": (tj217_mpi_ssh.RULE,),
    },
}
# Kinds that become TrainJobs.
CONVERTED: Final = (PYTORCH.name, *_CHANGES)
CONVERTIBLE: Final = re.compile("|".join(CONVERTED))


@cache
def rules_of(kind: Kind) -> tuple[Rule, ...]:
    """The rules of a kind that is converted, with claims that name the kind's own fields."""
    if kind is PYTORCH:
        return RULES
    changes = _CHANGES[kind.name]
    out: list[Rule] = []
    for rule in RULES:
        out += changes.get(rule.code, (rule,))
        if rule.code == _FIRST:
            out.append(tj110_policy.RULE)
    return tuple(_for(kind, rule) for rule in out)


def _for(kind: Kind, rule: Rule) -> Rule:
    claims = tuple(
        replace(c, field=c.field.replace(f"spec.{PYTORCH.specs}", f"spec.{kind.specs}")) for c in rule.claims
    )
    return replace(rule, claims=claims)
