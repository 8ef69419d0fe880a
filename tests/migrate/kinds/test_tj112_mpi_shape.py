"""TJ112: launcher and Workers as two jobs of one runtime."""

from __future__ import annotations

import pytest

from tests.migrate.kinds.support import Obj, chain, jax, mpi, refused
from trainjob.migrate.kinds import tj112_mpi_shape
from trainjob.targets import TARGETS, target

RULE = tj112_mpi_shape.RULE
GPU: Obj = {"resources": {"limits": {"nvidia.com/gpu": 2}}}


def test_the_two_jobs() -> None:
    """The TrainJob is the launcher; the Workers stand in the runtime, as many as numNodes."""
    cpu: Obj = {"resources": {"limits": {"cpu": "1"}}}
    out = chain(mpi({**cpu, "image": "reg.io/launcher:1"}, GPU, workers=3, spec={"slotsPerWorker": 2}))
    assert out.runtime is not None
    assert (out.trainer["numNodes"], out.trainer["numProcPerNode"]) == (3, 2)
    assert out.trainer["command"] == ["mpirun", "-np", "2", "python", "train.py"]
    assert out.trainer["image"] == "reg.io/launcher:1"
    assert out.trainer["resourcesPerNode"] == {"limits": {"cpu": "1"}}
    spec = out.runtime["spec"]
    assert spec["mlPolicy"] == {
        "numNodes": 1,
        "mpi": {
            "numProcPerNode": 1,
            "mpiImplementation": "OpenMPI",
            "sshAuthMountPath": "/etc/mpi-ssh",
            "runLauncherAsNode": False,
        },
    }
    jobset = spec["template"]["spec"]
    assert [j["name"] for j in jobset["replicatedJobs"]] == ["node", "launcher"]
    node, launcher = jobset["replicatedJobs"]
    assert launcher["dependsOn"] == [{"name": "node", "status": "Ready"}]
    assert "metadata" not in node["template"]
    assert launcher["template"]["metadata"]["labels"] == {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    assert (out.batch()["parallelism"], out.batch()["completions"]) == (3, 3)
    assert out.container()["resources"] == {"limits": {"nvidia.com/gpu": "2"}}
    assert jobset["successPolicy"] == {"operator": "All", "targetReplicatedJobs": ["launcher"]}
    out.says("TJ112", "note", "1 launcher and 3 Workers with 2 slots each")


def test_one_slot_is_the_default() -> None:
    """Always written: Trainer counts GPUs where the number is missing."""
    assert chain(mpi(worker=GPU)).trainer["numProcPerNode"] == 1


@pytest.mark.parametrize("workers", [None, 0])
def test_without_workers_it_is_refused(workers: int | None) -> None:
    """v1's default for Workers is 0."""
    refused(mpi(workers=workers), "TJ112", "the MPIJob has no Worker")


def test_workers_without_a_number_are_none() -> None:
    """`replicas` missing is 0 for this role, and says so."""
    data = mpi()
    del data["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"]
    refused(data, "TJ112", "the MPIJob has no Worker")


def test_a_launcher_with_gpus_is_refused() -> None:
    """It was a host of its own in v1's hostfile."""
    found = refused(mpi(GPU), "TJ112", "the launcher asks for nvidia.com/gpu")
    assert "one more Worker" in found.fix


def test_two_launchers_are_refused() -> None:
    """v1 knows one."""
    data = mpi()
    data["spec"]["mpiReplicaSpecs"]["Launcher"]["replicas"] = 2
    refused(data, "TJ911", "Launcher.replicas is 2 and must be 1")


def test_main_container() -> None:
    """It must be the first of the Worker, which is where Trainer's ranks start."""
    chain(mpi(spec={"mainContainer": "mpi"})).says("TJ112", "note", "is the container `node` now")
    refused(mpi(spec={"mainContainer": "other"}), "TJ112", "started the ranks in the container 'other'")


@pytest.mark.parametrize("slots", [0, -1])
def test_no_slots(slots: int) -> None:
    """A host without slots starts nothing."""
    refused(mpi(spec={"slotsPerWorker": slots}), "TJ112", f"slotsPerWorker is {slots}")


@pytest.mark.parametrize(("policy", "severity"), [("All", "warning"), ("Running", "note"), ("None", "note")])
def test_clean_pod_policy_at_its_other_place(policy: str, severity: str) -> None:
    """`spec.cleanPodPolicy` beside runPolicy's."""
    chain(mpi(spec={"cleanPodPolicy": policy})).says("TJ112", severity, f"cleanPodPolicy {policy}")


def test_a_job_without_a_fixed_name() -> None:
    """Nothing of the output holds the name: hosts come from Trainer's hostfile."""
    out = chain(mpi(metadata={"generateName": "bench-"}))
    assert out.job["metadata"]["generateName"] == "bench-"


def test_the_name_has_room_for_the_launcher() -> None:
    """`<name>-launcher-0-0-<random>` is longer than that of a node."""
    assert chain(mpi(metadata={"name": "a" * 44})).job["metadata"]["name"] == "a" * 44
    refused(mpi(metadata={"name": "a" * 45}), "TJ105", "the name has 45 characters")


@pytest.mark.parametrize("on", TARGETS, ids=str)
def test_every_target_takes_it(on: object) -> None:
    """The mpi policy is in all four; the output was validated for each."""
    out = chain(mpi(GPU | {"resources": {}}, GPU), target(str(on)))
    assert out.runtime is not None


def test_noop_for_a_jaxjob() -> None:
    """It has no launcher."""
    assert not any(f.code == "TJ112" for f in chain(jax()).findings)
