"""What the contenders that build on transformers.Trainer share: counting tokens, steps and losses, and settings."""

from __future__ import annotations

import os
from typing import Any

from bench.trainer.meter import Meter

# Documents in an optimizer step: as near as can be to the 8 rows of 512 tokens of ours, on either set.
STEP_DOCUMENTS = {"skewed": 32, "equal": 8}


def world() -> int:
    return int(os.environ.get("WORLD_SIZE", "1"))


class Counting:
    """A collator that notes how many tokens are of documents, and how many are computed."""

    def __init__(self, collator: Any) -> None:
        self.collator = collator
        self.sizes: list[tuple[int, int]] = []

    def __call__(self, features: list[dict[str, Any]]) -> Any:
        batch = self.collator(features)
        self.sizes.append((sum(len(each["input_ids"]) for each in features), batch["input_ids"].numel()))
        return batch


def notes(meter: Meter, counting: Counting, accumulate: int) -> Any:
    """A callback that tells the meter of each step; batches come in the order in which they were collated."""
    from transformers import TrainerCallback

    class Notes(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, *_: Any, **__: Any) -> None:
            done = len(meter.ends)
            mine = counting.sizes[done * accumulate : (done + 1) * accumulate]
            meter.step(world() * sum(useful for useful, _ in mine), world() * sum(computed for _, computed in mine))

        def on_log(self, _args: Any, _state: Any, _control: Any, logs: dict[str, Any], **__: Any) -> None:
            if "train_loss" in logs:
                meter.losses[-1] = logs["train_loss"]

    return Notes()


def settings(work: Any, micro_batch: int, accumulate: int, steps: int, precision: str) -> dict[str, Any]:
    """Arguments for the fastest run on CPUs: nothing is evaluated, saved, logged or shown."""
    return {
        "output_dir": str(work / "out-hf"),
        "use_cpu": True,
        "per_device_train_batch_size": micro_batch,
        "gradient_accumulation_steps": accumulate,
        "max_steps": steps,
        "learning_rate": 1e-3,
        "lr_scheduler_type": "constant",
        "bf16": precision == "bf16",
        "logging_strategy": "no",
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "dataloader_num_workers": 0,
        "dataloader_pin_memory": False,
        "gradient_checkpointing": False,
        **({"ddp_backend": "gloo"} if world() > 1 else {}),
    }
