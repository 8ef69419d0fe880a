"""The docker engine: finds it, installs and starts it where there is none, stops only what it started."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any, Final

from .context import Context, read_json, write_json
from .problems import ClusterError
from .shell import tail

# Command -> Debian package that has it.
PACKAGES: Final = {
    "dockerd": "docker.io",
    "docker": "docker.io",
    "iptables": "iptables",
    "ip": "iproute2",
    "debootstrap": "debootstrap",
    "zstd": "zstd",
}
_RUNTIME: Final = "runc-without-sys-resource"
_START_SECONDS: Final = 90


def running(ctx: Context) -> bool:
    """Whether an engine answers."""
    return ctx.sh.run("docker", "version", "--format", "{{.Server.Version}}", timeout=20, check=False).ok


def ensure(ctx: Context) -> bool:
    """Makes sure that an engine answers. True when this call started it."""
    if running(ctx):
        return False
    if os.environ.get("DOCKER_HOST") or os.environ.get("DOCKER_CONTEXT"):
        raise ClusterError(
            "the docker engine that DOCKER_HOST or DOCKER_CONTEXT names does not answer",
            "start it, or unset the variable",
        )
    if ctx.host.system != "linux":
        raise ClusterError("docker is not running", "start Docker Desktop (or another docker engine) and try again")
    if not ctx.host.root:
        what = "docker is not running" if shutil.which("docker") else "there is no docker here"
        if "permission denied" in ctx.sh.run("docker", "version", check=False).err:
            raise ClusterError(
                "docker is running, but you may not use it",
                "join the group docker (`sudo usermod -aG docker $USER`, then log in again), or run this as root",
            )
        raise ClusterError(
            what,
            "start it (`sudo systemctl start docker`) and see that you may use it (`docker ps`), or run this as root:"
            " then docker is installed and started for you",
        )
    require_commands(ctx, "dockerd", "docker", "iptables", "ip")
    if running(ctx):
        # Where a service manager runs, the package has started it.
        return False
    with ctx.progress.step("docker engine: start"):
        _start(ctx)
    return True


def require_commands(ctx: Context, *commands: str) -> None:
    """Installs the Debian packages of commands that are missing."""
    missing = sorted({PACKAGES[command] for command in commands if not shutil.which(command, path=_path())})
    if not missing:
        return
    names = " ".join(missing)
    if not shutil.which("apt-get"):
        raise ClusterError(f"missing here: {names}", "install them with the package manager of this system")
    if not ctx.host.root:
        raise ClusterError(f"missing here: {names}", f"run `sudo apt-get install {names}`, or run this as root")
    with ctx.progress.step(f"packages: {names}"):
        env = {"DEBIAN_FRONTEND": "noninteractive"}
        wait = ("-o", "DPkg::Lock::Timeout=300")
        hint = "see that this machine reaches its Debian packages (`apt-get update`)"
        ctx.sh.run("apt-get", *wait, "update", env=env, timeout=300, next_step=hint)
        ctx.sh.run(
            "apt-get", *wait, "install", "-y", "--no-install-recommends", *missing,
            env=env, timeout=900, next_step=hint,
        )  # fmt: skip


def require_capable(ctx: Context) -> None:
    """Fails when a running engine cannot start privileged containers here, as kind needs."""
    if ctx.host.sys_resource or _runtime_of(ctx) != "runc":
        return
    raise ClusterError(
        "this machine lacks CAP_SYS_RESOURCE and the running docker engine starts containers with plain runc:"
        " privileged containers, which kind needs, cannot start",
        "stop the engine (then this command starts one that knows how), or make"
        f" {Path(__file__).with_name(_RUNTIME)} its default runtime",
    )


def stop_if_ours(ctx: Context) -> bool:
    """Stops the engine if this harness started it and nothing runs on it. True when it was stopped."""
    record = read_json(_record(ctx))
    pid = record.get("pid")
    if not pid or not _alive(pid, "dockerd", record.get("born")):
        _record(ctx).unlink(missing_ok=True)
        return False
    if ctx.sh.run("docker", "ps", "--quiet", check=False).out.strip():
        ctx.progress.say("docker engine: left running, containers use it")
        return False
    with ctx.progress.step("docker engine: stop"):
        os.kill(pid, signal.SIGTERM)
        for _ in range(300):
            if not _alive(pid, "dockerd", record.get("born")):
                break
            time.sleep(0.1)
        else:
            os.kill(pid, signal.SIGKILL)
    _record(ctx).unlink(missing_ok=True)
    return True


def daemon_config(runtime: Path | None) -> dict[str, Any]:
    """The engine's configuration; with a runtime where plain runc cannot work."""
    config: dict[str, Any] = {"log-driver": "json-file", "log-opts": {"max-size": "10m", "max-file": "2"}}
    if runtime:
        config["runtimes"] = {_RUNTIME: {"path": str(runtime)}}
        config["default-runtime"] = _RUNTIME
    return config


