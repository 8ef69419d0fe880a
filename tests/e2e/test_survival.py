"""Jobs that are disturbed go on from their last checkpoint, or fail with the reason in plain sight."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.e2e.kube import Kubectl
from tests.e2e.survival import CHECKPOINT_EVERY, LAUNCH, Form, Run, launch_env, ours, stock
from trainjob.kube.yaml import dump_all

pytestmark = pytest.mark.survival
Seen = Callable[[str], None]

OURS = Form("ours", ours(), LAUNCH, launch_env())
TORCHRUN = Form("ours-torchrun", ours(), ("torchrun",))
STOCK = Form("stock", stock(), ("torchrun",))


@pytest.fixture(scope="module")
def quiet_loss(cluster: Kubectl) -> Iterator[str]:
    """The last loss of a run that nobody disturbs."""
    space = f"e2e-undisturbed-{int(time.time())}"
    cluster.run("create", "namespace", space)
    cluster.run("label", "namespace", space, "trainjob.dev/multi-node=allowed")
    run = Run(replace(cluster, namespace=space), OURS, "quiet").submit()
    assert run.kubectl.finished("quiet") == "Complete"
    loss = run.loss()
    yield loss
    cluster.run("delete", "namespace", space, "--wait=false")


def under_way(kubectl: Kubectl, form: Form, name: str, env: dict[str, str] | None = None) -> Run:
    """A job that has trained for some steps and saved some."""
    run = Run(kubectl, form, name, env=env or {}).submit()
    run.wait_step(12)
    return run


def survived(run: Run, fault: float, loss: str, seen: Seen, restarts: int | None = None) -> None:
    """Complete, with the loss of the undisturbed run, and at most one checkpoint interval done twice."""
    assert run.kubectl.finished(run.name, seconds=400) == "Complete"
    assert run.loss() == loss
    assert run.lost_steps() <= CHECKPOINT_EVERY
    if restarts is not None:
        assert run.restarts() == restarts
    seen(f"next step after {run.recovery(fault):.1f} s, {run.lost_steps()} steps done twice, loss equal")


@pytest.mark.ci
def test_worker_process_killed(kubectl: Kubectl, quiet_loss: str, seen: Seen) -> None:
    """SIGKILL to a worker process: all ranks start again inside their pods and resume."""
    run = under_way(kubectl, OURS, "kill1")
    survived(run, run.signal(1, "KILL"), quiet_loss, seen, restarts=0)
    assert "rank 1 was ended by SIGKILL" in kubectl.logs("kill1", 1)


@pytest.mark.full
def test_first_rank_killed(kubectl: Kubectl, quiet_loss: str, seen: Seen) -> None:
    """SIGKILL to rank 0's process, which hosts the store of the collectives: likewise."""
    run = under_way(kubectl, OURS, "kill0")
    survived(run, run.signal(0, "KILL"), quiet_loss, seen, restarts=0)


@pytest.mark.full
def test_killed_under_torchrun(kubectl: Kubectl, quiet_loss: str, seen: Seen) -> None:
    """The same fault under plain torchrun: the runtime restarts all pods together."""
    run = under_way(kubectl, TORCHRUN, "torchrun")
    survived(run, run.signal(1, "KILL"), quiet_loss, seen, restarts=1)


@pytest.mark.full
def test_worker_pod_deleted(kubectl: Kubectl, quiet_loss: str, seen: Seen) -> None:
    """A deleted worker pod: all pods restart, and the restart is not counted."""
    run = under_way(kubectl, OURS, "pod1")
    survived(run, run.delete_pod(1), quiet_loss, seen, restarts=1)
    assert counted(run) == 0


@pytest.mark.ci
def test_first_pod_deleted(kubectl: Kubectl, quiet_loss: str, seen: Seen) -> None:
    """The deleted pod of rank 0, which hosts the rendezvous, comes back with another address."""
    run = under_way(kubectl, OURS, "pod0")
    survived(run, run.delete_pod(0), quiet_loss, seen, restarts=1)
    assert counted(run) == 0


