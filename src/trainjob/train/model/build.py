"""A model that is ready to be trained, from the configuration: the entry for the training loop."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from trainjob.train.config import Config
from trainjob.train.data.batch import Batch
from trainjob.train.faults import Code, TrainError
from trainjob.train.model import adapters, load, loss, optim, shard, weights
from trainjob.train.model.facts import Facts, facts


@dataclass(frozen=True, slots=True)
class Built:
    """Everything about the model that the loop needs.

    `model`: transformers' causal language model, or peft's PeftModel around it; sharded in place under fsdp. It
    is what is saved: names of weights are those that transformers and peft give them.
    `called`: what is called: the same causal language model, or DDP around it.
    `mode`: `fsdp`, `ddp` or `none`. `notes`: lines worth a place in the log.
    """

    model: Any
    called: Any
    optimizer: Optimizer
    schedule: Callable[[int], LambdaLR]
    facts: Facts
    mode: str
    world: int
    notes: tuple[str, ...]
    _sync: Callable[[bool], AbstractContextManager[None]]
    _group: Any

    def loss_sum(self, batch: Batch) -> torch.Tensor:
        """Sum of the cross entropies of a micro-batch's targets, fp32, shape (); 0 for an empty one."""
        return loss.batch_loss(self.called, batch)

    def backward(self, batch: Batch, targets: int, last: bool) -> torch.Tensor:
        """Forward and backward of a micro-batch; returns the detached `loss_sum`.

        Gradients become those of (sum over ranks and micro-batches of loss_sum) / `targets`, the step's targets
        over all ranks. `last`: it is the step's last micro-batch, after which the gradients are complete.
        """
        with self._sync(last):
            total = self.loss_sum(batch)
            # FSDP and DDP take the mean over ranks; what is wanted is the sum.
            (total * (self.world / targets)).backward()
        return total.detach()

    def clip(self, limit: float) -> torch.Tensor:
        """Scale gradients to a norm of at most `limit` (0: leave them); returns the norm before, fp32, shape ()."""
        return optim.clip(self.model, limit, self._group)


def build(config: Config, *, device: torch.device, rank: int = 0, world: int = 1) -> Built:
    """The model on `device`, with weights, adapters and optimizer, as `config` says.

    For ddp and fsdp torch's default process group has to exist; on GPUs with parallel.cpu_offload it needs a backend
    for the CPU too (`cpu:gloo,cuda:nccl`). Raises TrainError for what can be foreseen.
    """
    mode = shard.mode_of(config, world)
    shard.refuse_compile(config, device)
    adapters.refuse(config, mode)
    source = load.find(config)
    causal = load.construct(source)
    tied = dict(causal.all_tied_weights_keys)
    unreadable = weights.readable(causal, source) if config.model.init == "pretrained" else ""
    units = shard.layers(causal)
    if config.lora.quantize == "nf4":
        adapters.quantise(units, config, device)
    model = adapters.add(causal, config.lora) if config.lora.rank else causal
    shard.freeze_dtype(causal, shard.compute_dtype(config))
    loss.install(causal)
    shard.prepare_layers(causal, config, mode)

    group = None
    home = torch.device("cpu") if config.parallel.cpu_offload else device
    if mode == "fsdp":
        from torch.distributed.device_mesh import init_device_mesh

        mesh = init_device_mesh(device.type, (world,))
        shard.shard(causal, config, mesh)
        group = mesh.get_group()
    shard.materialise(causal, home, tied)
    weights.fill_buffers(causal, source)
    notes = _fill(causal, source, config, units, unreadable, device, rank, world)
    if config.lora.rank:
        adapters.draw(causal, config.train.seed)
    if home != device:
        for module in causal.modules():
            for name, buffer in module._buffers.items():
                module._buffers[name] = None if buffer is None else buffer.to(device)

    called = shard.replicate(causal, device) if mode == "ddp" else causal
    optimizer = optim.adamw(causal, config.optim)
    return Built(
        model=model,
        called=called,
        optimizer=optimizer,
        schedule=lambda steps: optim.schedule(optimizer, config.optim, steps),
        facts=facts(causal),
        mode=mode,
        world=world,
        notes=tuple(notes),
        _sync=shard.sync_of(called, config),
        _group=group,
    )


def _fill(
    causal: Any,
    source: load.Source,
    config: Config,
    units: list[torch.nn.Module],
    unreadable: str,
    device: torch.device,
    rank: int,
    world: int,
) -> list[str]:
    if config.model.init == "random":
        weights.draw(causal, units, config.train.seed)
        return []
    if not unreadable and source.files is not None:
        weights.read(causal, source.files)
        return []
    if world > 1 and not torch.distributed.is_initialized():
        raise TrainError(Code.CONFIG, "the process group is not initialised", "call init_process_group before build")
    weights.broadcast(causal, lambda: load.pretrained(source, config, torch.float32), device, rank, world)
    how = "loaded whole by rank 0 and sent to the others" if world > 1 else "loaded whole"
    return [f"weights {how}, as they cannot be read slice by slice: {unreadable}"]
