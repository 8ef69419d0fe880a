"""What the network components set reaches the pods, and the libraries in them."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.kube import TRAIN_IMAGE, Kubectl
from tests.e2e.test_training import small
from tools import check_overlays as policy
from trainjob import kustomize
from trainjob.builder import train_job
from trainjob.kube.yaml import dump_all

ROOT = Path(__file__).parents[2]
RUNTIME = "torch-fsdp-multinode"
COMPONENTS = ("network-tcp", "network-roce", "network-ib", "nccl-gdr", "nccl-debug")
GUIDE = ROOT / "docs/howto/network.md"
Seen = Callable[[str], None]


@pytest.fixture
def shop(tmp_path: Path) -> policy.Workshop:
    return policy.Workshop(policy.Repository(ROOT), tmp_path, kustomize.find_engine())


@pytest.fixture
def install(cluster: Kubectl, kubectl: Kubectl, shop: policy.Workshop) -> Iterator[Callable[..., str]]:
    """`install("network-tcp")`: the multi-node runtime with these components, under a name of the test's own."""
    made = []

    def make(*components: str) -> str:
        cluster.run("label", "namespace", kubectl.namespace, "--overwrite", "trainjob.dev/multi-node=allowed")
        docs = policy.objects(shop.render(shop.probe(*components, "cpu-stand-in")))
        runtime = next(d for d in docs if d["metadata"]["name"] == RUNTIME)
        runtime["metadata"]["name"] = f"e2e-net-{uuid.uuid4().hex[:6]}"
        # The first failure ends the job, with its pods still there.
        runtime["spec"]["template"]["spec"]["failurePolicy"] = {"maxRestarts": 0}
        made.append(runtime["metadata"]["name"])
        kubectl.apply([runtime])
        return made[-1]

    yield make
    kubectl.run("delete", "trainjobs", "--all", check=False)
    for name in made:
        cluster.run("delete", "clustertrainingruntime", name, check=False)


def job(kubectl: Kubectl, runtime: str, program: str, env: dict[str, str] | None = None) -> dict[str, Any]:
    """A two-pod job of a program in the ConfigMap, small enough for two cores."""
    built = train_job(
        name="net", runtime=RUNTIME, nodes=2, allow_multi_node="the test of the network", procs_per_node=1,
        command=["torchrun", f"/programs/{program}"], env=env, checkpoints=None,
    ).to_dict()  # fmt: skip
    built["spec"]["runtimeRef"]["name"] = runtime
    return small(built, kubectl, runtime)


def environment(objects: list[dict[str, Any]]) -> set[str]:
    """The names of all variables of the multi-node runtime."""
    pod = next(d for d in objects if d["metadata"]["name"] == RUNTIME)["spec"]["template"]["spec"]["replicatedJobs"][0]
    return {e["name"] for e in pod["template"]["spec"]["template"]["spec"]["containers"][0]["env"]}


@pytest.mark.ci
@pytest.mark.trainer
def test_the_server_accepts_every_network_component(kubectl: Kubectl, shop: policy.Workshop, seen: Seen) -> None:
    """The runtimes of each network component and of the RoCE example pass a strict server dry-run."""
    rendered = {name: shop.render(shop.probe(name)) for name in COMPONENTS}
    rendered["example"] = shop.render("overlays/examples/multi-node-roce")
    refused = {}
    for name, stream in rendered.items():
        docs = [doc for doc in policy.objects(stream) if doc["kind"] == policy.KIND]
        for doc in docs:
            doc["metadata"]["name"] += "-copy"
        said = kubectl.dry_run(dump_all(docs))
        if said:
            refused[name] = said
    assert refused == {}
    seen(f"{len(rendered)} renderings accepted")


