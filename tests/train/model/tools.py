"""Tiny models with random weights, batches of documents, and training steps on this rank's part of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from trainjob.train.config import Config, Lora, Model, Optim, Parallel, Train
from trainjob.train.data.batch import IGNORE, Batch
from trainjob.train.model.build import Built, build

CPU = torch.device("cpu")
VOCABULARY = 96

_TINY = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 56,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
}


def settings(architecture: str, **more: Any) -> Any:
    """A configuration of transformers: `Llama`, `Granite`, `Mistral`, `Qwen2`, ..."""
    import transformers

    made = getattr(transformers, f"{architecture}Config")(**{**_TINY, **more})
    made.architectures = [f"{architecture}ForCausalLM"]
    return made


def folder(path: Path, architecture: str = "Llama", **more: Any) -> Path:
    """A folder with config.json alone."""
    settings(architecture, **more).save_pretrained(path)
    return path


def pretrained(path: Path, architecture: str = "Llama", shard: Any = "50GB", **more: Any) -> Any:
    """A model with weights, written to the folder `path`; returns it."""
    import transformers

    torch.manual_seed(1)
    model = getattr(transformers, f"{architecture}ForCausalLM")(settings(architecture, **more))
    with torch.no_grad():
        for parameter in model.parameters():
            # Larger than initial weights, so that every part of the model matters in the loss.
            parameter.add_(torch.randn_like(parameter) * 0.1)
    model.save_pretrained(path, max_shard_size=shard)
    return model.eval()


def config(path: Path, *, mode: Any = "none", init: Any = "random", precision: Any = "fp32", **more: Any) -> Config:
    """`more`: fields of Train, Parallel and Lora by their names; `lora_rank` for Lora's rank."""
    made = Config(
        model=Model(path=str(path), init=init),
        train=Train(precision=precision, seed=3),
        optim=Optim(lr=1e-2, weight_decay=0.1, warmup_steps=1),
        parallel=Parallel(mode=mode),
    )
    if "lora_rank" in more:
        made = replace(made, lora=Lora(rank=more.pop("lora_rank")))
    for name, value in more.items():
        part = next(p for p in ("train", "parallel", "lora", "optim", "model") if hasattr(getattr(made, p), name))
        made = replace(made, **{part: replace(getattr(made, part), **{name: value})})
    return made


def batch(lengths: list[int], seed: int = 0, learn: float = 1.0) -> Batch:
    """Documents of these lengths; `learn`: the part of tokens that is learnt."""
    random = torch.Generator().manual_seed(seed)
    total = sum(lengths)
    ids = torch.randint(0, VOCABULARY, (total,), generator=random)
    ends = torch.tensor(lengths).cumsum(0)
    labels = ids.roll(-1)
    labels[ends - 1] = IGNORE
    labels[torch.rand(total, generator=random) >= learn] = IGNORE
    return Batch(
        input_ids=ids,
        labels=labels,
        positions=torch.cat([torch.arange(n) for n in lengths]),
        starts=torch.tensor([0, *ends.tolist()], dtype=torch.int32),
        longest=max(lengths),
        targets=int((labels != IGNORE).sum()),
    )


def empty() -> Batch:
    nothing = torch.zeros(0, dtype=torch.int64)
    return Batch(nothing, nothing, nothing, torch.zeros(1, dtype=torch.int32), 0, 0)


ROWS = ([9, 5, 20], [17], [3, 3, 3, 3], [11, 2, 24, 1, 8], [13, 13])


def train(built: Built, rank: int, world: int, steps: int = 5) -> dict[str, Any]:
    """Steps of five rows, so that with two ranks one has an empty micro-batch. Losses are means over targets."""
    schedule = built.schedule(steps)
    losses, norms = [], []
    for _ in range(steps):
        rows = [batch(lengths, seed=i, learn=0.7) for i, lengths in enumerate(ROWS)]
        targets = sum(row.targets for row in rows)
        count = -(-len(rows) // world)
        mine = [*rows[rank::world], empty()][:count]
        loss = torch.zeros(())
        for i, micro in enumerate(mine):
            loss += built.backward(micro, targets, i == count - 1)
        norms.append(float(built.clip(1.0)))
        built.optimizer.step()
        schedule.step()
        built.optimizer.zero_grad()
        if world > 1:
            torch.distributed.all_reduce(loss)
        losses.append(float(loss) / targets)
    return {"losses": losses, "norms": norms, "weights": whole(built.model)}


def whole(model: Any) -> dict[str, torch.Tensor]:
    """Copies of all trainable weights, gathered, by their names."""
    found = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            full = parameter.detach()
            found[name] = (full.full_tensor() if hasattr(full, "full_tensor") else full).clone()
    return found


def run(made: Config, rank: int = 0, world: int = 1, steps: int = 5) -> dict[str, Any]:
    built = build(made, device=CPU, rank=rank, world=world)
    return {**train(built, rank, world, steps), "notes": built.notes, "facts": built.facts, "mode": built.mode}
