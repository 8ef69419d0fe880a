"""What a model costs: weights, and floating-point operations for MFU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import torch

from trainjob.train.model.weights import shape_of, slots

# Peak of dense matrix products in bf16, TFLOP/s (fp16 where a GPU has no bf16), by a part of the device's name;
# the longer name first where one contains another. From NVIDIA's and AMD's data sheets, without sparsity.
_PEAKS: Final = (
    ("GB200", 2500.0),
    ("B200", 2250.0),
    ("GH200", 989.0),
    ("H200", 989.0),
    ("H100 NVL", 835.0),
    ("H100 PCIe", 756.0),
    ("H100", 989.0),
    ("H800", 989.0),
    ("A100", 312.0),
    ("A800", 312.0),
    ("L40S", 362.0),
    ("L40", 181.0),
    ("L4", 121.0),
    ("RTX 6000 Ada", 364.0),
    ("RTX A6000", 155.0),
    ("A10G", 125.0),  # fp16; NVIDIA A10: 125
    ("A10", 125.0),
    ("A30", 165.0),
    ("A40", 150.0),
    ("V100", 125.0),  # fp16
    ("T4", 65.0),  # fp16
    ("MI325X", 1307.0),
    ("MI300X", 1307.0),
    ("MI250X", 383.0),
    ("MI250", 362.0),
    ("MI210", 181.0),
)


@dataclass(frozen=True, slots=True)
class Facts:
    """Of the whole model, not of this rank's part.

    `parameters`: weights, shared ones once, adapters included. `trainable`: those that are trained.
    `flops_per_token`: of forward and backward, for all matrix products with weights.
    `flops_per_pair`: of forward and backward, for one token that sees one token, in all layers.
    """

    parameters: int
    trainable: int
    flops_per_token: int
    flops_per_pair: int

    def flops(self, tokens: int, squares: int) -> int:
        """Of `tokens` in documents; `squares`: the sum of the squares of the documents' lengths.

        A token sees itself and what is before it in its document, half of the square. What is computed twice under
        activation checkpointing counts once (model FLOPs, PaLM, arXiv 2204.02311, appendix B).
        """
        return self.flops_per_token * tokens + self.flops_per_pair * squares // 2


def facts(causal: Any) -> Facts:
    """`causal`: transformers' model, with adapters or not, sharded or not.

    A weight costs 2 FLOPs a token in the forward, 2 for the gradient of its input, and 2 for its own if it is
    trained. Vectors count nothing, and neither do input embeddings, which are looked up, unless the head shares
    them. Of a mixture's experts those count that a token is sent to.
    """
    config = causal.config.get_text_config()
    chosen = getattr(config, "num_experts_per_tok", None) or 1
    experts = next(
        (n for n in (getattr(config, k, None) for k in ("num_local_experts", "num_experts", "n_routed_experts")) if n),
        1,
    )
    sizes: dict[int, tuple[int, bool, float]] = {}  # weights, trained, part of them that a token multiplies with
    embedding = causal.get_input_embeddings()
    for name, module, attribute in slots(causal):
        weight = module._parameters[attribute]
        assert weight is not None
        shape = shape_of(module, attribute)
        active = 1.0 if ".experts." not in name else chosen / experts
        if module is embedding or len(shape) < 2:
            active = 0.0
        size, trained = shape.numel(), weight.requires_grad
        so_far = sizes.get(id(weight))
        # A head with the embeddings' weights: the name that multiplies decides.
        sizes[id(weight)] = size, trained, active if so_far is None else max(active, so_far[2])
    for name, weight in causal.named_parameters():
        if "lora_" in name:
            sizes[id(weight)] = weight.numel(), weight.requires_grad, 1.0
    per_token = sum(size * active * (6 if trained else 4) for size, trained, active in sizes.values())
    heads = getattr(config, "num_attention_heads", 0)
    width = getattr(config, "head_dim", None) or (config.hidden_size // heads if heads else 0)
    return Facts(
        parameters=sum(size for size, _, _ in sizes.values()),
        trainable=sum(size for size, trained, _ in sizes.values() if trained),
        flops_per_token=round(per_token),
        # Scores and sums of values, 2 FLOPs each a head's channel, three times: forward, and two gradients.
        flops_per_pair=12 * config.num_hidden_layers * heads * width,
    )


def peak_flops(device: torch.device) -> float | None:
    """Peak of a GPU in FLOP/s for dense products in bf16 (fp16 if it has none), None if it is not known."""
    if device.type != "cuda":
        return None
    return peak_of(torch.cuda.get_device_name(device))


def peak_of(name: str) -> float | None:
    """As `peak_flops`, by the device's name."""
    words = f" {name.replace('-', ' ')} "
    for part, peak in _PEAKS:
        if f" {part} " in words:
            return peak * 1e12
    return None