@pytest.mark.full
@pytest.mark.trainer
@pytest.mark.usefixtures("programs")
def test_gloo_and_nccl_take_the_named_interface(
    kubectl: Kubectl, shop: policy.Workshop, install: Callable[..., str], seen: Seen
) -> None:
    """Two pods of network-tcp: NCCL starts on eth0, gloo sums over it, and the libraries know every variable
    that the components set."""
    names = set[str]()
    for component in COMPONENTS:
        names |= environment(policy.objects(shop.render(shop.probe(component))))
    names = {n for n in names if re.match("NCCL_|GLOO_|TORCH_(NCCL|FR)_", n)}
    assert len(names) >= 12
    runtime = install("network-tcp")
    kubectl.apply([job(kubectl, runtime, "network.py", {"KNOWN": ",".join(sorted(names)), "NCCL_DEBUG": "INFO"})])
    assert kubectl.finished("net", seconds=300) == "Complete"
    for index in (0, 1):
        log = kubectl.logs("net", index)
        assert f"gloo rank {index} of 2 sum 3" in log
        assert "NCCL_SOCKET_IFNAME set by environment to =eth0" in log
        assert re.search(r"Bootstrap: Using eth0:\d", log), log
    log = kubectl.logs("net", 0)
    told = dict(re.findall(r"^((?:NCCL|GLOO|TORCH)_\w+) (\w+)$", log, re.MULTILINE))
    assert told == dict.fromkeys(names, "known")
    versions = re.search(r"torch (\S+) nccl (\d+)", log)
    assert versions is not None
    seen(f"eth0 in both pods; torch {versions[1]}, NCCL {versions[2]} know all {len(names)} variables")


@pytest.mark.full
@pytest.mark.trainer
@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("GLOO_SOCKET_IFNAME", "net1", "Unable to find address for: net1"),
        ("NCCL_SOCKET_IFNAME", "=net1", "Bootstrap : no socket interface found"),
    ],
)
def test_a_wrong_interface_says_so(
    kubectl: Kubectl, install: Callable[..., str], variable: str, value: str, says: str, seen: Seen
) -> None:
    """A wrong interface name fails the job, and `kubectl describe pod` shows why, in the termination message."""
    runtime = install("network-tcp")
    kubectl.apply([job(kubectl, runtime, "network.py", {variable: value})])
    assert kubectl.finished("net", seconds=240) == "Failed"
    # With a wrong name for NCCL both ranks still end by themselves; for gloo one may end the other.
    told = [kubectl.run("describe", "pod", p["metadata"]["name"]) for p in kubectl.pods("net")]
    assert any(says in text.partition("Message:")[2] for text in told), "\n".join(told)
    seen(f"{variable}={value}: {says}")


@pytest.mark.full
@pytest.mark.trainer
def test_roce_pods_ask_for_network_and_device(
    kubectl: Kubectl, cluster: Kubectl, install: Callable[..., str], seen: Seen
) -> None:
    """Pods of network-roce pass Pod Security `restricted`, carry the Multus annotation, and wait for the RDMA
    device that no node has, with its name in the event."""
    runtime = install("network-roce")
    cluster.run("label", "namespace", kubectl.namespace, "pod-security.kubernetes.io/enforce=restricted")
    built = train_job(
        name="roce", runtime=RUNTIME, nodes=2, allow_multi_node="the test of the network", command=["true"],
        procs_per_node=1, checkpoints=None,
    ).to_dict()  # fmt: skip
    built["spec"]["runtimeRef"]["name"] = runtime
    # Trainer 2.3 merges by key: a job that does not name the device keeps it.
    built["spec"]["trainer"]["resourcesPerNode"] = {"requests": {"cpu": "100m"}, "limits": {"cpu": "1"}}
    kubectl.apply([built])

    def reason() -> str:
        events = kubectl.run("get", "events", "-o", "jsonpath={range .items[*]}{.message}{'\\n'}{end}")
        return next((line for line in events.splitlines() if "rdma/rdma_shared_device_a" in line), "")

    said = kubectl.wait_for("the scheduler misses the device", reason, 60)
    pods = kubectl.pods("roce")
    assert len(pods) == 2
    for pod in pods:
        assert pod["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"] == "rdma-net"
        assert pod["spec"]["containers"][0]["resources"]["limits"]["rdma/rdma_shared_device_a"] == "1"
    seen(said[:90])


