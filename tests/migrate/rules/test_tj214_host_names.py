"""TJ214: v1 host names become v2 host names wherever they are written."""

from __future__ import annotations

from tests.migrate.rules.support import MAIN, alone, chain, noop, v1
from trainjob.migrate.rules import tj102_roles, tj105_name, tj203_command, tj204_env, tj214_host_names

RULE = tj214_host_names.RULE
AFTER = (tj102_roles.RULE, tj105_name.RULE, tj203_command.RULE, tj204_env.RULE)


def test_noop_without_host_names() -> None:
    """Also for names that only look alike."""
    noop(RULE, v1({"args": ["other-master-0", "demo-master", "my-demo-master-0"]}), after=AFTER)


def test_noop_without_a_name() -> None:
    """Nobody could have written the host name of a generated name."""
    noop(RULE, v1({"args": ["demo-master-0"]}, metadata={"generateName": "demo-"}), after=AFTER)


def test_names_in_the_program_are_rewritten() -> None:
    """Command, args and env; each name is told once."""
    container = {
        "command": ["torchrun", "--master_addr=demo-master-0", "t.py"],
        "args": ["tcp://demo-master-0:23456", "demo-worker-1"],
        "env": [{"name": "A", "value": "demo-worker-0.ns.svc:1"}],
    }
    ran = alone(RULE, v1(container, workers=2), after=AFTER)
    assert ran.role.command == ["torchrun", "--master_addr=demo-node-0-0.demo", "t.py"]
    assert ran.role.args == ["tcp://demo-node-0-0.demo:23456", "demo-node-0-2.demo"]
    assert ran.role.env[0]["value"] == "demo-node-0-1.demo.ns.svc:1"
    ran.says("note", "demo-master-0 becomes demo-node-0-0.demo", at=MAIN)
    ran.says("note", "demo-worker-1 becomes demo-node-0-2.demo")
    assert len(ran.findings) == 3


def test_without_a_master_the_index_stays() -> None:
    """Also when the Master has no replicas."""
    absent = v1({"args": ["demo-worker-0"]}, workers=2, role={"replicas": 0}, worker={"role": {"replicas": 2}})
    for data in (v1({"args": ["demo-worker-0"]}, master=False, workers=2), absent):
        assert alone(RULE, data, after=AFTER).role.args == ["demo-node-0-0.demo"]


def test_two_jobs_have_other_hosts() -> None:
    """A Worker is a job of its own there."""
    data = v1({"args": ["demo-master-0", "demo-worker-1"]}, workers=2, worker={"container": {"image": "o:1"}})
    assert alone(RULE, data, after=AFTER).role.args == ["demo-node-0-0.demo", "demo-worker-1-0.demo"]


def test_names_elsewhere_are_rewritten() -> None:
    """Init containers, sidecars, hooks and annotations of the pod."""
    pod = {"initContainers": [{"name": "i", "image": "i", "args": ["demo-master-0"]}]}
    hook = {"lifecycle": {"preStop": {"exec": {"command": ["curl", "demo-master-0"]}}}}
    data = v1(hook, pod, pod_metadata={"annotations": {"peer": "demo-master-0"}})
    data["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"].append(
        {"name": "s", "image": "s", "env": [{"name": "P", "value": "demo-master-0"}]}
    )
    result = chain(data)
    assert "demo-master-0" not in str((result.job, result.runtime))
    assert str(result.runtime).count("demo-node-0-0.demo") >= 4
