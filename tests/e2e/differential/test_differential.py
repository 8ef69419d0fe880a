"""The same jobs under the v1 Training Operator and, migrated, under Trainer v2: what differs is explained."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.cluster.context import Context
from tests.e2e.differential import image, page, plants, recorded
from tests.e2e.differential.api import Api, proxy
from tests.e2e.differential.judge import judge, seen
from tests.e2e.differential.rows import EXPLANATIONS
from tests.e2e.differential.run import Outcome, Runner
from tests.e2e.differential.setup import prepared
from tests.e2e.differential.shapes import SHAPES
from tests.e2e.kube import Kubectl

pytestmark = [pytest.mark.differential]
NAMES = [pytest.param(s.name, marks=pytest.mark.ci if s.ci else pytest.mark.full) for s in SHAPES]


@pytest.fixture(scope="session")
def api(cluster: Kubectl) -> Iterator[Api]:
    """The cluster with the probe's image, the product's runtimes and a queue."""
    image.ensure(Context(os.environ.get("CLUSTER", "trainjob")))
    with proxy(cluster) as api, prepared(api, cluster, SHAPES):
        yield api


@pytest.fixture(scope="session")
def results(api: Api, request: pytest.FixtureRequest) -> dict[str, Outcome]:
    """Every shape that a selected test asks for, run on both sides, several at a time."""
    wanted = {i.callspec.params.get("name") for i in request.session.items if hasattr(i, "callspec")}
    return Runner(api).run([shape for shape in SHAPES if shape.name in wanted])


@pytest.mark.parametrize("name", NAMES)
def test_nothing_differs_without_a_reason(name: str, results: dict[str, Outcome]) -> None:
    """A job runs under v1 and, migrated, under v2; each difference has its row in migration/DIFFERENCES.md."""
    outcome = results[name]
    assert outcome.error == ""
    assert outcome.v1.refused == "", "the v1 API server refuses the input"
    assert outcome.v2.refused == "", "Trainer's API server refuses the migrated job"
    verdict = judge(outcome)
    assert verdict.unexplained == (), f"differences that nothing explains:\n{verdict.table()}"


@pytest.mark.full
def test_every_explanation_is_needed(results: dict[str, Outcome], request: pytest.FixtureRequest) -> None:
    """A full run sees each row of migration/DIFFERENCES.md at least once, and writes the page when asked to."""
    if len(results) < len(SHAPES):
        pytest.fail("run the whole file: a part of the shapes cannot tell which rows are stale")
    clean = [o for o in results.values() if not (o.error or o.v1.refused or o.v2.refused)]
    found = seen(judge(outcome) for outcome in clean)
    stale = [row.id for row in EXPLANATIONS if row.id not in found]
    assert stale == []
    if request.config.getoption("--write-evidence") or os.environ.get("WRITE_DIFFERENCES"):
        page.PAGE.write_text(page.render(found), encoding="utf-8")
        recorded.write(results)


@pytest.mark.full
def test_planted_wrong_migrations_are_found(api: Api) -> None:
    """A correct migration passes; broken in eight ways, on the cluster, the comparison names each."""
    base = plants.base()
    shapes = [base, *(replace(base, name=f"planted/{name}") for name in plants.PLANTS)]
    changes = {f"planted/{name}": change for name, (change, _) in plants.PLANTS.items()}
    outcomes = Runner(api).run(shapes, changes)
    assert judge(outcomes[base.name]).unexplained == (), judge(outcomes[base.name]).table()
    for name, (_, path) in plants.PLANTS.items():
        outcome = outcomes[f"planted/{name}"]
        assert (outcome.error, outcome.v2.refused) == ("", "")
        found = [difference.what for difference in judge(outcome).unexplained]
        assert path in found, f"the plant {name} shows as {found}"
