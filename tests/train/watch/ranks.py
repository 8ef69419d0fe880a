"""Real ranks on this machine: processes with gloo."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def spawn(body: Callable[..., Any], world: int, *arguments: Any) -> None:
    """Runs body(rank, *arguments) on `world` ranks; raises what one of them raises."""
    import torch.multiprocessing as mp

    mp.start_processes(_rank, (world, free_port(), body, arguments), nprocs=world, start_method="fork")


def _rank(rank: int, world: int, port: int, body: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    try:
        body(rank, *arguments)
    finally:
        dist.destroy_process_group()
