"""A small real tokenizer, chat templates and files for the tests of the data."""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from trainjob.train import config

_TEXT = """the a row of tokens and its labels are packed into one batch while every rank reads the same data in order
 naïve Straße 東京 x = y + 1 def loss(): return 0.25"""
WORDS = _TEXT.split(" ")

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# The same text; the template says itself what the assistant wrote.
CHATML_MARKED = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.role == 'assistant' %}{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}"
    "{% else %}{{ m.content }}<|im_end|>{% endif %}{{ '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# Thoughts are kept in the last turn alone.
FORGETFUL = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.role == 'assistant' and loop.last %}<think>why</think>{% endif %}{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@functools.cache
def tokenizer_json(bos: bool = False) -> str:
    """A byte-level BPE of 600 tokens."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=["<s>", "</s>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator([" ".join(WORDS)] * 20, trainer)
    if bos:
        made.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return str(made.to_str())


def tokenizer(template: str = "", *, bos: bool = False, eos: str = "</s>") -> Any:
    """As transformers loads it."""
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    more = {"chat_template": template} if template else {}
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(tokenizer_json(bos)), bos_token="<s>", eos_token=eos or None, **more
    )


def text(rng: random.Random, words: int) -> str:
    """Some words."""
    return " ".join(rng.choices(WORDS, k=words))


def texts(count: int, *, seed: int = 0, mean: float = 2.5, spread: float = 1.0, longest: int = 2000) -> list[str]:
    """Texts of skewed lengths: log-normal, in words."""
    rng = random.Random(seed)
    return [text(rng, 1 + min(longest, int(rng.lognormvariate(mean, spread)))) for _ in range(count)]


def write(path: Path, values: Iterable[Any]) -> Path:
    """A JSONL file."""
    path.write_text("".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values), "utf-8")
    return path


def write_texts(path: Path, values: Sequence[str]) -> Path:
    """A JSONL file of texts."""
    return write(path, [{"text": value} for value in values])


def data(*paths: Path, **more: Any) -> config.Data:
    """Settings for these files."""
    return config.Data(train=tuple(map(str, paths)), **more)


def chat(*turns: str) -> list[dict[str, str]]:
    """User and assistant in turn."""
    return [{"role": ("user", "assistant")[n % 2], "content": turn} for n, turn in enumerate(turns)]
