"""LoRA adapters through peft, on frozen weights in full or in 4 bits."""

from __future__ import annotations

import logging
import warnings
from functools import partial
from typing import Any, Final

import torch
from torch import nn

from trainjob.train.config import Config, Lora
from trainjob.train.faults import Code, TrainError
from trainjob.train.model.weights import drawn

ALL_LINEAR: Final = "all-linear"
_ADAPTER: Final = "default"  # peft's name for the only adapter


def refuse(config: Config, mode: str) -> None:
    """Raise CONFIG for settings of `lora` that do not go together with each other or with `mode`."""
    lora = config.lora
    if lora.quantize == "none":
        return
    if lora.rank == 0:
        raise TrainError(
            Code.CONFIG,
            f"lora.quantize: {lora.quantize} weights cannot be trained, only adapters on them",
            "set lora.rank",
        )
    if mode == "fsdp":
        raise TrainError(
            Code.CONFIG,
            f"lora.quantize: {lora.quantize} weights cannot be sharded",
            "set parallel.mode=ddp: each rank keeps the 4-bit weights whole",
        )
    import importlib.util

    if importlib.util.find_spec("bitsandbytes") is None:
        raise TrainError(
            Code.CONFIG, "lora.quantize: nf4 needs bitsandbytes, which is not installed", "install the extra `qlora`"
        )


def quantise(units: list[nn.Module], config: Config, device: torch.device) -> None:
    """Exchange the linear layers inside `units` for 4-bit ones; they are filled, and quantised, by weights.assign."""
    _quiet()
    from bitsandbytes.nn import Linear4bit, Params4bit

    compute = torch.bfloat16 if config.train.precision == "bf16" else torch.float32
    for unit in units:
        for parent in list(unit.modules()):
            for name, layer in list(parent.named_children()):
                if type(layer) is not nn.Linear:
                    continue
                # As a shell: on the CPU or the GPU the constructor would take memory for full weights.
                with torch.device("meta"):
                    quantised = Linear4bit(
                        layer.in_features, layer.out_features, layer.bias is not None, compute, quant_type="nf4"
                    )
                quantised.weight = Params4bit(torch.empty(0, device=device), quant_type="nf4", module=quantised)
                quantised.weight_home = device
                quantised.requires_grad_(False)
                setattr(parent, name, quantised)


def add(causal: Any, lora: Lora) -> Any:
    """The model with adapters, as a PeftModel; they are on the meta device until they are materialised and drawn."""
    targets = lora.targets
    everything = any(target.lower() == ALL_LINEAR for target in targets)
    if not everything:
        _refuse_unmatched(causal, targets)
    _quiet()
    from peft import LoraConfig, get_peft_model

    settings = LoraConfig(
        task_type="CAUSAL_LM",
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=ALL_LINEAR if everything else list(targets),
    )
    with warnings.catch_warnings():
        # peft 0.21 asks transformers 5.24 by a name that it is about to drop.
        warnings.filterwarnings("ignore", "`is_gradient_checkpointing` is deprecated", FutureWarning)
        model = get_peft_model(causal, settings, autocast_adapter_dtype=False, low_cpu_mem_usage=True)
    for name, parameter in model.named_parameters():
        if "lora_" in name:
            parameter.data = parameter.data.float()
    return model.train()


def _quiet() -> None:
    # peft imports bitsandbytes where it is installed, which then warns of a faster CPU kernel that it cannot load.
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)


def _refuse_unmatched(causal: Any, targets: tuple[str, ...]) -> None:
    linear = [name for name, module in causal.named_modules() if isinstance(module, nn.Linear)]
    unmatched = [t for t in targets if not any(name == t or name.endswith(f".{t}") for name in linear)]
    if unmatched:
        there = sorted({name.rpartition(".")[2] for name in linear})
        raise TrainError(
            Code.CONFIG,
            f"lora.targets: {type(causal).__name__} has no linear layer {', '.join(unmatched)}",
            f"it has {', '.join(there)}; or set {ALL_LINEAR}",
        )


def draw(causal: nn.Module, seed: int) -> None:
    """First values of all adapters (A uniform, B zero), the same for any number of ranks."""
    for path, module in causal.named_modules():
        if not hasattr(module, "reset_lora_parameters"):
            continue
        held = [
            (part, attribute)
            for inner, part in module.named_modules()
            if "lora_" in inner
            for attribute, weight in part._parameters.items()
            if weight is not None
        ]
        drawn(held, partial(module.reset_lora_parameters, _ADAPTER, True), f"{seed}/adapter/{path}")
