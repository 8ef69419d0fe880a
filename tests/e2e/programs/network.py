"""Which interface gloo and NCCL choose: a sum over gloo, and NCCL's own bootstrap, which needs no GPU.

`ncclGetUniqueId` looks for the interface as every NCCL job does first, and says so at NCCL_DEBUG=INFO.
"""

import ctypes
import importlib.metadata
import mmap
import os
import re
import sys
from pathlib import Path

import torch
import torch.distributed as dist


def file_of(package: str, name: str) -> Path:
    """A file of an installed package."""
    return next(Path(str(f.locate())) for f in importlib.metadata.files(package) or [] if f.name == name)


nccl_file = file_of("nvidia-nccl-cu13", "libnccl.so.2")


def names_in(file: Path) -> set[str]:
    """The names of variables that stand whole in a library."""
    with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ) as text:
        return {m[1].decode() for m in re.finditer(rb"((?:TORCH_)?(?:NCCL|GLOO|FR)_[A-Z0-9_]+)\0", text)}


if (wanted := os.environ.get("KNOWN")) and os.environ["PET_NODE_RANK"] == "0":
    known = names_in(nccl_file)
    for part in ("cpu", "cuda"):
        known |= names_in(Path(torch.__file__).parent / "lib" / f"libtorch_{part}.so")
    for name in wanted.split(","):
        print(f"{name} {'known' if name in known else 'UNKNOWN'}", flush=True)
nccl = ctypes.CDLL(str(nccl_file))
version = ctypes.c_int()
nccl.ncclGetVersion(ctypes.byref(version))
print(f"torch {torch.__version__} nccl {version.value}", flush=True)
code = nccl.ncclGetUniqueId(ctypes.create_string_buffer(128))
print(f"ncclGetUniqueId {code}", flush=True)
dist.init_process_group("gloo")
total = torch.tensor([float(dist.get_rank() + 1)])
dist.all_reduce(total)
print(f"gloo rank {dist.get_rank()} of {dist.get_world_size()} sum {total.item():.0f}", flush=True)
dist.destroy_process_group()
sys.exit(code)