@pytest.mark.full
def test_pod_evicted(kubectl: Kubectl, quiet_loss: str, seen: Seen) -> None:
    """An evicted pod (the eviction API) restarts the set without counting."""
    run = under_way(kubectl, OURS, "evicted")
    survived(run, run.evict(1), quiet_loss, seen, restarts=1)
    assert counted(run) == 0


@pytest.mark.full
def test_node_drained(kubectl: Kubectl, cluster: Kubectl, quiet_loss: str, seen: Seen) -> None:
    """A drained node: the pods come back on the other one and resume."""
    run = under_way(kubectl, OURS, "drained")
    when, node = run.drain(1)
    try:
        survived(run, when, quiet_loss, seen)
        assert counted(run) == 0
        where = {pod["spec"]["nodeName"] for pod in kubectl.pods("drained")}
        assert node not in where
    finally:
        cluster.run("uncordon", node)


@pytest.mark.full
def test_out_of_memory_once(kubectl: Kubectl, quiet_loss: str, seen: Seen) -> None:
    """A worker that exceeds the memory limit once is restarted, and the log says what happened."""
    run = under_way(kubectl, OURS, "oom", env={"FAULT": "oom:12"})
    survived(run, run.events()[-1].when, quiet_loss, seen)


@pytest.mark.full
def test_out_of_memory_always(kubectl: Kubectl, seen: Seen) -> None:
    """A worker that always exceeds the memory limit ends as Failed, and the pods say OOMKilled or SIGKILL."""
    run = Run(kubectl, OURS, "ooms", env={"FAULT": "ooms"}).submit()
    assert kubectl.finished("ooms", seconds=400) == "Failed"
    words = [last_state(pod) for pod in kubectl.pods("ooms")]
    assert any("OOMKilled" in word or "out of memory" in word for word in words), words
    seen(f"Failed after {time.time() - run.submitted:.0f} s; {words[-1][-120:]}")


@pytest.mark.full
def test_hanging_rank(kubectl: Kubectl, quiet_loss: str, seen: Seen) -> None:
    """SIGSTOP to one rank: the others' collective times out, the stopped process is killed, all resume."""
    run = under_way(kubectl, OURS, "hang")
    survived(run, run.signal(1, "STOP"), quiet_loss, seen, restarts=0)


@pytest.mark.full
def test_stalled_program(kubectl: Kubectl, quiet_loss: str, seen: Seen) -> None:
    """The watchdog on the progress file ends a hang that no collective would notice in time."""
    env = {"TRAINJOB_STALL_TIMEOUT": "8", "TRAINJOB_COLLECTIVE_TIMEOUT": "600"}
    run = under_way(kubectl, OURS, "stall", env=env)
    survived(run, run.signal(0, "STOP"), quiet_loss, seen, restarts=0)
    assert "no progress for" in kubectl.logs("stall", 0) + kubectl.logs("stall", 1)


@pytest.mark.full
@pytest.mark.queue
def test_preempted_and_admitted_again(
    kubectl: Kubectl, quiet_loss: str, seen: Seen, request: pytest.FixtureRequest
) -> None:
    """Kueue preempts the job for a more important one; admitted again it resumes."""
    queue = f"{kubectl.namespace}-queue"
    objects = preemption_queue(queue, kubectl.namespace)
    request.addfinalizer(lambda: kubectl.run("delete", "--wait=false", "-f", "-", stdin=dump_all(objects), check=False))
    kubectl.apply(objects)
    run = Run(kubectl, OURS, "low", labels={"kueue.x-k8s.io/queue-name": queue})
    run.submit()
    run.wait_step(12)
    urgent = Run(
        kubectl, OURS, "high", env={"STEPS": "5"},
        labels={"kueue.x-k8s.io/queue-name": queue, "kueue.x-k8s.io/priority-class": f"{queue}-high"},
    ).submit()  # fmt: skip
    fault = time.time()
    kubectl.wait_for("the job is suspended", lambda: kubectl.condition("trainjob", "low", "Suspended"))
    assert kubectl.finished("high") == "Complete"
    assert urgent.loss()
    survived(run, fault, quiet_loss, seen)


