"""Makes what all contenders train on: a random-weight Llama, a tokenizer of whole words, two sets of documents.

    python bench/trainer/workload.py FOLDER [--size small]

FOLDER/model        config.json, model.safetensors (fp32), tokenizer
FOLDER/skewed.jsonl  documents of log-normal lengths, FOLDER/equal.jsonl: all as long as a row
FOLDER/*.npz         the same as token ids (`ids`, `lengths`), for contenders that take them: nobody but
                     ours tokenises while the clock runs

Every word is one token, so lengths are exact. A document ends with the end token, which counts.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SEED = 20
SEQ_LENGTH = 512
# Instruction sets: half of the documents are shorter than a fifth of a row, a few fill it.
MEDIAN, SIGMA, SHORTEST = 110, 0.6, 8


@dataclass(frozen=True, slots=True)
class Size:
    """A Llama's shape."""

    hidden: int
    inner: int
    layers: int
    heads: int
    kv_heads: int
    vocabulary: int

    @property
    def parameters(self) -> int:
        """Weights, input and output embedding apart (not tied)."""
        head = self.hidden // self.heads
        attention = 2 * self.hidden * self.hidden + 2 * self.hidden * self.kv_heads * head
        layer = attention + 3 * self.hidden * self.inner + 2 * self.hidden
        return self.layers * layer + 2 * self.vocabulary * self.hidden + self.hidden


SIZES = {
    "tiny": Size(64, 128, 2, 4, 2, 512),
    "small": Size(256, 688, 4, 8, 4, 4096),
    "medium": Size(512, 1376, 8, 8, 4, 8192),
    "large": Size(1024, 2752, 10, 16, 8, 16384),
}


def config_of(size: Size) -> dict[str, Any]:
    """config.json of transformers' LlamaForCausalLM."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": size.hidden,
        "intermediate_size": size.inner,
        "num_hidden_layers": size.layers,
        "num_attention_heads": size.heads,
        "num_key_value_heads": size.kv_heads,
        "head_dim": size.hidden // size.heads,
        "vocab_size": size.vocabulary,
        "max_position_embeddings": SEQ_LENGTH,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "attention_bias": False,
        "mlp_bias": False,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "pad_token_id": 2,
        "dtype": "float32",
    }


def make_model(folder: Path, size: Size) -> None:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(SEED)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config_of(size), indent=1))
    model = LlamaForCausalLM(LlamaConfig.from_pretrained(folder))
    made = sum(p.numel() for p in model.parameters())
    if made != size.parameters:
        raise AssertionError(f"the model has {made} parameters, not {size.parameters}")
    model.save_pretrained(folder)


def make_tokenizer(folder: Path, size: Size) -> None:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit
    from transformers import PreTrainedTokenizerFast

    words = {"<s>": 0, "</s>": 1, "<pad>": 2, **{word(n): n for n in range(3, size.vocabulary)}}
    made = Tokenizer(WordLevel(words, unk_token="<pad>"))
    made.pre_tokenizer = WhitespaceSplit()
    PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token="<s>", eos_token="</s>", pad_token="<pad>", model_max_length=SEQ_LENGTH
    ).save_pretrained(folder)


def word(token: int) -> str:
    return f"w{token}"


def make_documents(folder: Path, name: str, size: Size, documents: int) -> None:
    """Words follow a Zipf law and one another in short runs, so that there is something to learn."""
    import numpy

    random = numpy.random.default_rng(SEED)
    if name == "equal":
        lengths = numpy.full(documents, SEQ_LENGTH)
    else:
        drawn = random.lognormal(numpy.log(MEDIAN), SIGMA, documents)
        lengths = numpy.clip(drawn.astype(int), SHORTEST, SEQ_LENGTH)
    choices = size.vocabulary - 3
    texts: list[Any] = []
    for length in lengths:
        starts = random.zipf(1.3, int(length)) % choices
        runs = numpy.where(random.random(int(length)) < 0.5, 1, 0)
        ids = starts.copy()
        for at in range(1, int(length)):
            if runs[at]:
                ids[at] = (ids[at - 1] * 7 + 3) % choices
        ids += 3
        ids[-1] = 1
        texts.append(ids.astype(numpy.int64))
    numpy.savez(folder / f"{name}.npz", ids=numpy.concatenate(texts), lengths=lengths.astype(numpy.int64))
    with (folder / f"{name}.jsonl").open("w", encoding="utf-8") as file:
        for ids in texts:
            file.write(json.dumps({"text": " ".join(word(int(token)) for token in ids[:-1])}) + "\n")


def documents(folder: Path, name: str) -> list[Any]:
    """The documents of a set as arrays of token ids."""
    import numpy

    held = numpy.load(folder / f"{name}.npz")
    return list(numpy.split(held["ids"], numpy.cumsum(held["lengths"])[:-1]))


def make(folder: Path, size: str, number: int = 4000) -> None:
    """Model, tokenizer and both sets; the skewed one has `number` documents, the equal one a quarter."""
    make_model(folder / "model", SIZES[size])
    make_tokenizer(folder / "model", SIZES[size])
    make_documents(folder, "skewed", SIZES[size], number)
    make_documents(folder, "equal", SIZES[size], number // 4)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=sorted(SIZES), default="small")
    parser.add_argument("--documents", type=int, default=4000, help="in the skewed set; the equal one has a quarter")
    args = parser.parse_args()
    make(args.folder, args.size, args.documents)
    return 0


if __name__ == "__main__":
    sys.exit(main())
