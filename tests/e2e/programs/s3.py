"""FSDP2 training that keeps sharded checkpoints where TRAINJOB_CHECKPOINT_URL says: s3://bucket/prefix or a folder.

The same lines serve both, because torch.distributed.checkpoint writes through fsspec. DIE_IN_SAVE=N is the fault:
once, the last rank kills itself in the middle of saving step N, and leaves a half-written checkpoint.
"""

import os
import signal

import fsspec
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint._fsspec_filesystem import FsspecReader, FsspecWriter
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard

ROOT = os.environ.get("TRAINJOB_CHECKPOINT_URL", "/checkpoints").rstrip("/")
STEPS, EVERY = int(os.environ.get("STEPS", "20")), int(os.environ.get("EVERY", "5"))
DIE = int(os.environ.get("DIE_IN_SAVE", "0"))
fs, folder = fsspec.core.url_to_fs(ROOT)

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()


def say(*words: object) -> None:
    if rank == 0:
        print(*words, flush=True)


def checkpoints() -> dict[int, bool]:
    """Step -> whether it is whole. `.metadata` is written last, when every rank has written its shard."""
    fs.invalidate_cache()  # fsspec remembers listings
    if not fs.exists(folder):
        return {}
    names = [path.rstrip("/").rpartition("/")[2] for path in fs.ls(folder, detail=False)]
    steps = sorted(int(name[5:]) for name in names if name.startswith("step-"))
    return {step: bool(fs.exists(f"{folder}/step-{step}/.metadata")) for step in steps}


class Writer(FsspecWriter):
    """Dies after its own shard is written, before anyone can write `.metadata`."""

    def write_data(self, plan, planner):  # type: ignore[no-untyped-def]
        future = super().write_data(plan, planner)
        future.wait()
        os.kill(os.getpid(), signal.SIGKILL)
        return future


torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
for layer in (model[0], model[2]):
    fully_shard(layer)
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

found = [checkpoints() if rank == 0 else {}]
dist.broadcast_object_list(found)
for step, whole in found[0].items():
    if not whole:
        say(f"passed over step-{step}: no .metadata")
first = max((step for step, whole in found[0].items() if whole), default=0)
if first:
    weights, moments = get_state_dict(model, optimizer)
    state = {"model": weights, "optim": moments}
    dcp.load(state, storage_reader=FsspecReader(f"{ROOT}/step-{first}"))
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optim"])
say(f"starts at {first} of {STEPS}, world {world}, {ROOT}")

for step in range(first, STEPS):
    data = torch.randn(16, 32, generator=torch.Generator().manual_seed(1000 * step + rank))
    loss = torch.nn.functional.mse_loss(model(data), data.sum(dim=1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    done = step + 1
    say(f"step {done} loss {(mean.item() / world).hex()}")
    if done % EVERY == 0:
        weights, moments = get_state_dict(model, optimizer)
        dies = done == DIE and rank == world - 1 and done not in found[0]
        writer = (Writer if dies else FsspecWriter)(f"{ROOT}/step-{done}")
        dcp.save({"model": weights, "optim": moments}, storage_writer=writer)
        say(f"saved step-{done}")
say(f"done {STEPS}")
dist.destroy_process_group()
# torch 2.13's libraries abort a process with gloo now and then when they are taken down (2 of 18 runs).
os._exit(0)
