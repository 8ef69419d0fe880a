"""litgpt's full fine-tuning (litgpt.finetune.full) on the bench's model and documents.

It pads to the longest of a micro-batch; its default micro-batch of 1 pads nothing. The weights become litgpt's
own checkpoint first, which no figure counts.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from bench.trainer.contenders.hf_steps import STEP_DOCUMENTS
from bench.trainer.meter import Meter
from bench.trainer.workload import SEQ_LENGTH, documents


def convert(source: Path, target: Path) -> None:
    """litgpt's checkpoint of the model in `source`: weights, configuration, tokenizer."""
    import json

    import torch
    from litgpt import Config
    from litgpt.scripts.convert_hf_checkpoint import copy_weights_hf_llama
    from litgpt.utils import save_config
    from safetensors.torch import load_file

    shape = json.loads((source / "config.json").read_text())
    config = Config(
        name="bench",
        block_size=shape["max_position_embeddings"],
        vocab_size=shape["vocab_size"],
        padded_vocab_size=shape["vocab_size"],
        n_layer=shape["num_hidden_layers"],
        n_head=shape["num_attention_heads"],
        n_query_groups=shape["num_key_value_heads"],
        n_embd=shape["hidden_size"],
        intermediate_size=shape["intermediate_size"],
        rotary_percentage=1.0,
        parallel_residual=False,
        bias=False,
        norm_class_name="RMSNorm",
        norm_eps=shape["rms_norm_eps"],
        mlp_class_name="LLaMAMLP",
    )
    weights: dict[str, Any] = {}
    copy_weights_hf_llama(config, {}, weights, load_file(source / "model.safetensors"))
    target.mkdir(parents=True, exist_ok=True)
    torch.save(weights, target / "lit_model.pth")
    save_config(config, target)
    for name in ("tokenizer.json", "tokenizer_config.json", "config.json", "generation_config.json"):
        shutil.copy(source / name, target)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    parser.add_argument("--rows", choices=("skewed", "equal"), default="skewed")
    parser.add_argument("--micro-batch", type=int, default=1)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--steps", type=int, default=12)
    args = parser.parse_args()

    import torch
    from litgpt.args import EvalArgs, TrainArgs
    from litgpt.data import DataModule
    from litgpt.data.base import get_sft_collate_fn
    from litgpt.finetune import full
    from litgpt.prompts import Default
    from torch.utils.data import DataLoader

    checkpoint = args.work / "model-litgpt"
    if not (checkpoint / "model_config.yaml").exists():
        convert(args.work / "model", checkpoint)
    pad, sizes = get_sft_collate_fn(max_seq_length=SEQ_LENGTH, pad_id=2), []

    def collate(samples: list[dict[str, Any]], count: bool) -> Any:
        batch = pad(samples)
        if count:
            sizes.append((sum(len(each["input_ids"]) for each in samples), batch["input_ids"].numel()))
        return batch

    class Documents(DataModule):  # type: ignore[misc]
        prompt_style = Default()

        def connect(self, tokenizer: Any = None, batch_size: int = 1, **_: Any) -> None:  # noqa: ARG002
            self.batch_size = batch_size

        def setup(self, _: str = "") -> None:
            self.items = []
            for ids in documents(args.work, args.rows):
                held = torch.from_numpy(ids)
                count = {"raw": len(ids), "raw_plus_prompt_template": len(ids)}
                self.items.append({"input_ids": held, "labels": held, "token_counts": count})

        def train_dataloader(self) -> Any:
            generator = torch.Generator().manual_seed(0)
            return DataLoader(
                self.items, self.batch_size, shuffle=True, generator=generator, collate_fn=partial(collate, count=True)
            )

        def val_dataloader(self) -> Any:
            return DataLoader(self.items[:1], 1, collate_fn=partial(collate, count=False))

    meter = Meter()
    accumulate = STEP_DOCUMENTS[args.rows] // args.micro_batch
    original = torch.optim.AdamW.step

    class Noted(torch.optim.AdamW):  # type: ignore[misc]
        """AdamW that tells the meter of each step, at its end as in the other contenders."""

        def step(self, *given: Any, **more: Any) -> Any:
            result = original(self, *given, **more)
            mine = sizes[len(meter.ends) * accumulate :][:accumulate]
            meter.step(sum(useful for useful, _ in mine), sum(computed for _, computed in mine))
            return result

    torch.optim.AdamW = Noted
    # It would read this program's command line as its own.
    full.save_hyperparameters = lambda *_: None
    full.setup(
        checkpoint,
        args.work / "out-litgpt",
        precision="32-true" if args.precision == "fp32" else "bf16-mixed",
        data=Documents(),
        train=TrainArgs(
            save_interval=None,
            log_interval=10**9,
            global_batch_size=STEP_DOCUMENTS[args.rows],
            micro_batch_size=args.micro_batch,
            lr_warmup_steps=1,
            epochs=100,
            max_steps=args.steps,
            max_seq_length=SEQ_LENGTH,
        ),
        eval=EvalArgs(interval=10**9, max_new_tokens=1, max_iters=1, final_validation=False),
        optimizer={"class_path": "torch.optim.AdamW", "init_args": {"lr": 1e-3, "fused": True}},
    )
    meter.report(contender="litgpt", rows=args.rows, micro_batch=args.micro_batch)
    return 0


if __name__ == "__main__":
    sys.exit(main())
