"""transformers.Trainer on the bench's model and documents.

    python bench/trainer/contenders/hf.py WORK --rows skewed --batching padded

batching: `padded`: its default, DataCollatorForLanguageModeling pads to the longest of a batch; `grouped`: the same
with documents of like lengths together (train_sampling_strategy=group_by_length); `flat`: padding-free
(DataCollatorWithFlattening). Its loss is the mean over the run.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from bench.trainer.contenders.hf_steps import STEP_DOCUMENTS, Counting, notes, settings, world
from bench.trainer.meter import Meter


class Lines:
    """Documents of a JSONL file, tokenised when they are asked for: what a short script does."""

    def __init__(self, file: Path, tokenizer: Any) -> None:
        self.lines, self.tokenizer = file.read_text(encoding="utf-8").splitlines(), tokenizer

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, index: int) -> dict[str, Any]:
        ids = self.tokenizer(json.loads(self.lines[index])["text"])["input_ids"]
        return {"input_ids": [*ids, self.tokenizer.eos_token_id]}


class Ids:
    """Documents that were tokenised before."""

    def __init__(self, documents: list[Any]) -> None:
        self.documents = [each.tolist() for each in documents]

    def __len__(self) -> int:
        return len(self.documents)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"input_ids": self.documents[index]}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    parser.add_argument("--rows", choices=("skewed", "equal"), default="skewed")
    parser.add_argument("--batching", choices=("padded", "grouped", "flat"), default="padded")
    parser.add_argument("--micro-batch", type=int, default=8)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--lazy", action="store_true", help="tokenise while training")
    parser.add_argument("--documents", type=int, default=0, help="in an optimizer step")
    args = parser.parse_args()

    import torch
    from transformers import (
        AutoModelForCausalLM,
        AutoTokenizer,
        DataCollatorForLanguageModeling,
        DataCollatorWithFlattening,
        Trainer,
        TrainingArguments,
    )

    tokenizer = AutoTokenizer.from_pretrained(args.work / "model")
    model = AutoModelForCausalLM.from_pretrained(args.work / "model", dtype=torch.float32, attn_implementation="sdpa")
    if args.lazy:
        dataset: Any = Lines(args.work / f"{args.rows}.jsonl", tokenizer)
    else:
        from bench.trainer.workload import documents

        dataset = Ids(documents(args.work, args.rows))
    flat = args.batching == "flat"
    counting = Counting(DataCollatorWithFlattening() if flat else DataCollatorForLanguageModeling(tokenizer, mlm=False))
    accumulate = (args.documents or STEP_DOCUMENTS[args.rows]) // args.micro_batch // world()
    meter = Meter()
    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            **settings(args.work, args.micro_batch, accumulate, args.steps, args.precision),
            train_sampling_strategy="group_by_length" if args.batching == "grouped" else "random",
        ),
        train_dataset=dataset,
        data_collator=counting,
        callbacks=[notes(meter, counting, accumulate)],
    )
    trainer.train()
    if trainer.is_world_process_zero():
        meter.report(contender=f"transformers.Trainer, {args.batching}", rows=args.rows, micro_batch=args.micro_batch)
    return 0


if __name__ == "__main__":
    sys.exit(main())