def _start(ctx: Context) -> None:
    folder = ctx.home / "engine"
    folder.mkdir(parents=True, exist_ok=True)
    runtime = None
    if not ctx.host.sys_resource:
        runtime = folder / _RUNTIME
        # A copy, because the engine outlives this checkout.
        shutil.copy(Path(__file__).with_name(_RUNTIME), runtime)
        runtime.chmod(0o755)
    config = folder / "daemon.json"
    write_json(config, daemon_config(runtime))
    _clear_stale()
    log = folder / "dockerd.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            ["dockerd", "--config-file", str(config)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            env={**os.environ, "PATH": _path()},
            cwd="/",
        )
    write_json(_record(ctx), {"pid": process.pid, "born": _born(process.pid)})
    deadline = time.monotonic() + _START_SECONDS
    try:
        while not running(ctx):
            if process.poll() is not None:
                raise ClusterError(
                    f"the docker engine ended at once (exit {process.returncode})",
                    f"the reason is in {log}; another engine may be starting, or this machine forbids containers",
                    tail(log.read_text(errors="replace"), 8),
                )
            if time.monotonic() > deadline:
                words = tail(log.read_text(errors="replace"), 8)
                raise ClusterError(f"the docker engine does not answer after {_START_SECONDS} s", f"see {log}", words)
            time.sleep(0.5)
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        _record(ctx).unlink(missing_ok=True)
        raise


def _clear_stale() -> None:
    """Removes what an engine that was killed left behind: it would keep the next one from starting.

    A process number may belong to another program by now, above all after the machine was restarted.
    """
    for file, name in (
        (Path("/var/run/docker.pid"), "dockerd"),
        (Path("/var/run/docker/containerd/containerd.pid"), "containerd"),
        (Path("/run/containerd/containerd.pid"), "containerd"),
    ):
        with contextlib.suppress(OSError, ValueError):
            if not _alive(int(file.read_text()), name):
                file.unlink()
    # A socket that nobody listens on makes the engine believe in a containerd of the system.
    for path in ("/run/containerd/containerd.sock", "/var/run/docker/containerd/containerd.sock"):
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(path)
            except ConnectionRefusedError:
                Path(path).unlink(missing_ok=True)
            except OSError:
                continue


def data_folder(ctx: Context) -> Path:
    """Where the engine keeps its images. Of one that runs in a virtual machine: the nearest folder here."""
    return Path(ctx.sh.run("docker", "info", "--format", "{{.DockerRootDir}}").out.strip() or "/")


def _runtime_of(ctx: Context) -> str:
    return ctx.sh.run("docker", "info", "--format", "{{.DefaultRuntime}}", check=False).out.strip()


def _record(ctx: Context) -> Path:
    return ctx.home / "engine" / "started.json"


def _comm(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _born(pid: int) -> str:
    """When a process started, in the kernel's ticks: tells it from a later one with the same number."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def _alive(pid: int, comm: str, born: str | None = None) -> bool:
    if born and _born(pid) != born:
        return False
    with contextlib.suppress(OSError, IndexError):
        # A zombie has a name too, and does nothing any more.
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            return False
    return _comm(pid) == comm


def _path() -> str:
    """PATH with the folders of system programs, which an ordinary user's lacks."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin", "/sbin"])
