"""The API generations of Trainer v2 that an output can be written for.

All of them say `trainer.kubeflow.org/v1alpha1`, yet their shapes are incompatible and no
conversion exists (kubeflow/trainer v2.0.1 to v2.3.0, pkg/apis/trainer/v1alpha1/*_types.go).
Red Hat OpenShift AI 3.2 to 3.5 carry Trainer 2.1.0, 3.6 carries 2.3.
"""

from __future__ import annotations

from dataclasses import dataclass

GROUP = "trainer.kubeflow.org"
API_VERSION = f"{GROUP}/v1alpha1"


@dataclass(frozen=True, slots=True)
class Target:
    """What one Trainer minor accepts. `patches` is the TrainJob field that patches pods."""

    name: str
    release: str
    jobset: str
    patches: str
    aliases: tuple[str, ...] = ()
    # Trainer 2.0 and 2.1: `torch: {numProcPerNode: auto}`; from 2.2 on `torch: {}`.
    torch_nproc_in_runtime: bool = False
    active_deadline: bool = True
    patch_security_context: bool = True
    patch_affinity: bool = True
    patch_metadata: bool = True
    patch_pull_secrets: bool = True
    patch_grace_period: bool = False
    env_injection: bool = False
    volume_claim_policies: bool = True
    # JobSet's failurePolicy rules can look at a Job's failure message (JobSet 0.10, jobset_types.go).
    failure_message_patterns: bool = True
    # What `mlPolicy` of a runtime can hold (pkg/apis/trainer/v1alpha1/trainingruntime_types.go).
    policies: tuple[str, ...] = ("torch", "mpi", "jax", "xgboost", "flux")

    def __str__(self) -> str:
        return self.name


TARGETS: tuple[Target, ...] = (
    Target(
        "2.0", "v2.0.1", "v0.8.2", "podSpecOverrides",
        torch_nproc_in_runtime=True, active_deadline=False, patch_security_context=False,
        patch_affinity=False, patch_metadata=False, patch_pull_secrets=False, volume_claim_policies=False,
        failure_message_patterns=False, policies=("torch", "mpi"),
    ),
    Target(
        "2.1", "v2.1.0", "v0.10.1", "podTemplateOverrides",
        aliases=("rhoai-3.2", "rhoai-3.3", "rhoai-3.4", "rhoai-3.5"),
        torch_nproc_in_runtime=True, active_deadline=False, patch_security_context=False,
        volume_claim_policies=False, policies=("torch", "mpi"),
    ),
    Target("2.2", "v2.2.0", "v0.11.1", "runtimePatches"),
    Target(
        "2.3", "v2.3.0", "v0.12.0", "runtimePatches",
        aliases=("rhoai-3.6",), patch_grace_period=True, env_injection=True,
    ),
)  # fmt: skip
DEFAULT = TARGETS[-1]


def target(name: str) -> Target:
    """The target called `name` (a minor such as `2.3`, a release, or an alias such as `rhoai-3.5`).

    Raises ValueError that lists what exists.
    """
    wanted = name.strip().lower().removeprefix("v").removeprefix("trainer-")
    for t in TARGETS:
        if wanted in (t.name, t.release.removeprefix("v"), *t.aliases):
            return t
    raise ValueError(f"unknown target {name!r}: choose one of {', '.join(names())}")


def names() -> tuple[str, ...]:
    """Every name that `target` accepts, minors first."""
    return tuple(t.name for t in TARGETS) + tuple(a for t in TARGETS for a in t.aliases)
