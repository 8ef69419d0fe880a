"""AdamW, its schedule, and clipping by the norm of all gradients, sharded or not."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.optim import AdamW, Optimizer
from torch.optim.lr_scheduler import LambdaLR

from trainjob.train.config import Optim
from trainjob.train.faults import Code, TrainError


def adamw(model: nn.Module, settings: Optim) -> Optimizer:
    """AdamW over the trainable weights of `model`; decay on matrices that are not embeddings.

    Fused: one pass over weights, gradients and moments, no temporaries of their size (torch 2.13, CPU and CUDA,
    also of DTensors).
    """
    if len(settings.betas) != 2:
        raise TrainError(
            Code.CONFIG, f"optim.betas: two numbers are wanted, not {len(settings.betas)}", "e.g. 0.9,0.95"
        )
    embeddings = {p for m in model.modules() if isinstance(m, nn.Embedding) for p in m.parameters(recurse=False)}
    trainable = [p for p in model.parameters() if p.requires_grad]
    decayed = [p for p in trainable if p.ndim >= 2 and p not in embeddings]
    others = [p for p in trainable if p.ndim < 2 or p in embeddings]
    groups: list[dict[str, Any]] = [
        {"params": params, "weight_decay": decay}
        for params, decay in ((decayed, settings.weight_decay), (others, 0.0))
        if params
    ]
    beta1, beta2 = settings.betas
    return AdamW(groups, lr=settings.lr, betas=(beta1, beta2), eps=settings.eps, fused=True)


def schedule(optimizer: Optimizer, settings: Optim, steps: int) -> LambdaLR:
    """The learning rate of each of `steps` optimizer steps; `step()` it once after each."""
    return LambdaLR(optimizer, factor(settings, steps))


def factor(settings: Optim, steps: int) -> Callable[[int], float]:
    """Part of the peak learning rate by step, from 0: rises to 1 in `warmup_steps`, then falls to min_lr_ratio.

    The step at `warmup_steps` has the peak, the last of `steps` is one before the end of the curve.
    """
    warmup, floor = settings.warmup_steps, settings.min_lr_ratio

    def at(step: int) -> float:
        if step < warmup:
            return step / warmup
        if settings.schedule == "constant":
            return 1.0
        done = min(1.0, (step - warmup) / max(1, steps - warmup))
        left = 1.0 - done if settings.schedule == "linear" else 0.5 * (1.0 + math.cos(math.pi * done))
        return floor + (1.0 - floor) * left

    return at


def clip(model: nn.Module, limit: float, group: Any = None) -> torch.Tensor:
    """Scale gradients so that their norm is at most `limit` (0: leave them); returns the norm before, fp32, shape ().

    `group`: the process group over whose ranks the weights are sharded, None if each rank has all of them. Same as
    torch.nn.utils.clip_grad_norm_, with one reduction of one number, and without a dispatch for each DTensor.
    """
    grads = [g.to_local() if hasattr(g, "to_local") else g for g in _grads(model)]
    grads = [g for g in grads if g.numel()]
    if grads:
        squares = torch.stack(torch._foreach_norm(grads, 2.0, dtype=torch.float32)).square_().sum()
    else:
        squares = torch.zeros((), device=_device(model))
    if group is not None:
        import torch.distributed as dist

        home = squares.device
        squares = squares.to(torch.device("cuda") if dist.get_backend(group) == "nccl" else home)
        dist.all_reduce(squares, group=group)
        squares = squares.to(home)
    norm = squares.sqrt()
    if limit > 0 and grads:
        torch._foreach_mul_(grads, torch.clamp(limit / (norm + 1e-6), max=1.0))
    return norm


def _grads(model: nn.Module) -> list[Any]:
    return [p.grad for p in model.parameters() if p.grad is not None]


def _device(model: nn.Module) -> torch.device:
    return next(model.parameters()).device
