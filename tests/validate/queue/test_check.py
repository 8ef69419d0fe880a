"""Every finding about queues: the fault, and beside it the job that is left alone."""

from __future__ import annotations

from typing import Any

import pytest

from tests.validate.queue.objects import (
    GPU,
    WIDE,
    cluster_queue,
    codes,
    cohort,
    each,
    flavor,
    job,
    kueue,
    local_queue,
    namespace,
    plain,
    quotas,
    read,
    runtime,
    verdict,
)
from trainjob.findings import Severity
from trainjob.targets import target
from trainjob.validate import BY_CODE, QUEUE_CHECKS
from trainjob.validate.queue import Queues, check_queues
from trainjob.validate.queue.demand import total

QUEUE = "kueue.x-k8s.io/queue-name"
PRIORITY = "kueue.x-k8s.io/priority-class"


def message(queues: Queues, *args: Any, **kwargs: Any) -> str:
    (finding,) = verdict(queues, *args, **kwargs).findings
    return finding.message


class TestTooLarge:
    def test_the_numbers(self) -> None:
        found = verdict(plain(), job(3))
        (finding,) = found.findings
        assert finding.message == (
            "queue q: this job asks 3 x 2 = 6 nvidia.com/gpu, the most that ClusterQueue c can ever give is 4 "
            "(nominal 4, borrowing 0): it would stay Suspended"
        )
        assert finding.fix == "set spec.trainer.numNodes to 2, which fits"
        assert (finding.code, finding.severity, finding.subject) == ("TJ601", Severity.ERROR, "TrainJob/j")
        assert finding.where is not None
        assert finding.where.path == f'metadata.labels["{QUEUE}"]'
        assert not found.admitted

    def test_what_fits_is_said(self) -> None:
        found = verdict(plain(), job(2))
        assert found.admitted
        assert not found.findings
        assert found.text() == (
            "j asks queue q for 4 nvidia.com/gpu, 2 cpu, 2Gi ephemeral-storage, 2Gi memory in 2 pods: "
            "ClusterQueue c can give that"
        )
        assert found.to_dict()["total"][GPU] == "4"
        assert found.to_dict()["podSets"] == [
            {"name": "node", "count": 2, "each": {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi", GPU: "2"}}
        ]

    def test_one_pod_needs_no_product(self) -> None:
        assert "asks 8 nvidia.com/gpu, the most" in message(plain(), job(), runtime(each(8)))

    def test_every_resource_that_is_too_small(self) -> None:
        queues = plain(amounts={**WIDE, "memory": "2Gi"})
        assert [f.message.split("asks ")[1].split(",")[0] for f in verdict(queues, job(3)).findings] == [
            "3 x 1Gi = 3Gi memory",
            "3 x 2 = 6 nvidia.com/gpu",
        ]

    def test_borrowing_is_counted(self) -> None:
        other = cluster_queue("d", quotas({**WIDE, GPU: 8}, limits={GPU: {"lendingLimit": "1"}}), cohortName="t")
        assert verdict(plain(other, cohortName="t", amounts={**WIDE, GPU: 5}), job(3)).admitted
        assert "is 5 (nominal 4, borrowing 1)" in message(plain(other, cohortName="t"), job(3))

    def test_pod_sets_are_summed(self) -> None:
        spec = {"containers": [{"name": "x", "resources": {"limits": {"cpu": "90"}}}]}
        loader = {"name": "dataset-initializer", "template": {"spec": {"template": {"spec": spec}}}}
        text = message(plain(), job(1), runtime(each(1, cpu="20"), loader))
        assert "asks 1 x 90 + 1 x 20 = 110 cpu" in text

    def test_the_flavor_that_is_meant(self) -> None:
        """The CPU flavor gives no GPUs, so it is not the one to speak of."""
        queue = cluster_queue("c", quotas({**WIDE, GPU: 0}, "cpus"), quotas({**WIDE, GPU: 4}, "gpus"))
        queues = read(flavor("cpus"), flavor("gpus"), queue, local_queue())
        assert "can ever give in flavor gpus is 4" in message(queues, job(3))

    def test_another_queue_of_the_namespace(self) -> None:
        big = cluster_queue("big", quotas({**WIDE, GPU: 64}))
        there, elsewhere = local_queue("large", "big"), local_queue("far", "big", "other")
        (finding,) = verdict(plain(big, there, elsewhere), job(3)).findings
        assert finding.fix == ("set spec.trainer.numNodes to 2, which fits or use queue large, which can give that")
        stopped = cluster_queue("big", quotas({**WIDE, GPU: 64}), stopPolicy="Hold")
        (finding,) = verdict(plain(stopped, there), job(1), runtime(each(8))).findings
        assert finding.fix.startswith("use a smaller runtime")

    def test_pods_as_a_resource(self) -> None:
        assert "asks 3 pods, the most" in message(plain(amounts={**WIDE, GPU: 64, "pods": 2}), job(3))


class TestQueueObjects:
    def test_not_covered(self) -> None:
        amounts = {r: q for r, q in WIDE.items() if r != "ephemeral-storage"}
        (finding,) = verdict(plain(amounts=amounts)).findings
        assert finding.code == "TJ602"
        assert "ClusterQueue c covers no ephemeral-storage, which node requests" in finding.message
        config = {
            "apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration",
            "resources": {"excludeResourcePrefixes": ["ephemeral-"]},
        }  # fmt: skip
        assert verdict(plain(config, amounts=amounts)).admitted

    def test_no_local_queue(self) -> None:
        (finding,) = verdict(plain(), job(labels={QUEUE: "z"})).findings
        assert (finding.code, finding.fix) == ("TJ603", "use q")
        assert finding.message == "there is no LocalQueue z in namespace team: the job would stay Suspended"
        (finding,) = verdict(plain(), job(where="lab")).findings
        assert "in namespace lab; it is in team" in finding.message

    def test_a_job_without_namespace(self) -> None:
        assert verdict(plain(), job(where="")).namespace == "team"
        assert verdict(plain(), job(where=""), ns="lab").namespace == "lab"
        two = plain(local_queue(namespace="lab"))
        assert codes(verdict(two, job(where=""))) == ["TJ611", "TJ603"]
        assert verdict(two, job(where=""), ns="lab").admitted

    def test_no_cluster_queue(self) -> None:
        assert codes(verdict(plain(local_queue("p", "gone")), job(labels={QUEUE: "p"}))) == ["TJ604"]

    @pytest.mark.parametrize("policy", ["Hold", "HoldAndDrain"])
    def test_stopped(self, policy: str) -> None:
        assert codes(verdict(plain(stopPolicy=policy))) == ["TJ605"]
        assert codes(verdict(plain(local_queue(stopPolicy=policy)))) == ["TJ605"]
        assert verdict(plain(stopPolicy="None")).admitted

    def test_inactive(self) -> None:
        one = cluster_queue("c", quotas(WIDE, "gone"))
        assert "no ResourceFlavor gone" in message(read(flavor(), one, local_queue()))
        tas = flavor(topologyName="t", nodeLabels={"a": "b"})
        assert "no Topology t" in message(read(tas, cluster_queue("c", quotas(WIDE)), local_queue()))
        circle = cohort("x", parentName="x")
        assert "form a circle" in message(plain(circle, cohortName="x"))

    def test_namespace_selector(self) -> None:
        chosen = {"namespaceSelector": {"matchLabels": {"team": "nlp"}}}
        assert verdict(plain(namespace(team="nlp"), **chosen)).admitted
        found = verdict(plain(namespace(team="cv"), **chosen))
        assert codes(found) == ["TJ606"]
        assert "takes namespaces with team=nlp; team is none of them" in found.findings[0].message
        assert "has no namespaceSelector" in message(plain(namespaceSelector=None))
        by_name = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "team"}}}
        assert verdict(plain(**by_name)).admitted
        assert not verdict(plain(local_queue(namespace="lab"), **by_name), job(where="lab")).admitted

    def test_namespace_that_is_not_given(self) -> None:
        found = verdict(plain(namespaceSelector={"matchLabels": {"team": "nlp"}}))
        assert codes(found) == ["TJ611"]
        assert "Namespace team" in found.findings[0].message
        assert found.admitted

    def test_openshift_passes_an_unlabelled_namespace_over(self) -> None:
        operator = {"apiVersion": "kueue.openshift.io/v1", "kind": "Kueue", "metadata": {"name": "cluster"}}
        (finding,) = verdict(plain(operator, namespace())).findings
        assert finding.code == "TJ606"
        assert finding.fix == "kubectl label namespace team kueue.openshift.io/managed=true"
        labelled = namespace(**{"kueue.openshift.io/managed": "true"})
        assert verdict(plain(operator, labelled)).admitted

    def test_priority(self) -> None:
        asked = job(labels={QUEUE: "q", PRIORITY: "high"})
        high = kueue("WorkloadPriorityClass", "high")
        assert verdict(plain(high), asked).admitted
        assert codes(verdict(plain(kueue("WorkloadPriorityClass", "low")), asked)) == ["TJ607"]
        assert codes(verdict(plain(), asked)) == ["TJ611"]

    def test_flavors_that_are_not_given(self) -> None:
        found = verdict(read(cluster_queue("c", quotas(WIDE)), local_queue()))
        assert codes(found) == ["TJ611"]
        assert found.admitted

    def test_transformations_are_not_guessed(self) -> None:
        config = {
            "apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration",
            "resources": {"transformations": [{"input": GPU, "outputs": {"credits": 1}}]},
        }  # fmt: skip
        assert "resource transformations" in message(plain(config))


