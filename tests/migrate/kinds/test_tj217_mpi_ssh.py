"""TJ217: ssh between launcher and Workers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.migrate.kinds.support import Obj, chain, jax, mpi, refused, values
from trainjob.migrate.kinds import sshd, tj217_mpi_ssh

RULE = tj217_mpi_ssh.RULE


def test_workers_run_sshd_and_the_launcher_has_the_key() -> None:
    """The pieces that must fit: port, key, authorised keys, probe."""
    out = chain(mpi())
    command = out.container()["command"]
    assert command[:2] == ["/bin/sh", "-c"]
    assert "-p 2222" in command[2]
    assert "AuthorizedKeysFile=/etc/mpi-ssh/authorized_keys" in command[2]
    assert "args" not in out.container()
    assert out.container()["startupProbe"]["tcpSocket"] == {"port": 2222}
    shell = values(out)["OMPI_MCA_plm_rsh_agent"]
    assert shell == values(out)["PRTE_MCA_plm_ssh_agent"]
    assert shell is not None
    assert "-p 2222 -i /etc/mpi-ssh-key/id_rsa" in shell
    (init,) = out.pod("launcher")["initContainers"]
    assert init["image"] == out.trainer["image"]
    assert [m["mountPath"] for m in init["volumeMounts"]] == ["/etc/mpi-ssh", "/etc/mpi-ssh-key"]
    assert out.container("launcher")["volumeMounts"] == [{"name": "mpi-ssh-key", "mountPath": "/etc/mpi-ssh-key"}]
    assert out.pod("launcher")["volumes"] == [{"name": "mpi-ssh-key", "emptyDir": {"medium": "Memory"}}]
    out.says("TJ217", "warning", "must hold /usr/sbin/sshd")


def test_own_volumes_and_init_containers_stay() -> None:
    """The key is added to what the launcher has."""
    pod = {"volumes": [{"name": "d", "emptyDir": {}}], "initContainers": [{"name": "fetch", "image": "f:1"}]}
    out = chain(mpi({"volumeMounts": [{"name": "d", "mountPath": "/d"}]}, launcher_pod=pod))
    assert [v["name"] for v in out.pod("launcher")["volumes"]] == ["d", "mpi-ssh-key"]
    assert [c["name"] for c in out.pod("launcher")["initContainers"]] == ["fetch", "mpi-ssh-key"]
    assert [m["name"] for m in out.container("launcher")["volumeMounts"]] == ["d", "mpi-ssh-key"]


def test_the_launcher_sees_no_gpu() -> None:
    """v1 emptied both variables, over the user's own."""
    out = chain(mpi({"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}))
    assert out.env["NVIDIA_VISIBLE_DEVICES"] == {"name": "NVIDIA_VISIBLE_DEVICES"}
    assert out.env["NVIDIA_DRIVER_CAPABILITIES"] == {"name": "NVIDIA_DRIVER_CAPABILITIES"}
    out.says("TJ217", "note", "NVIDIA_VISIBLE_DEVICES: dropped")


def test_reserved_names_are_dropped() -> None:
    """Trainer 2.3 would refuse the TrainJob for them."""
    env = [{"name": n, "value": "x"} for n in ("OMPI_MCA_plm_rsh_args", "OMPI_MCA_orte_set_default_slots")]
    out = chain(mpi({"env": env}))
    assert not {"OMPI_MCA_plm_rsh_args", "OMPI_MCA_orte_set_default_slots"} & set(values(out))
    out.says("TJ217", "warning", "OMPI_MCA_plm_rsh_args, OMPI_MCA_orte_set_default_slots: dropped")


@pytest.mark.parametrize(
    "command",
    [
        ["sleep", "infinity"],
        ["sleep", "365d"],
        ["/bin/sh", "-c", "sleep infinity"],
        ["bash", "-c", "tail -f /dev/null"],
        ["/usr/sbin/sshd", "-De"],
    ],
)
def test_a_worker_that_waits_runs_sshd(command: list[str]) -> None:
    """Whatever it waited with."""
    out = chain(mpi(worker={"command": command}))
    assert out.container()["command"] == sshd.sshd_command()
    out.says("TJ217", "note", "waiting is replaced by sshd")


@pytest.mark.parametrize(
    "command",
    [
        ["sh", "-c", "pip install x && sleep infinity"],
        ["python", "worker.py"],
        ["sh", "-c", "sleep 1; serve"],
        ["sh", "-c", "/usr/sbin/sshd && python w.py"],
    ],
)
def test_a_worker_that_does_something_is_refused(command: list[str]) -> None:
    """It would not be done any more."""
    refused(mpi(worker={"command": command}), "TJ217", "more than wait for ranks")


@pytest.mark.parametrize(
    ("launcher", "pattern"),
    [
        ({"command": ["horovodrun", "--host-discovery-script", "/etc/mpi/discover_hosts.sh"]}, "discover_hosts.sh"),
        ({"command": ["mpirun", "--mca", "plm_rsh_agent", "rsh"]}, "plm_rsh_agent belongs"),
        ({"env": [{"name": "PRTE_MCA_plm_ssh_agent", "value": "/etc/mpi/kubexec.sh"}]}, "kubexec.sh"),
        ({"env": [{"name": "I_MPI_DEBUG", "value": "5"}]}, "I_MPI_DEBUG: Trainer's mpi policy serves Open MPI only"),
        ({"command": ["mpiexec.hydra", "-n", "2"]}, "mpiexec.hydra"),
        ({"command": ["deepspeed", "train.py"]}, "deepspeed starts its ranks with pdsh"),
    ],
)
def test_what_is_known_not_to_work(launcher: Obj, pattern: str) -> None:
    """Each with a way out."""
    refused(mpi(launcher), "TJ217", pattern)


def test_deepspeed_through_open_mpi_is_fine() -> None:
    """It calls mpirun."""
    chain(mpi({"command": ["deepspeed", "--launcher", "openmpi", "train.py"]}))


def test_users() -> None:
    """Another user than root needs a group that can read the key, root some capabilities; both roles are one user."""
    user: Obj = {"securityContext": {"runAsUser": 1000}}
    refused(mpi(user, user), "TJ217", "no fsGroup")
    group: Obj = {"securityContext": {"fsGroup": 1000}}
    chain(mpi(user, user, launcher_pod=group, worker_pod=group))
    refused(mpi(user, launcher_pod=group), "TJ217", "launcher and Workers run as user 1000 and the image's user")
    dropped: Obj = {"securityContext": {"capabilities": {"drop": ["ALL"]}}}
    refused(mpi(worker=dropped), "TJ217", "SETUID, SETGID and SYS_CHROOT")


def test_host_names_of_workers_are_rewritten() -> None:
    """In the launcher's command; there is no Master that shifts them by one."""
    out = chain(mpi({"command": ["mpirun", "-H", "demo-worker-0:2,demo-worker-1:2", "x"]}))
    assert out.trainer["command"][2] == "demo-node-0-0.demo:2,demo-node-0-1.demo:2"


def test_selectors_on_roles_are_rewritten() -> None:
    """Workers are the job `node`, the launcher is `launcher`."""
    labels = {"training.kubeflow.org/job-name": "demo", "training.kubeflow.org/replica-type": "worker"}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    out = chain(mpi(worker_pod={"affinity": affinity}))
    (found,) = out.pod()["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert found["labelSelector"]["matchLabels"] == {
        "jobset.sigs.k8s.io/jobset-name": "demo",
        "jobset.sigs.k8s.io/replicatedjob-name": "node",
    }


def test_host_network() -> None:
    """Port 2222 is then one of the node's."""
    out = chain(mpi(worker_pod={"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}))
    out.says("TJ217", "warning", "port 2222 of the node")
    assert not any("29500" in f.message for f in out.findings)


def test_a_startup_probe_of_the_users_stays() -> None:
    """It must then say that sshd answers."""
    out = chain(mpi(worker={"startupProbe": {"exec": {"command": ["true"]}}}))
    assert out.container()["startupProbe"] == {"exec": {"command": ["true"]}}
    out.says("TJ217", "warning", "must fail until sshd answers")


def test_a_rank_sees_the_containers_variables_and_folder(tmp_path: Path) -> None:
    """The script up to sshd, run here; then what ForceCommand would run. Quotes and line ends survive."""
    script = sshd.sshd_command()[2]
    setup, _, _ = script.partition("exec /usr/sbin/sshd")
    setup = setup.replace("d=/tmp/mpi-sshd", f"d={tmp_path}/d").replace("ssh-keygen -q", ": ssh-keygen")
    setup = setup.replace("mkdir -p /run/sshd", ":")
    work = tmp_path / "a folder"
    work.mkdir()
    value = 'it\'s "quoted" $x\nand `two` lines'
    env = {"PATH": "/usr/bin:/bin", "VALUE": value}
    subprocess.run(["/bin/sh", "-c", setup], check=True, cwd=work, env=env)
    asked = {"PATH": "/usr/bin:/bin", "SSH_ORIGINAL_COMMAND": 'printf "%s|%s" "$VALUE" "$(pwd)"'}
    done = subprocess.run(
        ["/bin/sh", f"{tmp_path}/d/run"], check=True, cwd="/", env=asked, capture_output=True, text=True
    )
    assert done.stdout == f"{value}|{work}"
    assert (tmp_path / "d" / "env").stat().st_mode & 0o077 == 0


def test_noop_for_a_jaxjob() -> None:
    """Only an MPIJob has a launcher."""
    assert not any("OMPI" in name for name in values(chain(jax())))
