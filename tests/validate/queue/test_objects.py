"""Queue objects as manifests and as `kubectl get -o yaml` gives them."""

from __future__ import annotations

import pytest

from tests.validate.queue.objects import GPU, cluster_queue, flavor, kueue, local_queue, namespace, quotas, read
from trainjob.kube.yaml import dump, load
from trainjob.validate.queue import Queues, QueuesError


def test_a_list_and_documents_are_alike() -> None:
    objects = [flavor(), cluster_queue("c", quotas({GPU: 4})), local_queue(), namespace()]
    as_list = {"apiVersion": "v1", "kind": "List", "items": objects}
    one, many = Queues.read(load(dump(as_list))), read(*objects)
    assert one == many
    assert one.cluster_queues["c"].quotas["f", GPU].nominal == 4


def test_the_later_of_two_counts() -> None:
    both = read(cluster_queue("c", quotas({GPU: 4})), cluster_queue("c", quotas({GPU: 8})))
    assert both.cluster_queues["c"].quotas["f", GPU].nominal == 8


def test_other_groups_and_kinds_are_passed_over() -> None:
    foreign = {"apiVersion": "example.com/v1", "kind": "ClusterQueue", "metadata": {"name": "x"}}
    assert read(foreign, {"kind": "Service"}, cluster_queue("c", quotas({GPU: 4}))).cluster_queues.keys() == {"c"}


def test_nothing_of_kueue() -> None:
    with pytest.raises(QueuesError, match="no ClusterQueue and no LocalQueue"):
        read(flavor())
    with pytest.raises(QueuesError):
        Queues.read([])


def test_a_quota_that_is_none_says_where() -> None:
    text = dump(cluster_queue("c", quotas({GPU: "some"})))
    with pytest.raises(QueuesError, match="nominalQuota: 'some' is not a quantity") as err:
        Queues.read(load(text, "queues.yaml"))
    assert text.splitlines()[err.value.where.line - 1].strip() == "nominalQuota: some"
    assert err.value.where.path.endswith("flavors[0].resources[0].nominalQuota")


CONFIG = """apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
managedJobsNamespaceSelector: {matchLabels: {team: "yes"}}
resources: {excludeResourcePrefixes: [example.com/]}
"""


@pytest.mark.parametrize("wrapped", [True, False])
def test_the_configuration_of_kueue(wrapped: bool) -> None:
    data = {"controller_manager_config.yaml": CONFIG}
    map_ = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kueue-manager-config"}, "data": data}
    config = map_ if wrapped else load(CONFIG)[0].data
    queues = read(config, local_queue())
    assert queues.managed == {"matchLabels": {"team": "yes"}}
    assert queues.excluded == ("example.com/",)
    assert not queues.transforms


def test_openshifts_kueue_looks_at_labelled_namespaces_only() -> None:
    operator = {"apiVersion": "kueue.openshift.io/v1", "kind": "Kueue", "metadata": {"name": "cluster"}}
    assert read(operator, local_queue()).managed == {"matchLabels": {"kueue.openshift.io/managed": "true"}}
    assert read(local_queue()).managed is None


def test_limit_ranges_of_the_namespace_only() -> None:
    def limits(ns: str, name: str, cpu: str, kind: str = "Container") -> dict[str, object]:
        spec = {"limits": [{"type": kind, "default": {"cpu": cpu}, "defaultRequest": {"cpu": "1"}}]}
        return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": name, "namespace": ns}, "spec": spec}

    queues = read(
        local_queue(), limits("team", "a", "2"), limits("team", "b", "9"), limits("other", "a", "5"),
        limits("pods", "a", "5", "Pod"),
    )  # fmt: skip
    assert queues.defaults("team").limits == {"cpu": "2"}
    assert queues.defaults("team").requests == {"cpu": "1"}
    assert queues.defaults("pods").limits == queues.defaults("nobody").limits == {}


def test_malformed_objects_do_not_raise() -> None:
    broken = [
        kueue("ClusterQueue", "a", {"resourceGroups": "none"}),
        kueue("ClusterQueue", "b", {"resourceGroups": [{"coveredResources": 3, "flavors": [None, {"resources": 5}]}]}),
        kueue("LocalQueue", "q"),
        {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Cohort"},
    ]
    assert read(*broken).cluster_queues.keys() == {"a", "b"}