class TestJob:
    def test_no_queue(self) -> None:
        (finding,) = verdict(plain(), job(labels={})).findings
        assert (finding.code, finding.fix) == ("TJ612", f"add the label {QUEUE}: q")

    def test_the_default_queue(self) -> None:
        found = verdict(plain(local_queue("default")), job(labels={}))
        assert found.admitted
        assert found.queue == "default"

    @pytest.mark.parametrize(
        ("place", "path"),
        [
            ("the runtime", ("metadata",)),
            ("the runtime's JobSet template", ("spec", "template", "metadata")),
            (
                "the pods of job node in the runtime",
                ("spec", "template", "spec", "replicatedJobs", 0, "template", "spec", "template", "metadata"),
            ),
        ],
    )
    def test_a_label_that_kueue_does_not_read(self, place: str, path: tuple[Any, ...]) -> None:
        made: Any = runtime()
        at = made
        for key in path:
            at = at.setdefault(key, {}) if isinstance(at, dict) else at[key]
        at["labels"] = {QUEUE: "q"}
        (finding,) = verdict(plain(), job(labels={}), made).findings
        assert finding.code == "TJ608"
        assert f"is on {place}, where" in finding.message
        assert verdict(plain(), job(), made).admitted

    def test_the_old_annotation(self) -> None:
        old = job(labels={})
        old["metadata"]["annotations"] = {QUEUE: "q"}
        assert "is on an annotation" in message(plain(), old)

    def test_no_flavor(self) -> None:
        taint = {"key": "spot", "value": "yes", "effect": "NoSchedule"}
        queues = read(flavor(nodeTaints=[taint]), cluster_queue("c", quotas(WIDE)), local_queue())
        assert codes(verdict(queues)) == ["TJ609"]
        assert "f: the taint spot=yes:NoSchedule of the flavor is not tolerated" in message(queues)
        tolerant = runtime(None, tolerations=[{"key": "spot", "operator": "Exists"}])
        assert verdict(queues, None, tolerant).admitted
        labelled = read(flavor(nodeLabels={"pool": "a"}), cluster_queue("c", quotas(WIDE)), local_queue())
        assert "node selector" in message(labelled, None, runtime(None, nodeSelector={"pool": "b"}))
        assert verdict(labelled, None, runtime(None, nodeSelector={"pool": "a"})).admitted

    def test_a_topology_beside_a_flavor_without_gpus(self) -> None:
        """Of the two reasons the one that can be mended is said."""
        topology = kueue("Topology", "t", {"levels": [{"nodeLabel": "kubernetes.io/hostname"}]})
        queue = cluster_queue("c", quotas({**WIDE, GPU: 0}, "cpus"), quotas({**WIDE, GPU: 4}, "gpus"))
        queues = read(flavor("cpus"), flavor("gpus", topologyName="t"), topology, queue, local_queue())
        (finding,) = verdict(queues).findings
        assert finding.code == "TJ609"
        assert "gpus: the flavor has a topology, and takes only pods that ask for one" in finding.message
        asks = {"kueue.x-k8s.io/podset-preferred-topology": "kubernetes.io/hostname"}
        assert verdict(queues, None, runtime(annotations=asks)).admitted

    def test_miscounted(self) -> None:
        """The runtime's GPUs, forgotten in resourcesPerNode: 2.3 keeps them, Kueue counts none."""
        forgot = job(2, resourcesPerNode={"requests": {"cpu": "2"}, "limits": {"cpu": "2"}})
        found = verdict(plain(), forgot)
        assert codes(found) == ["TJ610"]
        assert "0 nvidia.com/gpu where the pods request 4" in found.findings[0].message
        assert found.admitted
        assert total(found.podsets) == {"cpu": 4000}
        assert verdict(plain(), forgot, target=target("2.2")).findings == []

    def test_no_runtime_no_numbers(self) -> None:
        (found,) = check_queues([job()], plain(), target("2.3"), {})
        assert (found.findings, found.admitted, found.podsets) == ([], False, ())

    def test_what_is_no_quantity_is_left_to_the_schema(self) -> None:
        assert codes(verdict(plain(), job(resourcesPerNode={"requests": {"cpu": "many"}}))) == []


def test_every_check_is_shown() -> None:
    """By the codes that stand in this file."""
    from pathlib import Path

    text = Path(__file__).read_text(encoding="utf-8")
    assert [c.code for c in QUEUE_CHECKS if f'"{c.code}"' not in text] == []
    assert all(c.code.startswith("TJ6") and BY_CODE[c.code] is c for c in QUEUE_CHECKS)
    assert len({c.name for c in BY_CODE.values()}) == len(BY_CODE)
