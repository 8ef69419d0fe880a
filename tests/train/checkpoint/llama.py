"""A Llama of a few thousand parameters and a tokenizer, as a Hugging Face folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def write(folder: Path, dtype: str = "float32", **changes: Any) -> None:
    import torch
    from tokenizers import Tokenizer, models
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=33, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=32, **changes,
    )  # fmt: skip
    LlamaForCausalLM(config).to(getattr(torch, dtype)).save_pretrained(folder)
    words = {f"w{number}": number for number in range(33)}
    PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel(words, "w0")), eos_token="w2").save_pretrained(
        folder
    )
