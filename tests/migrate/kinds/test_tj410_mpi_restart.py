"""TJ410: restartPolicy of launcher and Workers."""

from __future__ import annotations

import pytest

from tests.migrate.kinds.support import chain, jax, mpi, refused
from trainjob.migrate.kinds import tj410_mpi_restart

RULE = tj410_mpi_restart.RULE


@pytest.mark.parametrize(
    ("launcher", "worker", "expected"),
    [
        (None, None, (("Never", 0), ("Never", 0))),
        ("OnFailure", None, (("OnFailure", 1000), ("Never", 0))),
        ("Never", "OnFailure", (("Never", 0), ("OnFailure", 1000))),
        ("ExitCode", "Always", (("Never", 0), ("OnFailure", 1000))),
    ],
)
def test_each_role_has_its_own(
    launcher: str | None, worker: str | None, expected: tuple[tuple[str, int], tuple[str, int]]
) -> None:
    """Never is the default of both; ExitCode restarted nothing in an MPIJob."""
    out = chain(mpi(launcher_role={"restartPolicy": launcher}, worker_role={"restartPolicy": worker}))
    found = tuple((out.pod(n)["restartPolicy"], out.batch(n)["backoffLimit"]) for n in ("launcher", "node"))
    assert found == expected
    assert all("podFailurePolicy" not in out.batch(n) for n in ("launcher", "node"))


def test_what_changes_is_told() -> None:
    """ExitCode, Always, and the pod template's own policy."""
    role = {"restartPolicy": "ExitCode"}
    out = chain(mpi(launcher_role=role, worker_role={"restartPolicy": "Always"}, worker_pod={"restartPolicy": "Never"}))
    out.says("TJ410", "note", "ExitCode becomes Never")
    out.says("TJ410", "warning", "Always becomes OnFailure")
    out.says("TJ410", "note", "the pod template's restartPolicy Never is ignored")


def test_backoff_limit_counts_where_pods_restart() -> None:
    """With Never it had no effect."""
    spec = {"runPolicy": {"backoffLimit": 3}}
    out = chain(mpi(launcher_role={"restartPolicy": "OnFailure"}, spec=spec))
    assert (out.batch("launcher")["backoffLimit"], out.batch("node")["backoffLimit"]) == (3, 0)
    chain(mpi(spec=spec)).says("TJ402", "note", "had no effect beside restartPolicy Never")


def test_unknown() -> None:
    """As v1's API says."""
    refused(mpi(launcher_role={"restartPolicy": "Sometimes"}), "TJ410", "no restartPolicy 'Sometimes'")


def test_noop_for_a_jaxjob() -> None:
    """TJ401 speaks there."""
    assert not any(f.code == "TJ410" for f in chain(jax()).findings)
