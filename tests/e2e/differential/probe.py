#!/usr/bin/python3
"""Stands in for a training program: tells what it sees, joins its peers, ends as it is told.

It is called by every name that a command may use (python, torchrun, accelerate, ...) and as the
image's entrypoint. Each call writes one line to stdout, `@probe ` and a compressed JSON object.
Standard library only: it also runs under the real torchrun of the training image.

PROBE_PLAN says how to end: entries `RANK:ACTION` joined by `;`, where RANK may be `*` and the first
that matches holds. Actions: `exit=N`, `once=N` (N at the first try of the rank, then 0; needs
PROBE_STATE, a folder that outlives the pod), `sleep=S`, `oom`.
"""

# pathlib would double the start of a program that starts hundreds of times.
# ruff: noqa: PTH109, PTH110, PTH113, PTH114, PTH116, PTH118, PTH119, PTH123, PTH208

import base64
import fcntl
import hashlib
import json
import os
import re
import socket
import stat
import sys
import time
import zlib
from typing import Any

PEERS_SECONDS = 90
NAME_SECONDS = 25
LAST_WORDS_SECONDS = 2
# From the last peer's greeting to the end of rank 0, which may be the end of its peers' pods and logs.
PARTING_SECONDS = 4
FOREIGN_SECONDS = 4
# torch needs some seconds to be imported before torchrun asks whether a name is its own.
IMPORT_SECONDS = 5
ELASTIC_SECONDS = 20
SIDECAR_SECONDS = 15
SMALL_TEXT = 2000
LATER = "(a later try)"
# Programs that train; the others (pip, git, ...) only tell what they see.
TRAINERS = ("python", "torchrun", "accelerate", "entrypoint", "bash")
LAUNCHERS = ("torchrun", "accelerate")
HIDDEN_MOUNTS = ("/proc", "/sys", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/dev/termination-log")


def launch_of(words: list[str]) -> tuple[str | None, dict[str, str]]:
    """The launcher that a command line starts (`torchrun`, a torch module or accelerate) and its options."""
    name = os.path.basename(words[0])
    rest = words[1:]
    modules = {
        "torch.distributed.run": "torchrun",
        "torch.distributed.launch": "torchrun",
        "accelerate.commands.launch": "accelerate",
    }
    if name.startswith("python") and "-m" in rest:
        module = rest[rest.index("-m") + 1 :][:1]
        if module and module[0] in modules:
            name, rest = modules[module[0]], rest[rest.index("-m") + 2 :]
    if not name.startswith(LAUNCHERS):
        nested = [i for i, word in enumerate(rest) if os.path.basename(word) in LAUNCHERS]
        if not nested:
            return None, {}
        name, rest = os.path.basename(rest[nested[0]]), rest[nested[0] + 1 :]
    options: dict[str, str] = {}
    i = 0
    while i < len(rest):
        word = rest[i]
        if word.startswith("--"):
            key, equal, value = word[2:].replace("_", "-").partition("=")
            if not equal and i + 1 < len(rest) and not rest[i + 1].startswith("-"):
                value, i = rest[i + 1], i + 1
            options.setdefault(key, value)
        i += 1
    return name, options


def endpoint(words: list[str], env: dict[str, str]) -> tuple[str, str, str, str]:
    """Where this process looks for rank 0: (host, port, number of this node, number of nodes)."""
    launcher, options = launch_of(words)
    nodes, rank = env.get("PET_NNODES", ""), env.get("RANK", "")
    host, port = env.get("MASTER_ADDR", ""), env.get("MASTER_PORT", "")
    if launcher == "torchrun":
        nodes = options.get("nnodes", env.get("PET_NNODES", "1"))
        rank = options.get("node-rank", env.get("PET_NODE_RANK", "0"))
        host = options.get("master-addr", env.get("PET_MASTER_ADDR", ""))
        port = options.get("master-port", env.get("PET_MASTER_PORT", ""))
        both = options.get("rdzv-endpoint", env.get("PET_RDZV_ENDPOINT", ""))
        if both:
            host, _, own = both.partition(":")
            port = own or "29400"
            # The pod that owns the name is the one that listens.
            rank = "0" if host and own_address(host) else "1"
    elif launcher == "accelerate":
        nodes = options.get("num-machines", "1")
        rank = options.get("machine-rank", "0")
        host = options.get("main-process-ip", "")
        port = options.get("main-process-port", "")
    return host, port, rank, nodes


def own_address(host: str) -> bool:
    """Whether a name is this pod's, once it resolves; asked again for as long as torch takes to start."""
    end = time.monotonic() + IMPORT_SECONDS
    while host != socket.gethostname():
        try:
            return socket.gethostbyname(host) in socket.gethostbyname_ex(socket.gethostname())[2]
        except OSError:
            if time.monotonic() > end:
                return False
            time.sleep(0.3)
    return True


def rendezvous(words: list[str], env: dict[str, str]) -> dict[str, str]:
    """Rank 0 listens until every other node was there; the others go on until they reach it."""
    host, port, rank, nodes = endpoint(words, env)
    told = {"host": host, "port": port, "rank": rank, "nodes": nodes}
    few, colon, many = nodes.partition(":")
    if not host or not port.isdigit() or not few.isdigit():
        return {**told, "met": "no address"}
    if env.get("TORCHELASTIC_RUN_ID"):
        # torchrun's agent of rank 0 listens for its workers.
        return {**told, "met": reach(host, int(port), FOREIGN_SECONDS * 4)}
    if int(many or few) < 2:
        return {**told, "met": "alone"}
    if rank == "0":
        # Peers that cannot find the name will not come.
        seconds = ELASTIC_SECONDS if colon else PEERS_SECONDS if resolves(host) else 1
        seen = listen(int(port), int(many or few) - 1, seconds)
        return {**told, "met": "met peers" if colon and "met" in seen and " 0 of" not in seen else seen}
    job = re.sub(r"-(master|worker|node)-[0-9].*", "", env.get("HOSTNAME", "?"))
    return {**told, "met": reach(host, int(port), PEERS_SECONDS if host.startswith(job) else FOREIGN_SECONDS)}


def resolves(host: str) -> bool:
    """Whether a name can be found, now or soon; a pod knows its own without asking."""
    limit = time.monotonic() + NAME_SECONDS
    while time.monotonic() < limit:
        try:
            socket.gethostbyname(host)
            return True
        except OSError:
            time.sleep(0.5)
    return False


def listen(port: int, peers: int, seconds: float) -> str:
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        server.bind(("", port))
    except OSError as err:
        return f"cannot listen: {err.strerror}"
    server.listen(64)
    server.settimeout(1)
    seen: set[str] = set()
    end = time.monotonic() + seconds
    while len(seen) < peers and time.monotonic() < end:
        try:
            connection, _ = server.accept()
        except OSError:
            continue
        connection.settimeout(5)
        try:
            seen.add(connection.recv(200).decode())
            connection.sendall(b"yes")
        except OSError:
            pass
        connection.close()
    server.close()
    time.sleep(PARTING_SECONDS if seen else 0)
    return f"met {len(seen)} of {peers} peers"


def reach(host: str, port: int, seconds: float) -> str:
    end, why = time.monotonic() + seconds, "not tried"
    agent = bool(os.environ.get("TORCHELASTIC_RUN_ID"))
    while time.monotonic() < end:
        try:
            with socket.create_connection((host, port), timeout=5) as connection:
                if agent:
                    return "reached"
                connection.sendall(socket.gethostname().encode())
                if connection.recv(3) == b"yes":
                    return "reached"
                why = "no answer"
        except socket.gaierror:
            why = "name does not resolve"
        except OSError as err:
            why = f"not reached: {err.strerror or type(err).__name__}"
        time.sleep(0.3)
    return why


def mounts() -> dict[str, Any]:
    """Destination -> type, whether read-only, size of a tmpfs, and what small files are in it."""
    out = {}
    with open("/proc/self/mountinfo") as lines:
        for line in lines:
            fields = line.split()
            tail = fields[fields.index("-") + 1 :]
            place = fields[4].replace("\\040", " ")
            base = place == "/" or place.startswith(("/proc", "/sys")) or place in HIDDEN_MOUNTS
            if base or (place.startswith("/dev") and place != "/dev/shm"):
                continue
            found: dict[str, Any] = {"type": tail[0], "ro": "ro" in fields[5].split(",")}
            if tail[0] == "tmpfs":
                size = os.statvfs(place)
                found["size"] = size.f_blocks * size.f_frsize
            if os.path.isfile(place) or (os.path.islink(place + "/..data") and "serviceaccount" not in place):
                found["files"] = files(place)  # what the kubelet wrote; other volumes belong to the program
            out[place] = found
    return out


def files(place: str) -> dict[str, str]:
    """Relative path -> mode and content (text when short, else a digest)."""
    out: dict[str, str] = {}
    if os.path.isfile(place):
        return {".": content(place)}
    for folder, folders, names in os.walk(place):
        folders[:] = [f for f in folders if not f.startswith("..")]
        for name in sorted(names):
            if len(out) >= 40:
                return out
            full = os.path.join(folder, name)
            out[os.path.relpath(full, place)] = content(full)
    return out


def content(path: str) -> str:
    try:
        state = os.stat(path)
        if not stat.S_ISREG(state.st_mode):
            return "no regular file"
        with open(path, "rb") as stream:
            data = stream.read(1 << 20)
    except OSError as err:
        return str(err.strerror)
    text = data.decode("utf-8", "replace") if len(data) <= SMALL_TEXT else hashlib.sha256(data).hexdigest()
    return f"{stat.S_IMODE(state.st_mode):04o} {text}"


def first(*paths: str) -> str:
    for path in paths:
        try:
            with open(path) as stream:
                return stream.read().strip()
        except OSError:
            continue
    return ""


def limits() -> dict[str, str]:
    group = "/sys/fs/cgroup/"
    return {
        "memory": first(group + "memory/memory.limit_in_bytes", group + "memory.max"),
        "cpu quota": first(group + "cpu/cpu.cfs_quota_us", group + "cpu.max"),
        "cpu shares": first(group + "cpu/cpu.shares", group + "cpu.weight"),
    }


def status_fields(*wanted: str) -> dict[str, str]:
    out = {}
    for line in first("/proc/self/status").splitlines():
        key, _, value = line.partition(":")
        if key in wanted:
            out[key] = value.strip()
    return out


def look(words: list[str]) -> dict[str, Any]:
    host_file = [line for line in first("/etc/hosts").splitlines() if line and not line.startswith("#")]
    resolver = first("/etc/resolv.conf").splitlines()
    return {
        "argv": words,
        "cwd": os.getcwd(),
        "env": {k: v for k, v in os.environ.items() if k not in ("_", "SHLVL", "PWD", "OLDPWD")},
        "user": {"uid": os.getuid(), "gid": os.getgid(), "groups": sorted(os.getgroups())},
        "rights": status_fields("CapEff", "NoNewPrivs", "Seccomp"),
        "umask": status_fields("Umask"),
        "mounts": mounts(),
        "limits": limits(),
        "terminal": [os.isatty(0), os.isatty(1)],
        "devices of the host": os.path.exists("/dev/kmsg") and len(os.listdir("/dev")) > 40,
        "network of the host": len(socket.if_nameindex()) > 4,
        "processes of other containers": os.path.exists("/proc/1/comm") and first("/proc/1/comm") == "pause",
        "hosts": sorted(line for line in host_file if "127.0.0.1" not in line and "::" not in line),
        "resolver": [line for line in resolver if not line.startswith("nameserver")],
        "open files": os.sysconf("SC_OPEN_MAX"),
    }


def tell(seen: dict[str, Any]) -> None:
    text = base64.b64encode(zlib.compress(json.dumps(seen).encode(), 9)).decode()
    line = f"@probe {text}\n".encode()
    try:
        with open("/tmp/.probe-lock", "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            os.write(1, line)
    except OSError:
        os.write(1, line)


def plan(rank: str) -> tuple[str, str]:
    for entry in filter(None, os.environ.get("PROBE_PLAN", "").split(";")):
        who, _, action = entry.partition(":")
        if who in ("*", rank):
            name, _, value = action.partition("=")
            return name, value
    return "exit", "0"


def tries(rank: str) -> int:
    """How often this rank was here before; kept in PROBE_STATE."""
    side = re.sub(r".*-(master|worker|node)-[0-9].*", r"\1", os.environ["HOSTNAME"])
    path = os.path.join(os.environ["PROBE_STATE"], f"tries-{side}-{rank}")
    try:
        with open(path, "a+") as stream:
            stream.write(".")
            stream.flush()
            stream.seek(0)
            return len(stream.read()) - 1
    except OSError:
        return 0


def end(rank: str, before: int) -> int:
    action, value = plan(rank)
    if action == "exit":
        return int(value)
    if action == "once":
        return 0 if before else int(value)
    if action == "sleep":
        time.sleep(float(value))
        return 0
    if action == "oom":
        hoard: list[bytes] = []
        while True:
            hoard.append(b"x" * (1 << 24))
    raise SystemExit(f"PROBE_PLAN: no action {action!r}")


def main() -> None:
    words = [os.path.basename(sys.argv[0]), *sys.argv[1:]]
    name = words[0]
    if name == "bash":
        script = [word for word in words[1:] if not word.startswith("-")]
        options = [word for word in words[1:] if word.startswith("-") and word.endswith("c")]
        if options or (script and os.path.exists(script[0])):
            os.execv("/bin/bash", ["bash", *sys.argv[1:]])
    seen = look(words)
    rank = os.environ.get("RANK") or os.environ.get("PET_NODE_RANK") or "0"
    trains = name.startswith(TRAINERS) or bool(os.environ.get("TORCHELASTIC_RUN_ID"))
    before = tries(rank) if trains and "PROBE_STATE" in os.environ else 0
    if trains:  # the peers of a later try may have ended
        seen["rendezvous"] = {"met": LATER} if before else rendezvous(words, dict(os.environ))
    tell(seen)
    if name == "ship":
        time.sleep(SIDECAR_SECONDS)  # a sidecar goes on while the training runs
    if trains:
        code = end(rank, before)
        time.sleep(LAST_WORDS_SECONDS if code else 0)  # so that what it said is read before it is started again
        sys.exit(code)


if __name__ == "__main__":
    main()
