"""Shapes made of launch styles and replica shapes.

The styles under `_STUBS` are launched by the probe in the launcher's place; those under `_REAL` by the
launchers of torch themselves, with the probe as their script.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.e2e.differential.jobs import NAME, job, probe_map, role, with_torch
from tests.e2e.differential.shape import Object, Shape

_SCRIPT: Final = "/probe/probe.py"
_SWITCH: Final = 'if [ "$RANK" = 0 ]; then python lead.py --of=$WORLD_SIZE; else python follow.py --rank=$RANK; fi'
_EXPLICIT: Final = "--nnodes=$WORLD_SIZE --node_rank=$RANK --master_addr=$MASTER_ADDR --master_port=$MASTER_PORT"
_ACCELERATE: Final = (
    'accelerate launch --num_machines "$WORLD_SIZE" --machine_rank "$RANK" --main_process_ip "$MASTER_ADDR" '
    '--main_process_port "$MASTER_PORT" train.py'
)
_STUBS: Final[dict[str, Object]] = {
    "python": {"command": ["python", "-u", "train.py"], "args": ["--epochs", "2"]},
    "entrypoint": {},
    "args-only": {"args": ["--backend", "gloo", "--of=$(WORLD_SIZE)"]},
    "shell-switch": {"command": ["sh", "-c", _SWITCH]},
    "accelerate": {"command": ["bash", "-c", _ACCELERATE]},
}
_ROLES: Final[dict[str, tuple[int, int]]] = {"master": (1, 0), "master-2-workers": (1, 2), "2-workers": (0, 2)}
_REAL: Final[dict[str, list[str]]] = {
    "torchrun": ["torchrun", _SCRIPT, "--epochs=1"],
    "torch-run-module": ["python", "-m", "torch.distributed.run", "--nproc_per_node=2", _SCRIPT],
    "torch-launch-module": ["python", "-m", "torch.distributed.launch", _SCRIPT],
    "explicit-torchrun": ["sh", "-c", f"exec torchrun {_EXPLICIT} {_SCRIPT}"],
    "c10d": [
        "torchrun", "--nnodes=2", "--rdzv_backend=c10d", "--rdzv_id=1",
        "--rdzv_endpoint=$(MASTER_ADDR):$(MASTER_PORT)", _SCRIPT,
    ],
}  # fmt: skip


def matrix() -> tuple[Shape, ...]:
    return (*_stub_shapes(), *_real_shapes())


def _stub_shapes() -> Iterator[Shape]:
    for style, container in _STUBS.items():
        for roles, (masters, workers) in _ROLES.items():
            yield _shape(f"{style}/{roles}", masters, workers, container, ci=(style, roles) in _CI)


def _real_shapes() -> Iterator[Shape]:
    for style, command in _REAL.items():
        yield _shape(f"real-{style}/master-1-worker", 1, 1, with_torch(command), ci=(style, "real") in _CI)
    bare = with_torch(_REAL["torchrun"])
    yield _shape("real-torchrun/master", 1, 0, bare)
    yield _shape("real-torchrun/master-1-worker-nproc-2", 1, 1, bare, nprocPerNode="2")
    own = ["torchrun", "--nnodes=2", "--rdzv_backend=c10d", f"--rdzv_endpoint={NAME}-worker-0:29400", _SCRIPT]
    yield _shape("real-torchrun/2-workers-own-rendezvous", 0, 2, with_torch(own), nprocPerNode="1")


_CI: Final = {("python", "master-2-workers"), ("shell-switch", "2-workers"), ("torchrun", "real")}


def _shape(name: str, masters: int, workers: int, container: Object, *, ci: bool = False, **spec: Any) -> Shape:
    roles = [role(count, **container) if count else None for count in (masters, workers)]
    document = job(*roles, **spec)
    return Shape(name, (document,), (probe_map(),) if "volumeMounts" in container else (), ci=ci)
