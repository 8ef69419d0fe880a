"""Causal attention over documents that lie one behind the other, without a mask and without padding.

transformers hands queries, keys and values of one flat sequence to the function that is registered here
(`AttentionInterface`, transformers 5.24 `modeling_utils.py`); where documents begin comes along as keyword
arguments, which every model with `_supports_attention_backend` passes on to its attention. As a name without a
mask function, it also keeps transformers from building a mask (`masking_utils._preprocess_mask_arguments`).

On GPUs in half precision: `torch.nn.attention.varlen.varlen_attn` (torch 2.13), one kernel for all documents.
Everywhere else: scaled_dot_product_attention, a call for each document, or one if all are of one length.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch.nn.functional import scaled_dot_product_attention

from trainjob.train.data.batch import Batch
from trainjob.train.faults import Code, TrainError

NAME: Final = "trainjob_packed"

# Kinds of layers in `config.layer_types` whose attention is that of this module. Others carry a state from
# token to token (mamba, linear attention) or cut documents into chunks: packed documents would see each other.
_LAYERS: Final = frozenset({"full_attention", "sliding_attention", "attention"})

# Keyword arguments that change what attention computes and that neither kernel knows.
_UNKNOWN: Final = ("softcap", "s_aux", "position_bias", "cache")


def register() -> str:
    """Make the function known to transformers; returns the name for `config._attn_implementation`."""
    from transformers import AttentionInterface

    AttentionInterface.register(NAME, attend)
    return NAME


def refuse_unsupported(architecture: type[Any], config: Any) -> None:
    """Raise CONFIG if documents in one row would see each other in this architecture.

    `architecture` is the class of a causal language model of transformers, `config` its configuration.
    """
    name = architecture.__name__
    kinds = getattr(config, "layer_types", None)
    if kinds:
        foreign = sorted(set(kinds) - _LAYERS)
        why = f"it has layers of the kind {', '.join(foreign)}" if foreign else ""
    else:
        why = "it carries a state from token to token" if getattr(architecture, "_is_stateful", False) else ""
    if not why and not getattr(architecture, "_supports_attention_backend", False):
        why = "its attention cannot be exchanged (`_supports_attention_backend`)"
    if why:
        raise TrainError(
            Code.CONFIG,
            f"model.path: {name} cannot be trained on packed rows: {why}",
            "take a decoder with plain or sliding-window attention, like Llama, Granite, Mistral or Qwen",
        )


def arguments(batch: Batch, device: torch.device) -> dict[str, Any]:
    """Keyword arguments for the model's forward that tell the attention where documents begin.

    `batch` lies on the CPU or on `device`. The first four names are those of transformers'
    FlashAttentionKwargs; `document_lengths` are ints for the kernels that take one document at a time.
    """
    starts = batch.starts.to(device, non_blocking=True)
    lengths = None if _has_varlen(device) else tuple(batch.starts.diff().tolist())
    return {
        "cu_seq_lens_q": starts,
        "cu_seq_lens_k": starts,
        "max_length_q": batch.longest,
        "max_length_k": batch.longest,
        "document_lengths": lengths,
    }


def attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    sliding_window: int | None = None,
    cu_seq_lens_q: torch.Tensor | None = None,
    max_length_q: int = 0,
    document_lengths: tuple[int, ...] | None = None,
    **more: Any,
) -> tuple[torch.Tensor, None]:
    """Attention of flat documents: query (1, H, N, D), key and value (1, G, N, D) with H a multiple of G.

    `sliding_window` counts the token itself, as in transformers' masks. Returns (1, N, H, D).
    """
    unknown = [name for name in _UNKNOWN if more.get(name) is not None]
    if unknown or attention_mask is not None or not getattr(module, "is_causal", True):
        what = ", ".join(unknown) if unknown else "a mask" if attention_mask is not None else "no causality"
        raise TrainError(
            Code.CONFIG,
            f"model.path: the attention of {type(module).__name__} wants {what}, which packed rows do not have",
            "take a model with plain causal or sliding-window attention",
        )
    if cu_seq_lens_q is None or query.shape[0] != 1:
        raise TrainError(
            Code.CONFIG,
            f"model.path: {type(module).__name__} does not pass on where documents begin",
            "take an architecture whose layers hand keyword arguments to their attention",
        )
    window = sliding_window if sliding_window is not None and sliding_window < max_length_q else None
    if _varlen_fits(query, value, dropout):
        return _varlen(query, key, value, cu_seq_lens_q, max_length_q, scaling, window), None
    if document_lengths is None:
        document_lengths = tuple(cu_seq_lens_q.diff().tolist())
    return _each(query, key, value, document_lengths, dropout, scaling, window), None


def _has_varlen(device: torch.device) -> bool:
    # Flash attention in torch 2.13 needs compute capability 8.0.
    return device.type == "cuda" and bool(torch.cuda.get_device_capability(device)[0] >= 8)


def _varlen_fits(query: torch.Tensor, value: torch.Tensor, dropout: float) -> bool:
    """Whether the flash kernel takes this: half precision, heads of one width of at most 256, no dropout."""
    fits = query.dtype in (torch.bfloat16, torch.float16) and query.shape[-1] == value.shape[-1] <= 256
    return bool(fits and dropout == 0.0 and _has_varlen(query.device))


def _varlen(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    starts: torch.Tensor,
    longest: int,
    scale: float | None,
    window: int | None,
) -> torch.Tensor:
    from torch.nn.attention.varlen import varlen_attn

    out: torch.Tensor = varlen_attn(
        query[0].transpose(0, 1),
        key[0].transpose(0, 1),
        value[0].transpose(0, 1),
        starts,
        starts,
        longest,
        longest,
        scale=scale,
        window_size=(-1 if window is None else window - 1, 0),
        enable_gqa=query.shape[1] != key.shape[1],
    )
    return out[None]


def _each(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    lengths: tuple[int, ...],
    dropout: float,
    scale: float | None,
    window: int | None,
) -> torch.Tensor:
    gqa = query.shape[1] != key.shape[1]

    def sdpa(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        # (B, H, L, D) -> (B, L, H, D), which is how the flash kernels lay their output out: no copy.
        length = q.shape[2]
        band = _band(length, window, q.device) if window is not None and window < length else None
        out = scaled_dot_product_attention(
            q, k, v, attn_mask=band, dropout_p=dropout, is_causal=band is None, scale=scale, enable_gqa=gqa
        )
        return out.transpose(1, 2)

    if len(lengths) == 1:
        return sdpa(query, key, value)
    if min(lengths) == max(lengths):
        shape = (len(lengths), lengths[0])
        rows = [t.squeeze(0).unflatten(1, shape).transpose(0, 1) for t in (query, key, value)]
        return sdpa(*rows).flatten(0, 1)[None]
    # split, not slices: the backward of a slice fills a tensor of the full size for each document.
    sizes = list(lengths)
    documents = zip(query.split(sizes, 2), key.split(sizes, 2), value.split(sizes, 2), strict=True)
    return torch.cat([sdpa(q, k, v) for q, k, v in documents], dim=1)


def _band(length: int, window: int, device: torch.device) -> torch.Tensor:
    """True where a token sees: itself and the `window - 1` before it; (length, length)."""
    ones = torch.ones(length, length, dtype=torch.bool, device=device)
    return ones.tril_().triu_(1 - window)
