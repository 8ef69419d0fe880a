"""A real FSDP2 training that is small enough for a CPU: loss must go down, every rank takes part."""

import os

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
for layer in model:
    if isinstance(layer, torch.nn.Linear):
        fully_shard(layer)
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
data = torch.randn(64, 32, generator=torch.Generator().manual_seed(1 + rank))
target = data.sum(dim=1, keepdim=True)
losses = []
for step in range(int(os.environ.get("STEPS", "10"))):
    loss = torch.nn.functional.mse_loss(model(data), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    losses.append(mean.item() / world)
    if rank == 0:
        print(f"step {step} loss {losses[-1]:.6f}", flush=True)
assert losses[-1] < losses[0], losses
if rank == 0:
    print(f"done world={world} node={os.environ.get('PET_NODE_RANK')} uid={os.getuid()}", flush=True)
dist.destroy_process_group()
