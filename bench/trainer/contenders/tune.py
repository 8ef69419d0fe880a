"""torchtune's recipe full_finetune_single_device on the bench's model and documents, padded or packed.

It packs greedily into rows of a fixed length, with a dense mask where there is no GPU, and pads what is left of a row.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from bench.trainer.contenders.hf_steps import STEP_DOCUMENTS
from bench.trainer.meter import Meter
from bench.trainer.workload import SEQ_LENGTH, documents

STEP_ROWS = 8
METER = Meter()
SIZES: list[tuple[int, int]] = []


class Tokenizer:
    """The recipe asks its tokenizer for the padding token only."""

    pad_id = 2
    max_seq_len = SEQ_LENGTH


class Documents:
    """The documents, as torchtune's data sets return them."""

    def __init__(self, work: str, rows: str) -> None:
        self.items = [ids.tolist() for ids in documents(Path(work), rows)]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"tokens": self.items[index], "labels": self.items[index]}


def dataset(_: Any, work: str, rows: str, packed: bool) -> Any:
    from torchtune.datasets import PackedDataset

    plain = Documents(work, rows)
    return PackedDataset(plain, max_seq_len=SEQ_LENGTH, padding_idx=2) if packed else plain


def collate(batch: list[dict[str, Any]], padding_idx: int, ignore_idx: int) -> Any:
    from torchtune.data import padded_collate_sft

    made = padded_collate_sft(batch, padding_idx=padding_idx, ignore_idx=ignore_idx)
    SIZES.append((sum(len(each["tokens"]) for each in batch), made["tokens"].numel()))
    return made


def counted(collator: Any) -> Any:
    """The recipe's collator of packed rows, and what is in them; labels of padding are ignored ones."""

    def collate_rows(batch: list[dict[str, Any]]) -> Any:
        made = collator(batch)
        SIZES.append((int((made["labels"] != -100).sum()), made["tokens"].numel()))
        return made

    return collate_rows


def load_recipe(name: str) -> Any:
    """A recipe by its file: the package `recipes` refuses to be imported."""
    import torchtune

    file = Path(torchtune.__file__).parents[1] / "recipes" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Logger:
    """A metric logger that tells the meter of each step."""

    def __init__(self, accumulate: int) -> None:
        self.accumulate = accumulate

    def log_config(self, config: Any) -> None: ...

    def log_dict(self, payload: dict[str, Any], step: int) -> None:
        mine = SIZES[(step - 1) * self.accumulate : step * self.accumulate]
        METER.step(sum(useful for useful, _ in mine), sum(done for _, done in mine), float(payload["loss"]))

    def close(self) -> None: ...


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    parser.add_argument("--rows", choices=("skewed", "equal"), default="skewed")
    parser.add_argument("--packing", action="store_true")
    parser.add_argument("--micro-batch", type=int, default=4)
    parser.add_argument("--steps", type=int, default=12)
    args = parser.parse_args()

    from omegaconf import OmegaConf

    shape = json.loads((args.work / "model" / "config.json").read_text())
    accumulate = (STEP_ROWS if args.packing else STEP_DOCUMENTS[args.rows]) // args.micro_batch
    # The module that torchtune finds by this name is another copy of this file: its figures are read.
    import bench.trainer.contenders.tune as shared

    here = "bench.trainer.contenders.tune"
    config = OmegaConf.create(
        {
            "output_dir": str(args.work / "out-tune"),
            "device": "cpu",
            "dtype": "fp32",
            "seed": 0,
            "epochs": 1,
            "max_steps_per_epoch": args.steps,
            "batch_size": args.micro_batch,
            "gradient_accumulation_steps": accumulate,
            "shuffle": True,
            "compile": False,
            "optimizer_in_bwd": False,
            "clip_grad_norm": 1.0,
            "resume_from_checkpoint": False,
            "enable_activation_checkpointing": False,
            "enable_activation_offloading": False,
            "log_every_n_steps": 1,
            "metric_logger": {"_component_": f"{here}.Logger", "accumulate": accumulate},
            "model": {
                "_component_": "torchtune.models.llama3.llama3",
                "vocab_size": shape["vocab_size"],
                "num_layers": shape["num_hidden_layers"],
                "num_heads": shape["num_attention_heads"],
                "num_kv_heads": shape["num_key_value_heads"],
                "embed_dim": shape["hidden_size"],
                "max_seq_len": SEQ_LENGTH,
                "intermediate_dim": shape["intermediate_size"],
                "rope_base": 10000,
                "norm_eps": shape["rms_norm_eps"],
            },
            "tokenizer": {"_component_": f"{here}.Tokenizer"},
            "dataset": {
                "_component_": f"{here}.dataset",
                "work": str(args.work),
                "rows": args.rows,
                "packed": args.packing,
            },
            "collate_fn": f"{here}.collate",
            "checkpointer": {
                "_component_": "torchtune.training.FullModelHFCheckpointer",
                "checkpoint_dir": str(args.work / "model"),
                "checkpoint_files": ["model.safetensors"],
                "output_dir": str(args.work / "out-tune"),
                "model_type": "LLAMA3",
            },
            "optimizer": {"_component_": "torch.optim.AdamW", "lr": 1e-3, "fused": True},
            "loss": {"_component_": "torchtune.modules.loss.CEWithChunkedOutputLoss"},
        }
    )
    recipe = load_recipe("full_finetune_single_device")
    recipe.padded_collate_packed = shared.counted(recipe.padded_collate_packed)
    run = recipe.FullFinetuneRecipeSingleDevice(config)
    run.setup(config)
    run.save_checkpoint = lambda **_: None
    run.train()
    name = "packed" if args.packing else "padded"
    shared.METER.report(contender=f"torchtune, {name}", rows=args.rows, micro_batch=args.micro_batch)
    return 0


if __name__ == "__main__":
    sys.exit(main())
