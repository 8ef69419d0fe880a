"""What a v1 script does: join by RANK, WORLD_SIZE and MASTER_ADDR, then sum the ranks."""

import os

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.tensor([float(dist.get_rank())])
dist.all_reduce(total)
world = dist.get_world_size()
assert total.item() == world * (world - 1) / 2, total
print(f"rank {dist.get_rank()} of {world} sum {total.item():.0f} master {os.environ['MASTER_ADDR']}", flush=True)
dist.destroy_process_group()
