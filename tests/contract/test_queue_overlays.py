"""The components of Kueue objects: what they render, and the faults that the policy finds in them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tools import check_overlays as policy
from trainjob.builder import train_job
from trainjob.catalog import catalog
from trainjob.kube.yaml import load
from trainjob.kustomize import Engine, build
from trainjob.targets import DEFAULT
from trainjob.validate.queue import Queues, Verdict, check_queues

pytestmark = pytest.mark.kubectl

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "overlays/examples/queues"

Golden = Callable[[Path | str, str | bytes], None]


@pytest.fixture(scope="module")
def example(newest_engine: Engine) -> bytes:
    return build(EXAMPLE, newest_engine)


@pytest.fixture
def shop(newest_engine: Engine, tmp_path: Path) -> policy.Workshop:
    return policy.Workshop(policy.Repository(ROOT), tmp_path, newest_engine)


def probe(shop: policy.Workshop, *components: str) -> bytes:
    data = {"apiVersion": policy.HEAD["Kustomization"], "kind": "Kustomization"}
    shop.write("overlays/mine", data | {"components": [f"../components/{c}" for c in components]})
    return shop.render("overlays/mine")


def queues(rendered: bytes) -> Queues:
    return Queues.read(load(rendered.decode(), "queues.yaml"))


def verdict(given: Queues, runtime: str, team: str = "team-a", **options: Any) -> Verdict:
    job = train_job(name="j", runtime=runtime, namespace=team, queue="training", command=["python"], **options)
    known = {name: catalog()[name].manifest for name in catalog()}
    (only,) = check_queues([job.manifest], given, DEFAULT, known)
    return only


def test_golden(example: bytes, golden: Golden) -> None:
    golden("overlays/examples-queues.yaml", example)


def test_with_topology_golden(shop: policy.Workshop, golden: Golden) -> None:
    golden("overlays/queues-topology.yaml", probe(shop, "queues", "queues-team-a", "topology"))


def test_oldest_and_newest_engine_agree(example: bytes, oldest_engine: Engine, shop: policy.Workshop) -> None:
    assert build(EXAMPLE, oldest_engine) == example
    newest = probe(shop, "queues", "queues-team-a", "queues-team-b", "topology")
    shop.engine = oldest_engine
    assert probe(shop, "queues", "queues-team-a", "queues-team-b", "topology") == newest


def test_the_patches_of_the_example_reach_their_numbers(example: bytes) -> None:
    gpus = {name: node.quotas["train-gpu", "nvidia.com/gpu"] for name, node in queues(example).cluster_queues.items()}
    assert (gpus["team-a"].nominal, gpus["team-a"].borrowing, gpus["team-a"].lending) == (16, 8, 6)
    assert (gpus["team-b"].nominal, gpus["team-b"].borrowing, gpus["team-b"].lending) == (8, 8, None)


def test_every_single_node_runtime_can_run_in_a_team(shop: policy.Workshop) -> None:
    """All four resources are covered, a CPU job finds the CPU flavor, and eight GPUs fit."""
    for components in (("queues", "queues-team-a"), ("queues", "queues-team-a", "topology")):
        given = queues(probe(shop, *components))
        for name in catalog():
            runtime = catalog()[name]
            if runtime.topology == "single-node" and runtime.resources:
                found = verdict(given, name)
                assert found.admitted, [f.message for f in found.findings]


def test_two_nodes_need_what_others_lend(example: bytes, shop: policy.Workshop) -> None:
    reason = {"allow_multi_node": "70B does not fit", "nodes": 2}
    assert verdict(queues(example), "torch-fsdp-multinode", "team-a", **reason).admitted
    refused = verdict(queues(probe(shop, "queues", "queues-team-a", "queues-team-b")), "torch-fsdp-multinode", **reason)
    numbers = next(f.message for f in refused.findings if "nvidia.com/gpu" in f.message)
    assert "2 x 8 = 16 nvidia.com/gpu" in numbers
    assert "is 14 (nominal 8, borrowing 6)" in numbers


def test_teams_differ_in_name_only() -> None:
    a, b = (ROOT / "overlays/components" / f"queues-team-{x}" for x in "ab")
    files = sorted(f.name for f in a.iterdir())
    assert files == sorted(f.name for f in b.iterdir())
    for name in files:
        assert (a / name).read_text("utf-8").replace("team-a", "team-b") == (b / name).read_text("utf-8").replace(
            "team-a", "team-b"
        )


def test_namespaces_are_what_openshift_and_the_queues_select(example: bytes) -> None:
    given = queues(example)
    assert given.namespaces.keys() == given.cluster_queues.keys() == {"team-a", "team-b"}
    for name, found in given.namespaces.items():
        assert found["metadata"]["labels"] == {"kueue.openshift.io/managed": "true"}
        assert verdict(given, "torch-fsdp-1gpu", name).admitted


def test_priorities(example: bytes) -> None:
    values = {
        d["metadata"]["name"]: d["value"] for d in policy.objects(example) if d["kind"] == "WorkloadPriorityClass"
    }
    assert values["train-high"] > values["train-normal"] == 0 > values["train-low"]


TEAM = "overlays/components/queues-team-a/clusterqueue.yaml"
FAULTS = {
    "cohort": (TEAM, "cohortName: training", "cohortName: trainign", "needs Cohort trainign"),
    "flavor": (TEAM, "- name: train-cpu", "- name: train-cpus", "needs ResourceFlavor train-cpus"),
    "covered": (TEAM, "ephemeral-storage\n", "ephemeral\n", "does not cover ephemeral-storage"),
    "queue": (
        "overlays/components/queues-team-a/localqueue.yaml", "clusterQueue: team-a", "clusterQueue: team", "needs Clu",
    ),
    "namespace": ("overlays/components/queues-team-a/namespace.yaml", "name: team-a", "name: team", "needs Namespace"),
    "other kind": (
        "overlays/components/queues/cohort.yaml", "apiVersion", "kind: Secret\nmetadata: {name: s}\n---\napiVersion",
        "renders Secret s",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_policy_reports(shop: policy.Workshop, newest_engine: Engine, fault: str) -> None:
    file, old, new, text = FAULTS[fault]
    path = shop.root / file
    before = path.read_text("utf-8")
    assert old in before
    at = before.index(old)
    path.write_text(before[:at] + new + before[at + len(old) :], encoding="utf-8")
    repo = policy.Repository(shop.root)
    layer = repo.at(shop.root / "overlays/examples/queues")
    assert layer is not None
    (shop.root / "copy").mkdir()
    broken = list(policy.outcomes(repo, policy.Workshop(repo, shop.root / "copy", newest_engine)))
    assert any(text in line and "examples/queues" in line for line in broken), broken


def test_policy_reports_topology_before_queues(shop: policy.Workshop, newest_engine: Engine) -> None:
    """kustomize ends with exit code 0 and gives no flavor a topology."""
    assert b"topologyName" not in probe(shop, "topology", "queues")
    nobody = {
        "target": {"kind": "ClusterQueue", "name": "team-z"},
        "patch": "- {op: test, path: /kind, value: ClusterQueue}",
    }
    shop.write(
        "overlays/examples/queues",
        {
            "apiVersion": policy.HEAD["Kustomization"],
            "kind": "Kustomization",
            "components": [f"../../components/{c}" for c in ("queues", "queues-team-a")],
            "patches": [nobody],
        },
    )
    for folder in (shop.root / "overlays").glob("components/*"):  # the others have a test of their own
        if not folder.name.startswith(("queues", "topology", "multi-node")):
            shutil.rmtree(folder)
    for folder in (*(shop.root / "overlays").glob("*/"), *(shop.root / "overlays/examples").glob("*/")):
        if folder.name not in ("components", "examples", "queues"):
            shutil.rmtree(folder)
    repo = policy.Repository(shop.root)
    (shop.root / "copy").mkdir()
    broken = list(policy.effects(repo, policy.Workshop(repo, shop.root / "copy", newest_engine)))
    assert any("examples/queues: patches[0] changes nothing" in line for line in broken), broken
