"""Two ranks that call different collectives: what each remembers is written where NCCL's dump would be.

gloo does not write the dump by itself; it records the same way, in the same format.
"""

import datetime
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _dump_fr_trace

dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=5))
rank = dist.get_rank()
for _ in range(3):
    dist.all_reduce(torch.ones(4))
failed = ""
try:
    if rank == 0:
        dist.all_reduce(torch.ones(8))
    else:
        dist.broadcast(torch.ones(8), 0)
    dist.barrier()
except RuntimeError as err:
    failed = str(err)
Path(f"{os.environ['TORCH_FR_DUMP_TEMP_FILE']}{rank}").write_bytes(_dump_fr_trace())
print(f"rank {rank} gave up: {failed}", flush=True)
# Both ranks wait, so that neither ends the other before it has written.
while not all(Path(f"{os.environ['TORCH_FR_DUMP_TEMP_FILE']}{r}").exists() for r in range(2)):
    time.sleep(0.1)
