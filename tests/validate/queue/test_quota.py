"""What a ClusterQueue can ever give. Numbers as in Kueue's own resource_node_test.go, by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.validate.queue.objects import GPU, cluster_queue, cohort, flavor, local_queue, quotas, read
from trainjob.validate.queue.demand import PodSet
from trainjob.validate.queue.objects import Queues
from trainjob.validate.queue.quota import Mismatch, Refused, Short, Tree, assign


def gpus(nominal: int, name: str = "f", borrowing: int | None = None, lending: int | None = None) -> dict[str, object]:
    limits = {"borrowingLimit": borrowing, "lendingLimit": lending}
    return quotas({GPU: nominal}, name, {GPU: {k: str(v) for k, v in limits.items() if v is not None}})


def capacity(queues: Queues, name: str = "c") -> int:
    return Tree(queues).capacity(queues.cluster_queues[name], ("f", GPU))


@pytest.mark.parametrize(
    ("own", "lender", "most"),
    [
        (gpus(4), gpus(8), 12),
        (gpus(4, borrowing=0), gpus(8), 4),
        (gpus(4, borrowing=3), gpus(8), 7),
        (gpus(4, borrowing=30), gpus(8), 12),
        (gpus(4), gpus(8, lending=2), 6),
        (gpus(4, borrowing=1), gpus(8, lending=2), 5),
        (gpus(4, lending=1), gpus(8), 12),
        (gpus(4, lending=0), gpus(8, lending=0), 4),
        (gpus(0), gpus(8), 8),
    ],
)
def test_a_pair_in_a_cohort(own: dict[str, object], lender: dict[str, object], most: int) -> None:
    queues = read(cluster_queue("c", own, cohortName="t"), cluster_queue("d", lender, cohortName="t"))
    assert capacity(queues) == most


def test_alone() -> None:
    assert capacity(read(cluster_queue("c", gpus(4)), cluster_queue("d", gpus(8)))) == 4


def test_quota_of_the_cohort_and_of_the_one_above() -> None:
    objects = [
        cluster_queue("c", gpus(4), cohortName="t"),
        cohort("t", gpus(2), parentName="top"),
        cohort("top", gpus(8)),
    ]
    assert capacity(read(*objects)) == 14
    objects[1] = cohort("t", gpus(2, borrowing=1), parentName="top")
    assert capacity(read(*objects)) == 7
    objects[1] = cohort("t", gpus(2, lending=0), parentName="top")
    assert capacity(read(*objects)) == 14


def test_a_sibling_cohort_lends_through_the_top() -> None:
    queues = read(
        cluster_queue("c", gpus(1), cohortName="left"),
        cluster_queue("d", gpus(8, lending=5), cohortName="right"),
        cohort("left", parentName="top"),
        cohort("right", gpus(0, lending=3), parentName="top"),
    )
    assert capacity(queues) == 4


def test_names_of_v1beta1() -> None:
    one, two = cluster_queue("c", gpus(4), cohort="t"), cluster_queue("d", gpus(8), cohort="t")
    for o in (one, two):
        o["apiVersion"] = "kueue.x-k8s.io/v1beta1"
    assert capacity(read(one, two)) == 12


def test_a_circle_of_cohorts() -> None:
    queues = read(cluster_queue("c", gpus(4), cohortName="a"), cohort("a", parentName="b"), cohort("b", parentName="a"))
    assert Tree(queues).cycle(queues.cluster_queues["c"])


@given(
    st.lists(
        st.tuples(st.integers(0, 16), st.none() | st.integers(0, 16), st.none() | st.integers(0, 16)),
        min_size=1, max_size=5,
    ),
    st.integers(0, 16),
)  # fmt: skip
def test_capacity_of_a_flat_cohort(members: list[tuple[int, int | None, int | None]], pool: int) -> None:
    """min(nominal + borrowingLimit, nominal + what the others lend + the pool), for each member."""
    objects = [
        cluster_queue(f"q{i}", gpus(nominal, borrowing=borrowing, lending=lending), cohortName="t")
        for i, (nominal, borrowing, lending) in enumerate(members)
    ]
    queues = read(*objects, cohort("t", gpus(pool)))
    lent = [nominal if lending is None else min(nominal, lending) for nominal, _, lending in members]
    for i, (nominal, borrowing, _) in enumerate(members):
        most = nominal + sum(lent) - lent[i] + pool
        assert capacity(queues, f"q{i}") == (most if borrowing is None else min(most, nominal + borrowing))


def podset(name: str, count: int, **each: int) -> PodSet:
    return PodSet(name, count, {GPU if r == "gpu" else r: a for r, a in each.items()})


def assigned(queues: Queues, *podsets: PodSet) -> dict[str, dict[str, str]] | Refused:
    result = assign(podsets, queues.cluster_queues["c"], queues)
    return result.refused or result.flavors


def test_the_first_flavor_that_fits() -> None:
    queues = read(cluster_queue("c", gpus(2, "small"), gpus(8, "large")))
    assert assigned(queues, podset("node", 1, gpu=2)) == {"node": {GPU: "small"}}
    assert assigned(queues, podset("node", 2, gpu=2)) == {"node": {GPU: "large"}}
    refused = assigned(queues, podset("node", 5, gpu=2))
    assert isinstance(refused, Refused)
    assert refused.reasons == (Short("small", GPU, 10, 2, 2), Short("large", GPU, 10, 8, 8))


def test_earlier_pod_sets_count() -> None:
    queues = read(cluster_queue("c", gpus(4)))
    first = podset("launcher", 1, gpu=1)
    refused = assigned(queues, first, podset("node", 2, gpu=2))
    assert isinstance(refused, Refused)
    assert refused.reasons == (Short("f", GPU, 5, 4, 4, (first,)),)


def test_pod_sets_may_have_different_flavors() -> None:
    queues = read(cluster_queue("c", gpus(2, "small"), gpus(8, "large")))
    both = assigned(queues, podset("launcher", 1, gpu=2), podset("node", 1, gpu=2))
    assert both == {"launcher": {GPU: "small"}, "node": {GPU: "large"}}


def test_another_flavor_before_borrowing_when_the_queue_says_so() -> None:
    patient = {"flavorFungibility": {"whenCanBorrow": "TryNextFlavor"}}
    others = [cluster_queue("d", gpus(8, "a"), cohortName="t")]
    for fungibility, flavor_name in (({}, "a"), (patient, "b")):
        queues = read(cluster_queue("c", gpus(0, "a"), gpus(4, "b"), cohortName="t", **fungibility), *others)
        assert assigned(queues, podset("node", 1, gpu=4)) == {"node": {GPU: flavor_name}}
    queues = read(cluster_queue("c", gpus(0, "a"), gpus(2, "b"), cohortName="t", **patient), *others)
    assert assigned(queues, podset("node", 1, gpu=4)) == {"node": {GPU: "a"}}


def test_what_is_not_covered() -> None:
    queues = read(cluster_queue("c", gpus(4)))
    refused = assigned(queues, podset("node", 1, gpu=1, cpu=1000))
    assert isinstance(refused, Refused)
    assert refused.uncovered == "cpu"
    assert assigned(queues, podset("node", 1, gpu=1, cpu=0)) == {"node": {GPU: "f"}}


def test_pods_are_counted_where_they_are_covered() -> None:
    queues = read(cluster_queue("c", quotas({GPU: 8, "pods": 2})))
    assert assigned(queues, podset("node", 2, gpu=1)) == {"node": {GPU: "f", "pods": "f"}}
    assert isinstance(assigned(queues, podset("node", 3, gpu=1)), Refused)


def test_groups_choose_flavors_of_their_own() -> None:
    queue = cluster_queue("c", gpus(4, "gpu"))
    queue["spec"]["resourceGroups"].append({"coveredResources": ["cpu"], "flavors": [quotas({"cpu": 8}, "any")]})
    assert assigned(read(queue), podset("node", 1, gpu=1, cpu=1000)) == {"node": {GPU: "gpu", "cpu": "any"}}


def test_topology() -> None:
    topology = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Topology", "metadata": {"name": "t"}}
    topology["spec"] = {"levels": [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]}
    racks, none = flavor("racks", topologyName="t"), flavor("none")

    def ask(level: str | None) -> PodSet:
        annotations = {} if level is None else {"kueue.x-k8s.io/podset-required-topology": level}
        return PodSet("node", 1, {GPU: 1}, {}, annotations)

    def why(queues: Queues, level: str | None) -> str:
        refused = assigned(queues, ask(level))
        return refused.reasons[0].why if isinstance(refused, Refused) and isinstance(
            refused.reasons[0], Mismatch
        ) else ""  # fmt: skip

    only = read(cluster_queue("c", gpus(4, "racks")), racks, topology, local_queue())
    assert why(only, "rack") == why(only, None) == ""
    assert "no level block, only rack, kubernetes.io/hostname" in why(only, "block")
    assert why(read(cluster_queue("c", gpus(4, "none")), none), "rack").endswith("the flavor has none")
    mixed = read(cluster_queue("c", gpus(4, "racks"), gpus(0, "none")), racks, none, topology)
    assert why(mixed, "rack") == ""
    assert "takes only pods that ask for one" in why(mixed, None)
