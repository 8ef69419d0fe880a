"""What a forked worker does: becomes a fresh program, then runs the script."""

from __future__ import annotations

import os
import runpy
import sys
from datetime import timedelta
from pathlib import Path
from typing import Final

from trainjob.launch import signals

COLLECTIVE_TIMEOUT: Final = "TRAINJOB_COLLECTIVE_TIMEOUT"


def run(module: bool, target: str, *arguments: str) -> None:
    """Runs `target` as __main__, a file or with `module` a module, as `python [-m] target` would.

    Called by torch in each worker, with RANK and its like set.
    """
    signals.forget()
    _threads()
    _timeouts()
    sys.argv = [target, *arguments]
    try:
        if module:
            sys.path.insert(0, str(Path.cwd()))
            runpy.run_module(target, run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, str(Path(target).resolve().parent))
            runpy.run_path(target, run_name="__main__")
    except SystemExit as end:
        # torch takes a code of None for a failure.
        if end.code not in (None, 0):
            raise
    sys.stdout.flush()
    sys.stderr.flush()


def _threads() -> None:
    """OMP_NUM_THREADS was read when torch was loaded, before the agent chose it."""
    import torch

    chosen = os.environ.get("OMP_NUM_THREADS", "")
    if chosen.isdigit() and int(chosen) > 0:
        torch.set_num_threads(int(chosen))


def _timeouts() -> None:
    """The default timeout of collectives. A script that states its own keeps it.

    torch waits 10 minutes with NCCL and 30 with gloo (torch/distributed/constants.py); no variable
    changes that.
    """
    seconds = os.environ.get(COLLECTIVE_TIMEOUT, "")
    if not seconds:
        return
    from torch.distributed import distributed_c10d

    timeout = timedelta(seconds=float(seconds))
    distributed_c10d.default_pg_timeout = timeout
    if hasattr(distributed_c10d, "default_pg_nccl_timeout"):
        distributed_c10d.default_pg_nccl_timeout = timeout
