"""What a TrainJob and its runtime make together."""

from __future__ import annotations

import copy

import pytest

from tests.validate.objects import NODE, POD, REMOVE, Obj, patch, put, replicated_job, runtime, trainjob
from trainjob.targets import TARGETS, Target, target
from trainjob.validate.merge import merge

T20, T21, T22, T23 = map(target, ("2.0", "2.1", "2.2", "2.3"))
GPU = "nvidia.com/gpu"


@pytest.mark.parametrize("t", TARGETS, ids=str)
def test_patches_and_trainer(t: Target) -> None:
    job, base = trainjob(t), runtime(t)
    before = copy.deepcopy((job, base))
    (node,) = merge(job, base, t)
    assert (job, base) == before
    container = node.container()
    assert container["image"] == "registry.example.com/team/train:1"
    assert container["command"] == ["torchrun", "train.py"]
    assert [e["name"] for e in container["env"]] == ["PYTHONUNBUFFERED", "LR"]
    assert [m["mountPath"] for m in container["volumeMounts"]] == ["/dev/shm", "/data"]
    assert [v["name"] for v in node.pod["volumes"]] == ["shm", "data"]
    assert (node.name, node.pods) == ("node", 2)


def test_untouched_jobs_keep_their_pod() -> None:
    base = runtime(T23, replicated_job("dataset-initializer", "dataset-initializer"), replicated_job())
    first, second = merge(trainjob(T23), base, T23)
    assert first.pod is base["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    assert second.container()["command"] == ["torchrun", "train.py"]


def test_resources_are_merged_since_2_3_and_replaced_before() -> None:
    asked = {"limits": {"cpu": "4"}}
    (new,) = merge(trainjob(T23, resourcesPerNode=asked), runtime(T23), T23)
    assert new.container()["resources"]["limits"] == {"cpu": "4", "memory": "64Gi", GPU: "8"}
    assert new.container()["resources"]["requests"] == {"cpu": "8", "memory": "64Gi", GPU: "8"}
    (old,) = merge(trainjob(T22, resourcesPerNode=asked), runtime(T22), T22)
    assert old.container()["resources"] == {"limits": {"cpu": "4"}}


def test_claims_never_survive() -> None:
    (node,) = merge(trainjob(T23, resourcesPerNode={"claims": [{"name": "x"}]}), runtime(T23), T23)
    assert set(node.container()["resources"]) == {"limits", "requests"}


def test_resources_need_a_policy_in_2_3() -> None:
    base = put(runtime(T23), "spec.mlPolicy", REMOVE)
    (node,) = merge(trainjob(T23), base, T23)
    assert node.container()["resources"]["limits"]["memory"] == "64Gi"
    assert node.pods == 2
    (node,) = merge(trainjob(T22), put(runtime(T22), "spec.mlPolicy", REMOVE), T22)
    assert node.container()["resources"]["limits"]["memory"] == "32Gi"


def pods(job: Obj, base: Obj, t: Target = T23) -> dict[str, int]:
    return {m.name: m.pods for m in merge(job, base, t)}


def test_numbers_of_pods() -> None:
    assert pods(trainjob(T23, numNodes=None), put(runtime(T23), "spec.mlPolicy.numNodes", 5)) == {"node": 5}
    mpi = runtime(
        T23, replicated_job("launcher"), replicated_job("node", None), policy={"mpi": {"runLauncherAsNode": True}}
    )
    assert pods(trainjob(T23, numNodes=4), mpi) == {"launcher": 1, "node": 3}
    assert pods(trainjob(T23, numNodes=1), mpi) == {"launcher": 1, "node": 1}
    apart = put(mpi, "spec.mlPolicy.mpi.runLauncherAsNode", False)
    assert pods(trainjob(T23, numNodes=4), apart) == {"launcher": 1, "node": 4}


def test_an_mpi_node_gets_resources_and_env_but_no_image() -> None:
    mpi = runtime(
        T23, replicated_job("launcher"), replicated_job("node", None), policy={"mpi": {"runLauncherAsNode": True}}
    )
    mpi = put(mpi, f"{NODE.replace('[0].template', '[1].template', 1)}.name", "node")
    launcher, node = merge(trainjob(T23), mpi, T23)
    assert launcher.container()["image"] == "registry.example.com/team/train:1"
    assert node.container()["image"] == "a/b:1"
    assert node.container()["resources"]["limits"][GPU] == "8"
    assert node.container()["env"] == [{"name": "LR", "value": "0.1"}]


def test_lists_without_a_key_are_replaced() -> None:
    pod = {"tolerations": [{"key": "b"}], "nodeSelector": {"b": "2"}}
    base = put(runtime(T23), f"{POD}.nodeSelector", {"a": "1"})
    (node,) = merge(trainjob(T23, patch(T23, pod)), base, T23)
    assert node.pod["tolerations"] == [{"key": "b"}]
    assert node.pod["nodeSelector"] == {"a": "1", "b": "2"}


def test_a_later_patch_wins_and_mounts_go_by_path() -> None:
    def mount(name: str) -> Obj:
        volume = {"name": name, "emptyDir": {}}
        return {
            "volumes": [volume],
            "containers": [{"name": "node", "volumeMounts": [{"name": name, "mountPath": "/dev/shm"}]}],
        }

    (node,) = merge(trainjob(T21, patch(T21, mount("a")), patch(T21, mount("b"))), runtime(T21), T21)
    assert node.container()["volumeMounts"] == [{"name": "b", "mountPath": "/dev/shm"}]
    assert [v["name"] for v in node.pod["volumes"]] == ["shm", "a", "b"]


def test_env_is_replaced_in_place_and_whole() -> None:
    base = put(
        runtime(T23),
        f"{NODE}.env",
        [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}, {"name": "B", "value": "2"}],
    )
    (node,) = merge(trainjob(T23, env=[{"name": "A", "value": "1"}]), base, T23)
    assert node.container()["env"] == [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]


def test_nothing_given_keeps_the_runtimes() -> None:
    (node,) = merge(trainjob(T23, image=None, command=[], resourcesPerNode=None), runtime(T23), T23)
    assert node.container()["image"] == "a/b:1"
    assert "command" not in node.container()
    assert node.container()["resources"]["limits"]["memory"] == "64Gi"
