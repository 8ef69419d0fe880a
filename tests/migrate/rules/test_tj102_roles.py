"""TJ102: what differs between Master and Worker decides the shape of the output."""

from __future__ import annotations

from typing import Any

import pytest

from tests.migrate.rules.support import WORKER, WORKER_POD, alone, chain, noop, refusal, v1
from trainjob.migrate.rules import tj102_roles

RULE = tj102_roles.RULE


@pytest.mark.parametrize("data", [v1(), v1(workers=2, master=False)])
def test_noop_with_one_role(data: Any) -> None:
    """There is nothing to compare."""
    noop(RULE, data)


def test_equal_roles_become_one() -> None:
    """One template for all pods, without a word."""
    ran = alone(RULE, v1(workers=2))
    assert ran.findings == []
    assert [(r.replica.role, r.pods) for r in ran.draft.roles] == [("Master", 3)]


@pytest.mark.parametrize(
    ("master", "worker"),
    [
        ({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
         {"env": [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}]}),
        ({"env": [{"name": "A", "value": "1"}]}, {"env": [{"name": "A", "value": "0"}, {"name": "A", "value": "1"}]}),
        ({"env": []}, {}),
        ({"resources": {"limits": {"cpu": 1}}}, {"resources": {"limits": {"cpu": "1"}}}),
        ({"image": "a:1", "imagePullPolicy": "IfNotPresent"}, {"image": "a:1"}),
        ({"terminationMessagePath": "/dev/termination-log", "tty": False}, {}),
    ],
)  # fmt: skip
def test_order_defaults_and_notation_make_no_difference(master: Any, worker: Any) -> None:
    """The comparison is about meaning."""
    ran = alone(RULE, v1(master, workers=1, worker={"container": worker}))
    assert len(ran.draft.roles) == 1
    assert ran.findings == []


def test_labels_are_joined_with_a_warning() -> None:
    """Every pod gets all of them; the Master's value wins."""
    data = v1(workers=1, pod_metadata={"labels": {"a": "m", "b": "1"}}, worker={"pod_metadata": {"labels": {"a": "w"}}})
    ran = alone(RULE, data)
    ran.says("warning", "differ in labels; every pod gets all", at=f"{WORKER}.template.metadata")
    assert ran.role.replica.metadata["labels"] == {"a": "m", "b": "1"}
    both = v1(workers=1, pod_metadata={"labels": {"a": "m"}}, worker={"pod_metadata": {"annotations": {"n": "w"}}})
    ran = alone(RULE, both)
    ran.says("warning", "differ in annotations and labels")
    assert ran.role.replica.metadata == {"labels": {"a": "m"}, "annotations": {"n": "w"}}


def test_ports_are_joined() -> None:
    """A port of the Worker alone is not lost; v1's own port needs no joining."""
    port = {"name": "metrics", "containerPort": 9090}
    data = v1({"ports": [{"containerPort": 8080}]}, workers=1, worker={"container": {"ports": [port]}})
    ran = alone(RULE, data)
    assert ran.findings == []
    assert ran.role.main["ports"] == [{"containerPort": 8080}, port]


@pytest.mark.parametrize(
    ("master", "worker"),
    [
        ([], [{"containerPort": 9090, "hostPort": 9090}]),
        ([{"containerPort": 9090, "hostPort": 9090}], []),
        ([{"name": "x", "containerPort": 1}], [{"name": "x", "containerPort": 2}]),
        ([{"name": "x", "containerPort": 1}], [{"name": "y", "containerPort": 1}]),
    ],
)
def test_ports_that_one_template_cannot_say_need_two_jobs(master: Any, worker: Any) -> None:
    """A hostPort takes a port of the node; a name or number cannot mean two ports."""
    ran = alone(RULE, v1({"ports": master}, workers=1, worker={"container": {"ports": worker}}))
    ran.says("warning", "differ in ports", at=WORKER)
    assert ran.draft.two_roles


def test_different_programs_switch_on_the_rank() -> None:
    """Both command lines stand in one script."""
    data = v1({"command": ["python", "m.py"]}, workers=2, worker={"container": {"command": ["python", "w.py"]}})
    ran = alone(RULE, data)
    ran.says(
        "warning",
        "different programs.*PET_NODE_RANK\nthe image needs a POSIX shell",
        at=f"{WORKER_POD}.containers[0].command",
    )
    assert ran.role.pods == 3
    assert ran.role.main["command"][:2] == ["sh", "-c"]
    assert "exec python m.py" in ran.role.main["command"][2]
    assert "args" not in ran.role.main


