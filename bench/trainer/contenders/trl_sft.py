"""TRL's SFTTrainer on the bench's model and documents, padded or with its packing (best fit, padding-free)."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from bench.trainer.contenders.hf_steps import STEP_DOCUMENTS, Counting, notes, settings, world
from bench.trainer.meter import Meter
from bench.trainer.workload import SEQ_LENGTH, documents

STEP_ROWS = 8


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    parser.add_argument("--rows", choices=("skewed", "equal"), default="skewed")
    parser.add_argument("--packing", action="store_true")
    parser.add_argument("--micro-batch", type=int, default=8)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--steps", type=int, default=12)
    args = parser.parse_args()

    import torch
    from datasets import Dataset, disable_progress_bars
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from trl import SFTConfig, SFTTrainer

    disable_progress_bars()
    tokenizer = AutoTokenizer.from_pretrained(args.work / "model")
    model = AutoModelForCausalLM.from_pretrained(args.work / "model", dtype=torch.float32, attn_implementation="sdpa")
    dataset = Dataset.from_dict({"input_ids": [ids.tolist() for ids in documents(args.work, args.rows)]})
    accumulate = (STEP_ROWS if args.packing else STEP_DOCUMENTS[args.rows]) // args.micro_batch // world()
    meter = Meter()
    trainer = SFTTrainer(
        model=model,
        args=SFTConfig(
            **settings(args.work, args.micro_batch, accumulate, args.steps, args.precision),
            packing=args.packing,
            max_length=SEQ_LENGTH,
        ),
        train_dataset=dataset,
        processing_class=tokenizer,
    )
    counting = trainer.data_collator = Counting(trainer.data_collator)
    trainer.add_callback(notes(meter, counting, accumulate))
    trainer.train()
    if trainer.is_world_process_zero():
        name = "packed" if args.packing else "padded"
        meter.report(contender=f"TRL SFTTrainer, {name}", rows=args.rows, micro_batch=args.micro_batch)
    return 0


if __name__ == "__main__":
    sys.exit(main())
