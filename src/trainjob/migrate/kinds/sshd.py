"""The pieces of ssh between a launcher and its nodes, for images that were made for v1.

Nothing here reads the image's own ssh configuration or the user's home: the key and the authorised keys come from
Trainer's Secret, wherever the user's home is, and port 2222 needs no right of root. OpenSSH facts: sshd_config(5),
ssh(1); a private key of the calling user is refused when others may read it (sshkey_perm_ok in authfile.c), and
Trainer 2.3 mounts it with 0640, 2.0 to 2.2 with 0644.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trainjob.emit import SSH_AUTH_PATH, SSH_AUTH_VOLUME

PORT: Final = 2222
KEY_VOLUME: Final = "mpi-ssh-key"
KEY_MOUNT: Final = "/etc/mpi-ssh-key"
_KEY: Final = f"{KEY_MOUNT}/id_rsa"
# Both in v1 and in v2.
HOSTFILE: Final = "/etc/mpi/hostfile"
_SSH: Final = (
    f"ssh -F /dev/null -p {PORT} -i {_KEY} -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null "
    "-o LogLevel=ERROR"
)
# kubectl exec gave a rank the container's variables and folder; sshd gives it neither. `export -p` writes them in a
# form that sh reads back, and ForceCommand puts them before the command that Open MPI asks for.
_SSHD: Final = f"""\
set -e
umask 077
d=/tmp/mpi-sshd
mkdir -p $d
if [ -w /run ]; then mkdir -p /run/sshd; fi
[ -f $d/host ] || ssh-keygen -q -t ed25519 -N '' -f $d/host
export -p > $d/env
printf '%s\\n' ". $d/env" "cd '$PWD'" 'exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"' > $d/run
exec /usr/sbin/sshd -D -e -f /dev/null -p {PORT} -h $d/host \\
  -o AuthorizedKeysFile={SSH_AUTH_PATH}/authorized_keys -o StrictModes=no \\
  -o PermitRootLogin=prohibit-password -o PasswordAuthentication=no \\
  -o PidFile=none -o "ForceCommand=/bin/sh $d/run"
"""


def sshd_command() -> list[str]:
    """What a node runs: sshd in the foreground, logging to stderr."""
    return ["/bin/sh", "-c", _SSHD]


def launcher_env() -> list[dict[str, str]]:
    """How Open MPI reaches the nodes: the words that it puts before a host name, and that no rank starts others.

    Open MPI 5 starts ranks with PRRTE, whose parameters have other names; Trainer sets those of Open MPI 4 only, so the
    hostfile is named here for PRRTE too.
    """
    values = {
        "OMPI_MCA_plm_rsh_agent": _SSH,
        "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
        "PRTE_MCA_plm_ssh_agent": _SSH,
        "PRTE_MCA_plm_ssh_no_tree_spawn": "1",
        "PRTE_MCA_prte_default_hostfile": HOSTFILE,
        "PRTE_MCA_prte_keep_fqdn_hostnames": "1",
    }
    return [{"name": name, "value": value} for name, value in values.items()]


def key_container(image: str, security: Mapping[str, Any] | None) -> dict[str, Any]:
    """The init container of the launcher; the volume of the key is added to the pod by Trainer."""
    out: dict[str, Any] = {
        "name": KEY_VOLUME,
        "image": image,
        "command": ["/bin/sh", "-c", f"umask 077 && cat {SSH_AUTH_PATH}/id_rsa > {_KEY}"],
        "volumeMounts": [
            {"name": SSH_AUTH_VOLUME, "mountPath": SSH_AUTH_PATH, "readOnly": True},
            {"name": KEY_VOLUME, "mountPath": KEY_MOUNT},
        ],
    }
    return {**out, "securityContext": dict(security)} if security else out
