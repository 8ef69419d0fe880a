"""How the ranks share a model: sharded (FSDP2), copied (DDP) or alone; precision, recomputation, compilation.

All three compute the same in `bf16`: weights and their sums in fp32, each layer on a copy of its weights in bf16,
gradients summed over micro-batches and ranks in fp32. FSDP makes that copy when it gathers a layer. For the
other two modes it is made here, at each call of a layer; autocast would keep norms and residuals in fp32, which
is another curve and more memory.

Frozen weights (the base of an adapter) are kept in bf16 alone: they never change, so fp32 would add nothing to
what a layer computes on.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import nn

from trainjob.train.config import Config
from trainjob.train.faults import Code, TrainError


def mode_of(config: Config, world: int) -> str:
    """`fsdp`, `ddp` or `none`; raises CONFIG for settings that do not go together."""
    parallel = config.parallel
    mode = parallel.mode
    if mode == "auto":
        mode = "fsdp" if world > 1 or parallel.cpu_offload else "none"
    if mode == "none" and world > 1:
        raise TrainError(
            Code.CONFIG, f"parallel.mode: `none` with {world} ranks", "set `fsdp` or `ddp`, or start one process"
        )
    if parallel.cpu_offload and mode != "fsdp":
        raise TrainError(
            Code.CONFIG,
            f"parallel.cpu_offload: not possible with parallel.mode `{mode}`",
            "set parallel.mode to `fsdp`",
        )
    return mode


def refuse_compile(config: Config, device: torch.device) -> None:
    """Raise CONFIG where torch.compile has no compiler for what it generates: C++ for CPUs, C for GPUs (Triton)."""
    names = ("CC", "gcc", "clang", "cc") if device.type == "cuda" else ("CXX", "g++", "clang++", "c++")
    names = (os.environ.get(names[0]) or names[1], *names[1:])
    if config.train.compile and not any(shutil.which(name) for name in names):
        raise TrainError(
            Code.CONFIG,
            "train.compile: there is no C or C++ compiler in this image",
            "install gcc and g++, or unset it",
        )


def compute_dtype(config: Config) -> torch.dtype:
    """The dtype that layers compute in."""
    return torch.bfloat16 if config.train.precision == "bf16" else torch.float32


def layers(causal: Any) -> list[nn.Module]:
    """The decoder layers: the units that are gathered, recomputed and compiled one at a time."""
    names = set(causal._no_split_modules or ())
    found = [m for m in causal.modules() if type(m).__name__ in names]
    if not found:
        raise TrainError(
            Code.CONFIG,
            f"model.path: {type(causal).__name__} does not say which modules are its layers (`_no_split_modules`)",
            "take a model that transformers itself implements",
        )
    return found


def prepare_layers(causal: Any, config: Config, mode: str) -> None:
    """Wrap the forward of each layer: compiled inside, its weights in bf16 around that, recomputed outside.

    Forwards are exchanged, not modules, so names of weights stay what they are, and FSDP's hooks stay outside:
    a recomputed layer is gathered once.
    """
    dtype = compute_dtype(config)
    cast = mode != "fsdp" and dtype is not torch.float32
    units = layers(causal)
    for unit in units:
        if config.train.compile:
            unit.forward = torch.compile(unit.forward)
        if cast:
            unit.forward = _in_dtype(unit.forward, list(unit.modules()), dtype)
        if config.parallel.activation_checkpointing:
            unit.forward = _recomputed(unit.forward, config)
    if cast:
        inside = {m for unit in units for m in unit.modules()}
        causal.forward = _in_dtype(causal.forward, [m for m in causal.modules() if m not in inside], dtype)


def _recomputed(forward: Callable[..., Any], config: Config) -> Callable[..., Any]:
    from torch.utils.checkpoint import checkpoint

    # Dropout has to fall the same way again. Without any, saving the state of the generators is in vain.
    return partial(checkpoint, forward, use_reentrant=False, preserve_rng_state=config.lora.dropout > 0)


def _in_dtype(forward: Callable[..., Any], modules: list[nn.Module], dtype: torch.dtype) -> Callable[..., Any]:
    """`forward` with the floating-point weights of `modules` in `dtype`. Gradients reach the weights themselves."""

    def cast(*args: Any, **kwargs: Any) -> Any:
        # A weight that two modules share is cast once, so that it stays shared.
        kept: list[tuple[dict[str, Any], str, Any]] = []
        copies: dict[Any, torch.Tensor] = {}
        try:
            for module in modules:
                held: dict[str, Any] = module._parameters
                for name, weight in held.items():
                    if weight is not None and weight.is_floating_point() and weight.dtype != dtype:
                        if weight not in copies:
                            copies[weight] = weight.to(dtype)
                        kept.append((held, name, weight))
            for held, name, weight in kept:
                held[name] = copies[weight]
            return forward(*args, **kwargs)
        finally:
            for held, name, weight in kept:
                held[name] = weight

    return cast


def freeze_dtype(causal: nn.Module, dtype: torch.dtype) -> None:
    """Frozen weights in the dtype that layers compute in; on the meta device, before sharding."""
    for parameter in causal.parameters():
        if not parameter.requires_grad and parameter.is_floating_point():
            parameter.data = parameter.data.to(dtype)


def shard(causal: Any, config: Config, mesh: Any) -> None:
    """Shard each layer and the rest over `mesh`, in place. The weights may lie on the meta device."""
    from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy, fully_shard

    parallel = config.parallel
    policy = MixedPrecisionPolicy()
    if config.train.precision == "bf16":
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    on_gpu = mesh.device_type == "cuda"
    offload = CPUOffloadPolicy(pin_memory=on_gpu) if parallel.cpu_offload else OffloadPolicy()
    options = {"mesh": mesh, "mp_policy": policy, "offload_policy": offload}
    for unit in layers(causal):
        fully_shard(unit, reshard_after_forward=parallel.reshard_after_forward, **options)
    # The backward begins with the head: to free the rest's weights after the forward would be in vain.
    fully_shard(causal, reshard_after_forward=False, **options)


def materialise(causal: nn.Module, device: torch.device, tied: dict[str, str]) -> None:
    """Give every weight and buffer on the meta device memory, its values undefined. Shared weights stay shared.

    `tied`: names of weights that are others by another name (`all_tied_weights_keys`).
    """
    if any(t.is_meta for t in (*causal.parameters(), *causal.buffers())):
        causal.to_empty(device=device)
    modules = dict(causal.named_modules())
    for copy, original in tied.items():
        (to, to_name), (of, of_name) = (_owner(modules, name) for name in (copy, original))
        setattr(to, to_name, getattr(of, of_name))
    if _is_sharded(causal):
        causal._apply(lambda tensor: tensor)  # FSDP looks up its weights again, those that were exchanged above


def _owner(modules: dict[str, nn.Module], name: str) -> tuple[nn.Module, str]:
    path, _, attribute = name.rpartition(".")
    return modules[path], attribute


def _is_sharded(module: nn.Module) -> bool:
    return hasattr(module, "set_requires_gradient_sync")


def replicate(causal: nn.Module, device: torch.device) -> nn.Module:
    """The model in DDP. Every rank has the same weights already, so none are sent."""
    from torch.nn.parallel import DistributedDataParallel

    return DistributedDataParallel(
        causal,
        device_ids=[device] if device.type == "cuda" else None,
        gradient_as_bucket_view=True,
        init_sync=False,
        broadcast_buffers=False,
    )


def sync_of(model: Any, config: Config) -> Callable[[bool], AbstractContextManager[None]]:
    """`sync(last)`: a context for forward and backward of a micro-batch; `last` says it is the step's last.

    DDP reduces gradients in the last one. FSDP too if it keeps weights gathered (reshard_after_forward false), as
    gradients that wait are of full size, 4 bytes a weight; else after each, and sums what its shard needs.
    """
    if hasattr(model, "no_sync"):
        return lambda last: nullcontext() if last else model.no_sync()
    if _is_sharded(model) and not config.parallel.reshard_after_forward:

        def sync(last: bool) -> AbstractContextManager[None]:
            model.set_requires_gradient_sync(last)
            return nullcontext()

        return sync
    return lambda _last: nullcontext()
