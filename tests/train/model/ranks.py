"""Two processes that train the same thing in every way that the tests compare."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from tests.train.model import tools

WORLD = 2


def scenarios(root: Path) -> dict[str, Callable[[], Any]]:
    """Configurations by their names; each is trained by all ranks together."""
    llama, tied, weights, merged = root / "llama", root / "tied", root / "weights", root / "merged"
    odd, c = root / "odd", tools.config
    return {
        "fsdp": lambda: c(llama, mode="fsdp"),
        "ddp": lambda: c(llama, mode="ddp"),
        "fsdp bf16": lambda: c(llama, mode="fsdp", precision="bf16"),
        "ddp bf16": lambda: c(llama, mode="ddp", precision="bf16"),
        "fsdp kept": lambda: c(llama, mode="fsdp", reshard_after_forward=False),
        "fsdp offload": lambda: c(llama, mode="fsdp", cpu_offload=True),
        "fsdp recompute": lambda: c(llama, mode="fsdp", activation_checkpointing=True),
        "ddp recompute bf16": lambda: c(llama, mode="ddp", precision="bf16", activation_checkpointing=True),
        "fsdp tied": lambda: c(tied, mode="fsdp"),
        "ddp tied": lambda: c(tied, mode="ddp"),
        "fsdp odd": lambda: c(odd, mode="fsdp"),
        "fsdp lora": lambda: c(llama, mode="fsdp", lora_rank=3),
        "ddp lora": lambda: c(llama, mode="ddp", lora_rank=3),
        "fsdp lora bf16": lambda: c(llama, mode="fsdp", lora_rank=3, precision="bf16"),
        "ddp nf4": lambda: c(weights, mode="ddp", init="pretrained", lora_rank=3, quantize="nf4"),
        "fsdp read": lambda: c(weights, mode="fsdp", init="pretrained"),
        "fsdp sent": lambda: c(merged, mode="fsdp", init="pretrained"),
        "ddp sent": lambda: c(merged, mode="ddp", init="pretrained"),
    }


def prepare(root: Path) -> None:
    """The models that `scenarios` names."""
    tools.folder(root / "llama")
    tools.folder(root / "tied", tie_word_embeddings=True)
    tools.folder(
        root / "odd", intermediate_size=57, vocab_size=tools.VOCABULARY + 1
    )  # rows that two ranks cannot halve
    tools.pretrained(root / "weights", tie_word_embeddings=True, shard="20KB")
    # Experts are separate in the files and one tensor in the model: transformers converts them.
    tools.pretrained(root / "merged", "Mixtral", num_local_experts=2, num_experts_per_tok=2)


def main(rank: int, root: str, port: int) -> None:
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.distributed.init_process_group("gloo", rank=rank, world_size=WORLD)
    results: dict[str, Any] = {name: tools.run(make(), rank, WORLD) for name, make in scenarios(Path(root)).items()}
    lost = tools.config(Path(root) / "broken", mode="fsdp", init="pretrained")
    try:
        tools.run(lost, rank, WORLD)
        results["broken"] = None
    except Exception as error:
        results["broken"] = f"{type(error).__name__}: {error}"
    torch.save(results, Path(root) / f"results-{rank}.pt")
    torch.distributed.destroy_process_group()


def run(root: Path) -> list[dict[str, Any]]:
    """What each rank found."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(main, (str(root), port), nprocs=WORLD)
    return [torch.load(root / f"results-{rank}.pt", weights_only=False) for rank in range(WORLD)]