def test_different_args_of_one_shell_keep_the_shell() -> None:
    """`bash -c` in both roles stays bash, and the finding is at the args."""
    data = v1(
        {"command": ["bash", "-c"], "args": ["python m.py"]},
        workers=1,
        worker={"container": {"command": ["bash", "-c"], "args": ["python w.py"]}},
    )
    ran = alone(RULE, data)
    ran.says("warning", "different programs", at=f"{WORKER_POD}.containers[0].args")
    assert ran.role.main["command"] == ["bash", "-c"]
    assert "python w.py" in ran.role.main["args"][0]


def test_args_without_a_command_cannot_switch() -> None:
    """What the image's entrypoint is, nobody knows: two jobs."""
    data = v1({"command": None, "args": ["a"]}, workers=1, worker={"container": {"command": None, "args": ["b"]}})
    ran = alone(RULE, data)
    ran.says("warning", r"differ in args: the generated runtime has two jobs")
    assert ran.draft.two_roles


@pytest.mark.parametrize(
    ("worker", "text"),
    [
        ({"container": {"image": "other:2"}}, "image"),
        ({"container": {"env": [{"name": "A", "value": "1"}]}}, "env"),
        ({"pod": {"nodeSelector": {"a": "b"}}}, "nodeSelector"),
        ({"pod": {"initContainers": [{"name": "i", "image": "i"}]}}, "initContainers"),
        ({"container": {"image": "other:2"}, "pod": {"hostIPC": True}}, "hostIPC, image"),
    ],
)
def test_other_differences_need_two_jobs(worker: Any, text: str) -> None:
    """The finding names them; both roles stay."""
    ran = alone(RULE, v1(workers=2, worker=worker))
    ran.says("warning", rf"differ in {text}: the generated runtime has two jobs", at=WORKER)
    assert [r.pods for r in ran.draft.roles] == [1, 2]


def test_a_sidecar_of_one_role_needs_two_jobs() -> None:
    """Pods with other containers are other pods."""
    data = v1(workers=1)
    data["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"].append({"name": "s", "image": "s"})
    alone(RULE, data).says("warning", "differ in containers:")


def test_two_jobs_need_a_name() -> None:
    """The address of rank 0 holds the job's name."""
    data = v1(workers=1, worker={"container": {"image": "other:2"}}, metadata={"generateName": "demo-"})
    assert "without a fixed name cannot have two kinds of pods" in refusal(RULE, data).message


def test_what_the_operator_wrote_into_workers_is_no_difference() -> None:
    """A live dump: init-pytorch, its variables and its port, each with a note."""
    dumped = {
        "env": [{"name": "RANK", "value": "1"}, {"name": "PET_NNODES", "value": "2"}],
        "ports": [{"name": "pytorchjob-port", "containerPort": 23456}],
    }
    init = {"initContainers": [{"name": "init-pytorch", "image": "alpine:3.10"}]}
    ran = alone(RULE, v1(workers=1, worker={"container": dumped, "pod": init}))
    assert not ran.draft.two_roles
    ran.says("note", "init container init-pytorch of the Worker", at=f"{WORKER_POD}.initContainers[0]")
    ran.says("note", "the variable RANK of the Worker", at=f"{WORKER_POD}.containers[0].env[0]")
    ran.says("note", "the variable PET_NNODES of the Worker")
    ran.says("note", "the port pytorchjob-port of the Worker", at=f"{WORKER_POD}.containers[0].ports[0]")


def test_the_runtime_of_two_jobs() -> None:
    """`node` is the Master and decides success; `worker` holds the rest; both know their ranks."""
    data = v1({"env": [{"name": "A", "value": "m"}]}, workers=2, worker={"container": {"image": "other:2"}})
    result = chain(data)
    assert result.trainer == {"numNodes": 1}
    assert result.runtime is not None
    jobset = result.runtime["spec"]["template"]["spec"]
    assert [(j["name"], j.get("replicas", 1)) for j in jobset["replicatedJobs"]] == [("node", 1), ("worker", 2)]
    assert jobset["successPolicy"] == {"operator": "All", "targetReplicatedJobs": ["node"]}
    assert result.runtime["spec"]["mlPolicy"] == {"numNodes": 1}
    for name, image in (("node", "reg.io/img:1"), ("worker", "other:2")):
        env = {e["name"]: e for e in result.container(name)["env"]}
        assert result.container(name)["image"] == image
        assert env["WORLD_SIZE"]["value"] == "3"
        assert env["PET_NNODES"]["value"] == "3"
        assert env["RANK"]["valueFrom"]["fieldRef"]["fieldPath"].endswith("['jobset.sigs.k8s.io/job-global-index']")
        assert ("A" in env) == (name == "node")
