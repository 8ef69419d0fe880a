"""What several processes do together, started once for all tests: gloo on this machine."""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from tests.train.checkpoint.small import Run, equal, whole
from trainjob.train.checkpoint import save
from trainjob.train.checkpoint.export import export
from trainjob.train.checkpoint.place import Place
from trainjob.train.config import Model
from trainjob.train.faults import TrainError


def sharded(model: nn.Module) -> nn.Module:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for part in model.children():
        if any(True for _ in part.parameters()):
            fully_shard(part, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def copied(model: nn.Module) -> nn.Module:
    return nn.parallel.DistributedDataParallel(model)


def _reason(action: Callable[[], object]) -> str:
    try:
        action()
    except TrainError as error:
        return f"{error.code.name}: {error}"
    return "no error"


def two(root: Path, rank: int) -> dict[str, Any]:
    """Two ranks save, resume, change over from FSDP to DDP and back, and run into the faults of one of them."""
    found: dict[str, Any] = {}
    done: list[int] = []
    run = Run(sharded, rank)
    saver = run.saver(root / "fsdp", saved=done.append)
    saver.resume()
    for step in range(1, 4):
        run.step(saver)
        saver.save(step)
    expected = [run.step(saver) for _ in range(3)]
    saver.finish()
    final = whole(run)

    again = Run(sharded, rank, seed=9)
    resumed = again.saver(root / "fsdp").resume()
    assert resumed is not None
    found["resumed"] = (resumed.step, resumed.world_size, dict(resumed.extra))
    state = whole(again)
    again.done = 3
    found["bitwise"] = [again.step() for _ in range(3)] == expected and equal(whole(again), final)
    found["saved"] = done
    found["files"] = sorted((Place(str(root / "fsdp")) / "step-00000003").files())

    other = Run(copied, rank, seed=9)
    saver = other.saver(root / "fsdp")
    saver.resume()
    found["fsdp to ddp"] = equal(whole(other), state)
    other.saver(root / "ddp").save(3, wait=True)
    back = Run(sharded, rank, seed=9)
    back.saver(root / "ddp").resume()
    found["ddp to fsdp"] = equal(whole(back), state)
    if rank == 0:
        torch.save({"state": state, "losses": expected}, root / "two.pt")

    alone = Run(sharded, rank, seed=9)
    alone.saver(root / "one").resume()
    found["one to two"] = equal(whole(alone), torch.load(root / "one.pt"))

    # The faults of one rank are those of all.
    class Wider(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(5, 6 + rank)
            self.last = nn.Linear(6 + rank, 2)

    wider = Run(rank=rank)
    wider.state.model = Wider()
    wider.state.optimizer = None
    found["another model"] = _reason(wider.saver(root / "fsdp").resume)
    save._APPEARS = 0.2  # type: ignore[misc]
    own = Run(sharded, rank)
    found["own disks"] = _reason(lambda: own.saver(root / f"own-{rank}").save(1, wait=True))
    full = Run(sharded, rank)
    full.step()
    saver = full.saver(root / "full")
    saver.save(1, wait=True)
    full.step()
    if rank == 1:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
    found["full"] = _reason(lambda: saver.save(2, wait=True))
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    found["exports"] = exports(root)
    return found


def exports(root: Path) -> dict[str, Any]:
    """A sharded Llama as it is, and one with adapters, which are exported both ways; their logits."""
    from peft import LoraConfig, get_peft_model
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from transformers import AutoModelForCausalLM

    found: dict[str, Any] = {}
    ids = torch.arange(8)[None]
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for kind in ("full", "adapter", "merged"):
        model = AutoModelForCausalLM.from_pretrained(root / "llama", dtype=torch.float32)
        if kind != "full":
            torch.manual_seed(5)
            adapted = LoraConfig(r=2, target_modules="all-linear", init_lora_weights=False, task_type="CAUSAL_LM")
            model = get_peft_model(model, adapted)
        inner = model.base_model.model if kind != "full" else model
        for layer in inner.model.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(inner, mesh=mesh)
        if kind == "full":
            # Trained a little, so that it is not what it began as.
            torch.optim.SGD(model.parameters(), lr=0.1).zero_grad()
            model(input_ids=ids, labels=ids).loss.backward()
            torch.optim.SGD(model.parameters(), lr=0.1).step()
        with torch.no_grad():
            found[kind] = model.eval()(input_ids=ids).logits
        export(kind, model, url=str(root / f"export-{kind}"), model=Model(path=str(root / "llama")))
    return found


def three(root: Path, rank: int) -> dict[str, Any]:
    """What two ranks saved, loaded by three; a layer has fewer rows than there are ranks."""
    run = Run(sharded, rank, seed=9)
    saver = run.saver(root / "fsdp")
    resumed = saver.resume()
    assert resumed is not None
    expected = torch.load(root / "two.pt")["state"]
    drawn = torch.rand(3)
    again = Run(sharded, rank, seed=9)
    again.saver(root / "fsdp").resume()
    found = {
        "equal": equal(whole(run), expected), "written by": resumed.world_size,
        "drawn": drawn, "drawn again": torch.rand(3),
    }  # fmt: skip
    run.saver(root / "three").save(3, wait=True)
    return found


def _main(rank: int, what: Callable[[Path, int], dict[str, Any]], world: int, root: Path, port: int) -> None:
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.save(what(root, rank), root / f"{what.__name__}-{rank}.pt")
    dist.destroy_process_group()


def start(what: Callable[[Path, int], dict[str, Any]], world: int, root: Path) -> list[dict[str, Any]]:
    """What each rank found."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(_main, (what, world, root, port), nprocs=world)
    return [torch.load(root / f"{what.__name__}-{rank}.pt") for rank in range(world)]
