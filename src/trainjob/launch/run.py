"""Options, topology, the run itself, and the last words of the pod."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from trainjob.launch import policy, preload, signals
from trainjob.launch.preload import Preload

MAX_RESTARTS: Final = 3
TERMINATION_LOG: Final = Path("/dev/termination-log")


def main(argv: Sequence[str]) -> int:
    """Runs the script on this pod's ranks; returns the exit code of the pod."""
    running: list[Any] = []  # the agent, once there is one
    grace = float(os.environ.get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "30"))
    signals.end_when_told(lambda: running[0].pids() if running else [], grace)
    # Counting GPUs must not initialise CUDA: a forked worker could not use it any more.
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    # A store of its own for every attempt: addresses of a dead attempt are never read.
    os.environ.setdefault("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1")
    os.environ.setdefault(policy.PROGRESS, str(Path(tempfile.gettempdir()) / f"trainjob-progress-{os.getpid()}"))
    try:
        from torch.distributed import run as torchrun
    except ImportError as error:
        print(f"trainjob launch: torch cannot be imported ({error}); run this in a training image", file=sys.stderr)
        return 2
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher import api

    from trainjob.launch import agent, worker

    args = _parser(torchrun).parse_args(list(argv))
    for name, value in topology(vars(args), os.environ, socket.gethostname()).items():
        setattr(args, name, value)
    if args.master_port is None:
        args.master_port = 29500
    config, command, arguments = torchrun.config_from_args(args)
    entry: Any = command
    if config.start_method == "fork" and not args.no_python:
        entry, arguments = worker.run, [args.module, args.training_script, *args.training_script_args]
        agent.Agent.preload = Preload(os.environ.get(preload.VARIABLE, ""), args.training_script, args.module)
        agent.Agent.preload.start()
    agent.Agent.made = running.append
    api.LocalElasticAgent = agent.Agent  # the name that launch_agent looks up
    try:
        api.elastic_launch(config=config, entrypoint=entry)(*arguments)
    except ChildFailedError as error:
        failure = agent.Agent.last or policy.Failure(error.get_first_failure()[0], 1)
        last_words(failure, agent.Agent.reason)
        return policy.exit_code(failure, agent.Agent.reason)
    except SignalException as told:
        # The pod was told to end. As a shell says it, and as the runtimes' podFailurePolicy knows it.
        agent.say(f"told to end by {told.sigval.name}")
        return 128 + int(told.sigval)
    return 0


def _parser(torchrun: Any) -> Any:
    """torchrun's own parser, with our defaults where neither a flag nor a PET_ variable speaks."""
    parser = torchrun.get_args_parser()
    parser.prog = "trainjob launch"
    defaults = {"start_method": "fork", "max_restarts": MAX_RESTARTS}
    parser.set_defaults(**{k: v for k, v in defaults.items() if f"PET_{k.upper()}" not in os.environ})
    return parser


def topology(args: Mapping[str, Any], environ: Mapping[str, str], hostname: str) -> dict[str, Any]:
    """What to change so that the nodes find each other again after a restart.

    `args`: torchrun's options. Trainer's variables select the static rendezvous, in which the nodes
    cannot agree on a restart; c10d can. It sorts nodes by address, so the addresses are chosen such
    that the node rank stays the pod's index and rank 0 is where the store is.
    """
    if args["standalone"] or args["rdzv_backend"] != "static" or args["rdzv_endpoint"]:
        return {}
    if args["nnodes"] in ("1", "1:1"):
        # Else torch takes the host's name for rank 0's address, which without a network nobody can look up.
        return {"rdzv_backend": "c10d", "rdzv_endpoint": "localhost:0", "rdzv_id": hostname, "local_addr": "localhost"}
    rank, host = int(args["node_rank"]), args["master_addr"]
    conf = args["rdzv_conf"]
    if "is_host" not in conf:
        conf = ",".join(filter(None, [conf, f"is_host={int(rank == 0)}"]))
    return {
        "rdzv_backend": "c10d",
        "rdzv_endpoint": f"{host}:{args['master_port'] or 29500}",
        # One rendezvous a job; its state lives and dies with the first pod.
        "rdzv_id": environ.get("PET_RDZV_ID") or host,
        "rdzv_conf": conf,
        # "~" sorts behind every host name. Only rank 0's address is ever used to connect.
        "local_addr": host if rank == 0 else f"~{rank:06d}.{hostname}",
    }


def last_words(failure: policy.Failure, reason: str) -> None:
    """The traceback of the rank that failed first, last in the log and as termination message."""
    text = f"trainjob launch: {failure.words}; {reason or 'no restart left'}"
    if failure.script_trace:
        text = f"{failure.script_trace}\n{text}"
    print(text, file=sys.stderr, flush=True)
    with contextlib.suppress(OSError):  # not in a pod
        # Kubernetes keeps 4096 bytes (2048 of a log): the end of the traceback says most.
        TERMINATION_LOG.write_text(text[-4000:] + "\n")
