"""A small model and a small corpus, made without any library: for tests of the whole trainer, also on a cluster.

The corpus is learnable: each document counts upwards from a random start, so after two numbers all that follows
is known, and the loss falls far below that of guessing.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

WORDS = 64
SPECIAL = ("<unk>", "<s>", "</s>")


def llama(**changes: Any) -> dict[str, Any]:
    """config.json of a Llama that trains in seconds."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": WORDS + len(SPECIAL),
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 256,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "tie_word_embeddings": False,
        **changes,
    }


def granite(**changes: Any) -> dict[str, Any]:
    """The same as a Granite, whose multipliers are not 1."""
    return llama(
        architectures=["GraniteForCausalLM"],
        model_type="granite",
        embedding_multiplier=4.0,
        attention_multiplier=0.2,
        residual_multiplier=0.5,
        logits_scaling=2.0,
        tie_word_embeddings=True,
        **changes,
    )


def write(folder: Path, config: dict[str, Any] | None = None, count: int = 400, seed: int = 0) -> Path:
    """`model/` without weights and `docs.jsonl` below the folder; returns the folder."""
    model = folder / "model"
    model.mkdir(parents=True, exist_ok=True)
    (model / "config.json").write_text(json.dumps(config or llama()))
    (model / "tokenizer.json").write_text(json.dumps(_tokenizer()))
    (model / "tokenizer_config.json").write_text(
        json.dumps(
            {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>",
                "model_max_length": 256,
            }
        )
    )  # fmt: skip
    documents(folder / "docs.jsonl", count, seed)
    return folder


def documents(file: Path, count: int = 400, seed: int = 0, stride: int = 1) -> None:
    """Documents that count in steps of `stride`."""
    draw = random.Random(seed)
    lines = []
    for _ in range(count):
        start, length = draw.randrange(WORDS), draw.randint(6, 30)
        lines.append(json.dumps({"text": " ".join(f"w{(start + stride * i) % WORDS}" for i in range(length))}))
    file.write_text("\n".join(lines) + "\n")


def _tokenizer() -> dict[str, Any]:
    words = [*SPECIAL, *(f"w{i}" for i in range(WORDS))]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": i, "content": word, "single_word": False, "lstrip": False, "rstrip": False,
                "normalized": False, "special": True,
            }
            for i, word in enumerate(SPECIAL)
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": {word: i for i, word in enumerate(words)}, "unk_token": "<unk>"},
    }  # fmt: skip