@pytest.mark.full
def test_trainer_manager_restarted(kubectl: Kubectl, cluster: Kubectl, quiet_loss: str, seen: Seen) -> None:
    """A restart of Trainer's manager does not touch a running job."""
    run = under_way(kubectl, OURS, "manager")
    cluster.run("-n", "kubeflow-system", "rollout", "restart", "deployment/kubeflow-trainer-controller-manager")
    assert kubectl.finished("manager") == "Complete"
    assert run.loss() == quiet_loss
    assert run.restarts() == 0
    assert [e.what for e in run.events()].count("start") == 1
    cluster.run(
        "-n", "kubeflow-system", "rollout", "status", "deployment/kubeflow-trainer-controller-manager", "--timeout=90s"
    )
    seen("not a step done twice")


@pytest.mark.ci
def test_bug_fails_soon_with_its_traceback(kubectl: Kubectl, seen: Seen) -> None:
    """A bug in the script ends as Failed after two attempts; log and traceback stay readable."""
    run = Run(kubectl, OURS, "bug", env={"FAULT": "bug"}).submit()
    assert kubectl.finished("bug") == "Failed"
    took = time.time() - run.submitted
    assert run.restarts() == 0
    assert "KeyError: 'no such key'" in all_logs(run)
    words = [last_state(pod) for pod in kubectl.pods("bug")]
    assert any("KeyError: 'no such key'" in word and "resume.py" in word for word in words), words
    reason = kubectl.condition("trainjob", "bug", "Failed")
    assert reason is not None
    assert reason["reason"] == "FailJobSetFailurePolicyAction"
    seen(f"Failed after {took:.0f} s: {reason['message'][:110]}")


@pytest.mark.full
def test_bug_under_torchrun(kubectl: Kubectl, seen: Seen) -> None:
    """The same bug under plain torchrun: Failed after the counted restarts, the last log stays."""
    run = Run(kubectl, TORCHRUN, "bugs", env={"FAULT": "bug"}).submit()
    assert kubectl.finished("bugs", seconds=400) == "Failed"
    assert "KeyError: 'no such key'" in all_logs(run)
    seen(f"Failed after {time.time() - run.submitted:.0f} s and {run.restarts()} restarts")


@pytest.mark.full
def test_final_exit_code(kubectl: Kubectl, seen: Seen) -> None:
    """An exit code of sysexits.h fails the job at once: no pod is started again."""
    run = Run(kubectl, OURS, "final", env={"FAULT": "exit:78"}).submit()
    assert kubectl.finished("final") == "Failed"
    assert run.restarts() == 0
    codes = {p["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] for p in kubectl.pods("final")}
    assert 78 in codes
    seen(f"Failed after {time.time() - run.submitted:.0f} s")


def all_logs(run: Run) -> str:
    """Of the pods that are left: a failed Job deletes those that still ran."""
    return "".join(run.kubectl.run("logs", pod["metadata"]["name"], "-c", "node") for pod in run.kubectl.pods(run.name))


def counted(run: Run) -> int:
    """Restarts that count towards maxRestarts."""
    status = run.kubectl.get("jobset", run.name).get("status", {})
    return int(status.get("restartsCountTowardsMax", 0))


def last_state(pod: dict[str, Any]) -> str:
    """Reason and termination message of the training container, as `kubectl describe` shows them."""
    state = pod["status"]["containerStatuses"][0].get("state", {}).get("terminated", {})
    return f"{state.get('reason', '')} {state.get('message', '')}"


def preemption_queue(name: str, namespace: str) -> list[dict[str, Any]]:
    """A queue with room for one job of two pods, in which the more important job goes first."""
    covered = {"cpu": "200m", "memory": "4Gi", "ephemeral-storage": "2Gi"}
    quotas = [{"name": resource, "nominalQuota": amount} for resource, amount in covered.items()]
    api = "kueue.x-k8s.io/v1beta2"
    return [
        {"apiVersion": api, "kind": "ResourceFlavor", "metadata": {"name": name}},
        {
            "apiVersion": api,
            "kind": "ClusterQueue",
            "metadata": {"name": name},
            "spec": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "preemption": {"withinClusterQueue": "LowerPriority"},
                "resourceGroups": [
                    {"coveredResources": list(covered), "flavors": [{"name": name, "resources": quotas}]}
                ],
            },
        },
        {
            "apiVersion": api,
            "kind": "LocalQueue",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"clusterQueue": name},
        },
        {"apiVersion": api, "kind": "WorkloadPriorityClass", "metadata": {"name": f"{name}-high"}, "value": 1000},
    ]


