"""FSDP2 training that resumes from the newest whole checkpoint and writes down what it does.

/checkpoints/log gets a line `TIME start|resume|step|done ...` for each event of rank 0. A fault that
comes from inside is asked for by FAULT: `oom:STEP` (once), `ooms` (always), `bug` or `exit:CODE`.
"""

import os
import shutil
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard

FOLDER = Path(os.environ.get("CHECKPOINTS", "/checkpoints"))
STEPS, EVERY, PAUSE = (float(os.environ.get(k, d)) for k, d in (("STEPS", "60"), ("EVERY", "5"), ("PAUSE", "0.2")))
FAULT = os.environ.get("FAULT", "")

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
(FOLDER / f"pid-{rank}").write_text(str(os.getpid()))


def note(*words: object) -> None:
    if rank == 0:
        line = " ".join([f"{time.time():.3f}", *map(str, words)])
        print(line, flush=True)
        with (FOLDER / "log").open("a") as log:
            log.write(line + "\n")


def once(name: str) -> bool:
    """True in one life only, however often the pod is made anew."""
    try:
        (FOLDER / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


if FAULT == "bug":
    {}["no such key"]
if FAULT.startswith("exit:"):
    sys.exit(int(FAULT[5:]))

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
for layer in (model[0], model[2]):
    fully_shard(layer)
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

first = 0
whole = sorted((int(p.name[5:]), p) for p in FOLDER.glob("step-*") if (p / ".metadata").exists())
if whole:
    first, path = whole[-1]
    weights, moments = get_state_dict(model, optimizer)
    state = {"model": weights, "optim": moments}
    dcp.load(state, checkpoint_id=path)
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optim"])
    note("resume", first, "world", world)
else:
    note("start", 0, "world", world)

loss = torch.zeros(1)
for step in range(first, int(STEPS)):
    data = torch.randn(16, 32, generator=torch.Generator().manual_seed(1000 * step + rank))
    loss = torch.nn.functional.mse_loss(model(data), data.sum(dim=1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    note("step", step, "loss", (mean.item() / world).hex())
    if rank == world - 1 and (FAULT == "ooms" or (FAULT.startswith("oom:") and int(FAULT[4:]) == step and once("oom"))):
        hog = [b"x" * (64 << 20) for _ in range(10_000)]
    if (step + 1) % EVERY == 0:
        weights, moments = get_state_dict(model, optimizer)
        draft, final = FOLDER / f"draft-{step + 1}", FOLDER / f"step-{step + 1}"
        if rank == 0:
            shutil.rmtree(draft, ignore_errors=True)
        dist.barrier()
        dcp.save({"model": weights, "optim": moments}, checkpoint_id=draft)
        if rank == 0 and not final.exists():
            draft.rename(final)
        if "TRAINJOB_PROGRESS" in os.environ:
            Path(os.environ["TRAINJOB_PROGRESS"]).write_text(str(step + 1))
    time.sleep(PAUSE)
note("done", int(STEPS), "loss", (mean.item() / world).hex())
dist.destroy_process_group()
