"""TJ110: the mlPolicy of the generated runtime, per kind and target."""

from __future__ import annotations

import pytest

from tests.migrate.kinds.support import Obj, chain, jax, mpi, refused, xgboost
from tests.migrate.rules.support import v1
from trainjob.migrate.kinds import tj110_policy
from trainjob.targets import TARGETS, target

RULE = tj110_policy.RULE
JOBS = {"jax": jax(), "xgboost": xgboost(), "mpi": mpi()}


@pytest.mark.parametrize("name", JOBS)
@pytest.mark.parametrize("on", TARGETS, ids=str)
def test_a_target_with_the_policy_converts(name: str, on: object) -> None:
    """MPI everywhere; JAX and XGBoost from Trainer 2.2 on."""
    trainer = target(str(on))
    if name == "mpi" or trainer.name in ("2.2", "2.3"):
        out = chain(JOBS[name], trainer)
        assert out.runtime is not None
        policy = out.runtime["spec"]["mlPolicy"]
        assert [key for key in policy if key != "numNodes"] == [name]
        assert out.runtime["metadata"]["labels"] == {"trainer.kubeflow.org/framework": name}
        assert out.runtime["metadata"]["name"].startswith(f"{name}-v1-compat-")
        assert out.job["spec"]["runtimeRef"]["kind"] == "TrainingRuntime"
    else:
        found = refused(JOBS[name], "TJ110", rf"Trainer {trainer} has no mlPolicy.{name}", trainer)
        assert "--target 2.2 or later" in found.fix
        assert "v1 operator" in found.fix
        assert found.where is not None
        assert (found.where.path, found.where.line) == ("kind", 2)


@pytest.mark.parametrize("policy", ["jax", "xgboost", "mpi", "torch", "flux"])
@pytest.mark.parametrize("on", TARGETS, ids=str)
def test_the_table_of_targets_is_what_the_crd_says(policy: str, on: object) -> None:
    """`Target.policies` against the vendored schema of that version."""
    from trainjob.kube import schema

    trainer = target(str(on))
    node = schema.lookup(schema.raw("TrainingRuntime", trainer), ("spec", "mlPolicy"))
    assert node is not None
    assert (policy in node["properties"]) == (policy in trainer.policies)


def test_noop_for_a_pytorchjob() -> None:
    """It runs for the other kinds only: a PyTorchJob keeps the catalogue's runtime."""
    assert chain(v1()).runtime is None


def test_a_runtime_of_the_command_line_is_for_pytorchjobs() -> None:
    """`--runtime` is said not to hold, rather than dropped without a word."""
    from trainjob.kube import yaml
    from trainjob.migrate import migrate_text
    from trainjob.migrate.job import Options

    result = migrate_text(yaml.dump(jax()), options=Options(runtime="torch-distributed"))
    (note,) = [f for f in result.findings if f.code == "TJ916"]
    assert "is for PyTorchJobs; this JAXJob gets one of its own" in note.message
    assert "torch-distributed" not in result.text


def test_alike_jobs_share_a_runtime() -> None:
    """The name is of the content, so another job of the same shape names the same runtime."""
    one, two = chain(jax()), chain(jax(metadata={"name": "other"}, container={"command": ["python", "b.py"]}))
    assert one.runtime == two.runtime
    three: Obj = jax(container={"image": "reg.io/other:2"})
    assert chain(three).runtime != one.runtime