PROBE = """
import ctypes, json, re, resource
status = open('/proc/self/status').read()
size = 64 << 20
locked = ctypes.CDLL(None).mlock(ctypes.create_string_buffer(size), ctypes.c_size_t(size)) == 0
print(json.dumps({'effective': re.search(r'CapEff:\\s+(\\w+)', status)[1], 'locked': locked,
                  'limit': resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]}))
"""


@pytest.mark.full
@pytest.mark.trainer
def test_ipc_lock_does_nothing_for_a_user_other_than_root(kubectl: Kubectl, seen: Seen) -> None:
    """A pod as user 1000 with IPC_LOCK cannot lock 64 MiB, one as root with it can: hence no IPC_LOCK in the
    RDMA components."""
    answers = {}
    for name, uid, add in (("plain", 1000, []), ("user", 1000, ["IPC_LOCK"]), ("root", 0, ["IPC_LOCK"])):
        context = {"runAsUser": uid, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"], "add": add}}
        container = {
            "name": "c", "image": TRAIN_IMAGE, "command": ["python", "-c", PROBE], "securityContext": context,
            "resources": {"requests": {"cpu": "20m", "memory": "64Mi"}},
        }  # fmt: skip
        spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container]}
        kubectl.apply([{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}])
        kubectl.wait_for(
            f"pod {name} ends", lambda n=name: kubectl.get("pod", n)["status"].get("phase") == "Succeeded", 60
        )
        answers[name] = json.loads(kubectl.run("logs", name))
    assert {n: a["locked"] for n, a in answers.items()} == {"plain": False, "user": False, "root": True}
    assert int(answers["user"]["effective"], 16) == 0
    assert int(answers["root"]["effective"], 16) == 1 << 14  # CAP_IPC_LOCK
    seen(f"limit {answers['user']['limit'] >> 20} MiB; locked: user no, root yes")


@pytest.mark.full
@pytest.mark.trainer
@pytest.mark.usefixtures("programs")
def test_a_flight_recorder_dump_names_the_odd_rank(kubectl: Kubectl, install: Callable[..., str], seen: Seen) -> None:
    """The reader of docs/howto/network.md shows, from the dumps of two ranks that called different collectives,
    which rank did what."""
    code = re.search(r"```python\n(# read-dumps.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    assert code is not None
    kubectl.run("create", "configmap", "reader", f"--from-literal=read.py={code[1]}")
    runtime = install("network-tcp")
    built = job(kubectl, runtime, "hang.py")
    built["spec"]["trainer"]["numNodes"] = 1
    built["spec"]["trainer"]["numProcPerNode"] = 2
    script = "torchrun /programs/hang.py && python /reader/read.py /checkpoints/.nccl_trace_rank_*"
    built["spec"]["trainer"]["command"] = ["sh", "-c", script]
    pod = built["spec"]["runtimePatches"][0]["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"][0]
    spec = pod["template"]["spec"]["template"]["spec"]
    spec["volumes"].append({"name": "reader", "configMap": {"name": "reader"}})
    spec["containers"][0]["volumeMounts"].append({"name": "reader", "mountPath": "/reader"})
    kubectl.apply([built])
    assert kubectl.finished("net", seconds=240) == "Complete"
    log = kubectl.logs("net")
    lines = [line for line in log.splitlines() if line.startswith("rank ") and "call" in line]
    assert any(re.match(r"rank 0: .*gloo:all_reduce .*\[\[8\]\]", line) for line in lines), log
    assert any(re.match(r"rank 1: .*gloo:broadcast .*\[\[8\]\]", line) for line in lines), log
    seen("; ".join(lines[:2])[:120])
