"""ssh takes the place of `kubectl exec` between an MPIJob's launcher and its Workers.

What it does: the Workers run sshd at port 2222, without the image's own sshd_config, and hand the container's
variables and folder to each rank as `kubectl exec` did; the launcher's Open MPI uses ssh with the key that Trainer
makes, copied by an init container because ssh refuses a key that others may read. Refuses what cannot work that way.
Why it matters: the image must now hold sshd, ssh-keygen and ssh, which v1 did not need. kubexec.sh and
discover_hosts.sh are gone; a worker command that did more than wait is not run any more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from trainjob.emit import SSH_AUTH_PATH, SSH_AUTH_VOLUME
from trainjob.findings import Finding
from trainjob.kube.yaml import Path
from trainjob.migrate.kinds.sshd import HOSTFILE, KEY_MOUNT, KEY_VOLUME, PORT, key_container, launcher_env, sshd_command
from trainjob.migrate.rule import Draft, RoleDraft, Rule, Say
from trainjob.v1.pytorchjob import PyTorchJob

_IDLE: Final = re.compile(
    r"(?:/bin/|/usr/bin/|/usr/sbin/)?(?:sleep\s+(?:infinity|\d+[smhd]?)|tail\s+-f\s+/dev/null|sshd\b[^;&|]*)\s*;?\s*"
)
_SHELL: Final = re.compile(r"(?:/bin/|/usr/bin/)?(?:ba|da)?sh\s+-l?c\s+")
_NOT_OPEN_MPI: Final = re.compile(r"\bI_MPI_\w+|\bmpiexec\.hydra\b|\bMPICH_\w+|\bhydra\b")
# What only v1's kubectl delivery brought, or what would take ssh out of our hands.
_V1_ONLY: Final = re.compile(r"discover_hosts\.sh|kubexec\.sh|/opt/kube\b|kubectl\s+exec|\bplm_rsh_(?:agent|args)\b")
# kubeflow/trainer v2.3.0 pkg/constants/constants.go, MPIReservedEnvNames.
_RESERVED: Final = (
    "OMPI_MCA_orte_default_hostfile", "OMPI_MCA_plm_rsh_args", "OMPI_MCA_orte_keep_fqdn_hostnames",
    "OMPI_MCA_orte_set_default_slots",
)  # fmt: skip
_NO_GPU: Final = ("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES")


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    say = Say("TJ217", job)
    launcher, worker = draft.roles
    _check_program(say, launcher)
    for role in draft.roles:
        _check_user(say, role)
    if _user(launcher) != _user(worker):
        raise say.refuse(
            (*worker.main_path, "securityContext"),
            f"launcher and Workers run as {_user(launcher)} and {_user(worker)}: ssh logs in with the launcher's user",
            "give both the same runAsUser",
        )
    _check_worker_command(say, worker)
    yield from _launcher(say, launcher)
    yield from _worker(say, worker)
    yield say.warning(
        launcher.main_path,
        "ranks are started through ssh instead of kubectl exec: the Workers' image must hold /usr/sbin/sshd and "
        "ssh-keygen, the launcher's ssh; the user must have a login shell and an account that is not locked",
        "add openssh-server and openssh-client to the image (`docker run IMAGE sh -c 'ls /usr/sbin/sshd; which ssh'`)",
    )
    if worker.pod.get("hostNetwork") or launcher.pod.get("hostNetwork"):
        yield say.warning(
            worker.at("hostNetwork"),
            f"on the host network sshd takes port {PORT} of the node: two such pods cannot share one",
        )


def _user(role: RoleDraft) -> str:
    """Who a container runs as, as far as the manifest says."""
    for context in (role.main.get("securityContext") or {}, role.pod.get("securityContext") or {}):
        if context.get("runAsUser") is not None:
            return f"user {context['runAsUser']}"
    return "the image's user"


def _check_user(say: Say, role: RoleDraft) -> None:
    pod, main = role.pod.get("securityContext") or {}, role.main.get("securityContext") or {}
    at: Path = (*role.main_path, "securityContext")
    uid = main.get("runAsUser", pod.get("runAsUser"))
    other = (uid is not None and uid != 0) or main.get("runAsNonRoot", pod.get("runAsNonRoot"))
    if other and pod.get("fsGroup") is None:
        raise say.refuse(
            at,
            "the pod runs as another user than root and has no fsGroup, so the user cannot read the ssh key of "
            "Trainer's Secret (mode 0640, owner root)",
            "set securityContext.fsGroup of the pod to a group of that user",
        )
    dropped = [str(c).upper() for c in (main.get("capabilities") or {}).get("drop") or ()]
    if not other and "ALL" in dropped:
        raise say.refuse(
            (*at, "capabilities", "drop"),
            "all capabilities are dropped: sshd run by root needs SETUID, SETGID and SYS_CHROOT",
            "run launcher and Workers as another user (runAsUser and fsGroup), or keep these three",
        )


def _check_program(say: Say, launcher: RoleDraft) -> None:
    words = [*(launcher.command or ()), *(launcher.args or ())]
    at: Path = (*launcher.main_path, "command" if launcher.command else "args")
    text = "\n".join(words)
    env = "\n".join(f"{e['name']}={e.get('value', '')}" for e in launcher.env if e["name"] not in _RESERVED)
    for where, what in ((at, text), ((*launcher.main_path, "env"), env)):
        if match := _V1_ONLY.search(what):
            raise say.refuse(
                where,
                f"{match[0]} belongs to v1's kubectl delivery or chooses another remote shell; there is no such thing "
                "in v2, and Open MPI needs the remote shell that this migration sets",
                "remove it; for elastic Horovod keep the v1 operator or the mpi-operator, v2 has a fixed hostfile",
            )
        if match := _NOT_OPEN_MPI.search(what):
            raise say.refuse(
                where,
                f"{match[0]}: Trainer's mpi policy serves Open MPI only (mpiImplementation: OpenMPI)",
                "use an image with Open MPI; the mpi-operator (kubeflow.org/v2beta1) serves Intel MPI and MPICH",
            )
    if re.search(r"\bdeepspeed\b", text) and not re.search(r"--launcher[=\s]+\"?(?:openmpi|mpich)|mpirun", text):
        raise say.refuse(
            at,
            "deepspeed starts its ranks with pdsh and a configuration of its own, not with the ssh that is set here",
            "say `deepspeed --launcher openmpi`, or start the script with mpirun",
        )


def _check_worker_command(say: Say, worker: RoleDraft) -> None:
    words = [*(worker.command or ()), *(worker.args or ())]
    if not worker.command:  # v1 put `sleep 365d` there; args alone went with it
        return
    text = _SHELL.sub("", " ".join(words))
    if not _IDLE.fullmatch(text.strip()):
        raise say.refuse(
            (*worker.main_path, "command"),
            f"the Workers run {' '.join(words)[:80]!r}, which does more than wait for ranks; in v2 they run sshd",
            "move what it does to an init container, to the image, or to the command that mpirun starts",
        )


def _launcher(say: Say, role: RoleDraft) -> Iterator[Finding]:
    lost = [e["name"] for e in role.env if e["name"] in _RESERVED]
    if lost:
        yield say.warning(
            (*role.main_path, "env"), f"{', '.join(lost)}: dropped, Trainer sets its own value and refuses another"
        )
    overwritten = [e["name"] for e in role.env if e["name"] in _NO_GPU]
    if overwritten:
        which = "it" if len(overwritten) == 1 else "them"
        yield say.note(
            (*role.main_path, "env"),
            f"{', '.join(overwritten)}: dropped, because the v1 operator emptied {which}",
        )
    role.env = [e for e in role.env if e["name"] not in (*_RESERVED, *_NO_GPU)]
    role.env += [
        *launcher_env(),
        # The launcher has no GPU; v1 hid those of the node from it. An empty text, see TJ204.
        *({"name": name} for name in _NO_GPU),
    ]
    _mount(role, {"name": KEY_VOLUME, "mountPath": KEY_MOUNT})
    role.spec["volumes"] = [*role.spec.get("volumes", ()), {"name": KEY_VOLUME, "emptyDir": {"medium": "Memory"}}]
    context = role.container.get("securityContext")
    role.init_containers.append(key_container(role.image or "", context))
    yield say.note(
        role.main_path,
        "the launcher gets OMPI_MCA_plm_rsh_agent (Open MPI 4) and PRTE_MCA_plm_ssh_agent (5), and an init container "
        f"that copies the key from {SSH_AUTH_PATH} (volume {SSH_AUTH_VOLUME} of Trainer) with mode 0600; the hostfile "
        f"is at {HOSTFILE} as in v1",
    )


def _worker(say: Say, role: RoleDraft) -> Iterator[Finding]:
    if role.command or role.args:
        place = "command" if role.command else "args"
        yield say.note((*role.main_path, place), "the Workers' waiting is replaced by sshd")
    role.command, role.args = sshd_command(), None
    if "startupProbe" in role.container:
        yield say.warning(
            (*role.main_path, "startupProbe"),
            "the launcher starts when the Workers are Ready: this probe must fail until sshd answers",
            f"remove it: without one the probe is a connection to port {PORT}",
        )
    else:  # asked until it succeeds, so that it does not fill sshd's log
        role.container["startupProbe"] = {"tcpSocket": {"port": PORT}, "periodSeconds": 1, "failureThreshold": 300}
    yield say.note(
        role.main_path,
        f"the Workers run sshd at port {PORT}; each rank gets the container's variables and starts in its folder, as "
        "with kubectl exec",
    )


def _mount(role: RoleDraft, mount: Mapping[str, Any]) -> None:
    role.container["volumeMounts"] = [*role.container.get("volumeMounts", ()), dict(mount)]


RULE = Rule("TJ217", "mpi-ssh", (), _apply)
