"""What a TrainJob asks, against sums made by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.validate.queue.objects import GPU, each, job, runtime
from trainjob.targets import DEFAULT, target
from trainjob.validate.queue import demand
from trainjob.validate.queue.demand import Defaults, total

GI = 2**30


def small(**resources: Any) -> dict[str, Any]:
    return {"name": "x", "image": "a/b:1", **resources}


def test_nodes_times_each() -> None:
    (node,) = demand(job(3), runtime(), DEFAULT)
    assert (node.name, node.count) == ("node", 3)
    assert node.total == {"cpu": 3000, "memory": 3 * GI, "ephemeral-storage": 3 * GI, GPU: 6}


def test_the_runtimes_number_of_nodes() -> None:
    made = runtime()
    made["spec"]["mlPolicy"]["numNodes"] = 4
    plain = job()
    del plain["spec"]["trainer"]["numNodes"]
    assert demand(plain, made, DEFAULT)[0].count == 4


def test_resources_of_the_job_replace_those_of_the_runtime() -> None:
    """Kueue up to 0.19 computes as Trainer 2.2 does, also where Trainer 2.3 merges."""
    own = job(2, resourcesPerNode={"requests": {"cpu": "2"}})
    assert total(demand(own, runtime(), DEFAULT)) == {"cpu": 4000}
    real = total(demand(own, runtime(), DEFAULT, as_kueue=False))
    assert real[GPU] == 4
    assert total(demand(own, runtime(), target("2.2"), as_kueue=False)) == {"cpu": 4000}


def test_limits_stand_in_for_requests() -> None:
    made = runtime({"limits": {GPU: "2", "cpu": "1"}, "requests": {"cpu": "500m"}})
    assert total(demand(job(), made, DEFAULT)) == {GPU: 2, "cpu": 500}


def test_a_limit_range_fills_in() -> None:
    """Its requests come before the limits of the container; its limits come last."""
    defaults = Defaults(limits={"cpu": "4", "memory": "2Gi"}, requests={"cpu": "3"})
    assert total(demand(job(), runtime({"limits": {"cpu": "1"}}), DEFAULT, defaults)) == {"cpu": 3000, "memory": 2 * GI}
    assert total(demand(job(), runtime({"requests": {"cpu": "1"}}), DEFAULT, defaults))["cpu"] == 1000


@pytest.mark.parametrize(
    ("pod", "cpu"),
    [
        ({}, 1000),
        ({"initContainers": [small(resources=each(0, cpu="3"))]}, 3000),
        ({"initContainers": [small(resources=each(0, cpu="500m"))]}, 1000),
        ({"initContainers": [small(restartPolicy="Always", resources=each(0, cpu="3"))]}, 4000),
        (
            {
                "initContainers": [
                    small(restartPolicy="Always", resources=each(0, cpu="1")),
                    small(resources=each(0, cpu="5")),
                ]
            },
            6000,
        ),
        ({"overhead": {"cpu": "250m"}}, 1250),
        ({"resources": {"requests": {"cpu": "8"}}}, 8000),
    ],
)
def test_a_pod(pod: dict[str, Any], cpu: int) -> None:
    assert total(demand(job(), runtime(None, **pod), DEFAULT))["cpu"] == cpu


def test_initializers_are_reserved_with_the_trainer() -> None:
    loader = {
        "name": "dataset-initializer",
        "template": {"spec": {"template": {"spec": {"containers": [small(resources=each(0, cpu="2"))]}}}},
    }
    podsets = demand(job(2), runtime(None, loader), DEFAULT)
    assert [(p.name, p.count) for p in podsets] == [("dataset-initializer", 1), ("node", 2)]
    assert total(podsets)["cpu"] == 4000


def test_replicas_multiply() -> None:
    made = runtime()
    made["spec"]["template"]["spec"]["replicatedJobs"][0]["replicas"] = 2
    assert demand(job(3), made, DEFAULT)[0].count == 6


@pytest.mark.parametrize("version", ["2.1", "2.2", "2.3"])
def test_topology_of_the_runtime_and_of_the_job(version: str) -> None:
    made = runtime(annotations={"kueue.x-k8s.io/podset-preferred-topology": "rack"})
    assert demand(job(), made, target(version))[0].topology == "rack"
    assert demand(job(), runtime(), target(version))[0].topology is None
    asked = {"metadata": {"annotations": {"kueue.x-k8s.io/podset-required-topology": "block"}}}
    own = job()
    if version == "2.1":
        own["spec"]["podTemplateOverrides"] = [{"targetJobs": [{"name": "node"}], **asked}]
    else:
        entry = {"name": "node", "template": {"spec": {"template": asked}}}
        spec = {"template": {"spec": {"replicatedJobs": [entry]}}}
        own["spec"]["runtimePatches"] = [{"manager": "a.io/b", "trainingRuntimeSpec": spec}]
    assert demand(own, runtime(), target(version))[0].topology == "block"
    anywhere = runtime(annotations={"kueue.x-k8s.io/podset-unconstrained-topology": "true"})
    assert demand(job(), anywhere, target(version))[0].topology == ""


def test_not_a_quantity() -> None:
    with pytest.raises(ValueError, match="many"):
        demand(job(), runtime({"requests": {"cpu": "many"}}), DEFAULT)


AMOUNTS = st.fixed_dictionaries(
    {"cpu": st.integers(1, 64_000).map(lambda m: f"{m}m"), "memory": st.integers(1, 512).map(lambda g: f"{g}Gi")},
    optional={GPU: st.integers(1, 8).map(str)},
)


@given(nodes=st.integers(1, 64), containers=st.lists(AMOUNTS, min_size=1, max_size=3), sidecar=st.none() | AMOUNTS)
def test_sum_is_that_of_a_hand_computation(
    nodes: int, containers: list[dict[str, str]], sidecar: dict[str, str] | None
) -> None:
    made = runtime({"requests": containers[0]})
    pod = made["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    pod["containers"] += [{"name": f"s{i}", "resources": {"limits": c}} for i, c in enumerate(containers[1:])]
    together = list(containers)
    if sidecar is not None:
        pod["initContainers"] = [{"name": "side", "restartPolicy": "Always", "resources": {"requests": sidecar}}]
        together.append(sidecar)
    expected = {
        "cpu": nodes * sum(int(c["cpu"].removesuffix("m")) for c in together),
        "memory": nodes * sum(int(c["memory"].removesuffix("Gi")) for c in together) * GI,
    }
    gpus = nodes * sum(int(c.get(GPU, 0)) for c in together)
    got = total(demand(job(nodes), made, DEFAULT))
    assert {r: got[r] for r in expected} == expected
    assert got.get(GPU, 0) == gpus