@pytest.mark.full
def test_twenty_faults_in_a_row(kubectl: Kubectl, seen: Seen) -> None:
    """Twenty random faults in one job: it finishes, with the loss of an undisturbed run of the same length."""
    steps = {"STEPS": "400"}
    calm = Run(kubectl, OURS, "calm", env={**steps, "PAUSE": "0"}).submit()
    assert kubectl.finished("calm", seconds=300) == "Complete"
    kubectl.run("delete", "trainjob", "calm", "--wait=false")
    run = Run(kubectl, OURS, "soak", env=steps).submit()
    chance = random.Random(20)
    faults: dict[str, Callable[[int], float]] = {
        "process killed": lambda rank: run.signal(rank, "KILL"),
        "process stopped": lambda rank: run.signal(rank, "STOP"),
        "pod deleted": run.delete_pod,
        "pod evicted": run.evict,
    }
    took: dict[str, list[float]] = {name: [] for name in faults}
    for number in range(20):
        # Seven new steps, so that each life saves something.
        run.wait_step(7 + max((e.step for e in run.events() if e.what in {"resume", "start"}), default=0), seconds=300)
        name = chance.choice(list(faults))
        when = faults[name](chance.randrange(2))
        kubectl.wait_for(
            f"a step after fault {number + 1}, {name}", lambda when=when: run.after(when) is not None, seconds=300
        )
        took[name].append(run.recovery(when))
    assert kubectl.finished("soak", seconds=400) == "Complete"
    assert run.loss() == calm.loss()
    assert run.lost_steps() <= CHECKPOINT_EVERY
    worst = max(max(times) for times in took.values() if times)
    counts = ", ".join(f"{len(times)} x {name}" for name, times in took.items())
    seen(f"{counts}; the longest {worst:.0f} s, {run.restarts()} restarts of the set, loss equal")


@pytest.mark.full
def test_told_to_end_while_starting(kubectl: Kubectl, seen: Seen) -> None:
    """A pod deleted while torchrun imports torch is gone soon; in a stock-shaped runtime only after its grace."""
    took = {}
    for form in (TORCHRUN, STOCK):
        run = Run(kubectl, form, form.name).submit()
        pod = kubectl.wait_for("a pod runs", lambda run=run: running(run), 60)
        begin = time.time()
        kubectl.run("delete", "pod", pod, timeout=400)
        took[form.name] = time.time() - begin
        kubectl.run("delete", "trainjob", form.name, "--wait=false")
    assert took["ours-torchrun"] < 20
    assert took["stock"] > 25
    seen(f"gone after {took['ours-torchrun']:.1f} s, stock after {took['stock']:.1f} s")


def running(run: Run) -> str:
    """The pod of rank 0, as soon as it runs."""
    try:
        return run.pod(0)
    except LookupError:
        return ""


@pytest.mark.full
def test_shared_memory(kubectl: Kubectl, seen: Seen) -> None:
    """/dev/shm has the size that the runtime says, not the 64 MiB of a container."""
    run = Run(kubectl, OURS, "shm").submit()
    run.wait_step(1)
    kib = kubectl.run("exec", run.pod(0), "-c", "node", "--", "df", "--output=size", "/dev/shm").split()[-1]
    assert int(kib) > 100 * 1024
    seen(f"{int(kib) // 1024} MiB")
