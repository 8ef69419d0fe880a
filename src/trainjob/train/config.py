"""What a run is to do. Every field is a key of the YAML file, a variable and a flag.

`model.path` in the file is TRAINJOB_TRAIN_MODEL_PATH in the environment and --model.path on the command
line. The flag wins over the variable, the variable over the file, the file over the default. An unknown
key is an error: it would be a setting that silently does nothing. `settings.py` reads all three.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


def _setting(default: Any, help_: str, **more: Any) -> Any:
    """A field with its help text; `choices` are the allowed values, `least` the smallest."""
    return field(default=default, metadata={"help": help_, **more})


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """Which model, and how it starts."""

    path: str = _setting("", "folder of a Hugging Face model, or its name on the hub", required=True)
    revision: str = _setting("", "branch, tag or commit on the hub")
    tokenizer: str = _setting("", "folder or hub name of the tokenizer, if not that of the model")
    init: str = _setting("pretrained", "`random`: config.json alone, random weights", choices=("pretrained", "random"))
    trust_remote_code: bool = _setting(False, "run code that the model's repository brings")


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """What it learns from: JSONL files of documents."""

    train: tuple[str, ...] = _setting((), "JSONL files, globs allowed; several after commas", required=True)
    format: str = _setting(
        "auto", "`text`: a text each line; `chat`: a list of messages; `auto`: as the first line says",
        choices=("auto", "text", "chat"),
    )  # fmt: skip
    text_field: str = _setting("text", "the key of the text")
    chat_field: str = _setting("messages", "the key of the messages, each with `role` and `content`")
    learn: str = _setting(
        "assistant", "in chats: learn the assistant's words alone, or all", choices=("assistant", "all")
    )
    chat_template: str = _setting("", "file with a Jinja template, if not the tokenizer's own")
    seq_length: int = _setting(1024, "tokens in a row; longer documents are cut into pieces", least=2)
    packing: bool = _setting(True, "put several documents into a row; they do not see each other")
    shuffle: bool = _setting(True, "shuffle documents, within windows")
    window: int = _setting(2048, "documents that are shuffled and packed together", least=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Train:
    """How long and how much at once."""

    steps: int = _setting(0, "optimizer steps; 0: as many as `epochs` give", least=0)
    epochs: int = _setting(0, "times through the data; 0: one, or with `steps` as many as those need", least=0)
    global_batch: int = _setting(8, "rows in an optimizer step, over all ranks", least=1)
    micro_batch: int = _setting(1, "rows that a rank computes at once", least=1)
    seed: int = _setting(0, "of shuffling, dropout and random weights", least=0)
    precision: str = _setting(
        "bf16", "`bf16`: compute in bf16, weights and sums in fp32; `fp32`: all in fp32", choices=("bf16", "fp32")
    )
    compile: bool = _setting(False, "compile the layers with torch.compile: slow start, faster steps on GPUs")
    deterministic: bool = _setting(False, "only deterministic algorithms: the same numbers on each run, slower on GPUs")
    max_grad_norm: float = _setting(1.0, "clip gradients to this norm; 0: do not", least=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Optim:
    """AdamW and its schedule."""

    lr: float = _setting(2e-5, "peak learning rate", least=0)
    betas: tuple[float, ...] = _setting((0.9, 0.95), "AdamW's two betas")
    eps: float = _setting(1e-8, "AdamW's epsilon", least=0)
    weight_decay: float = _setting(0.0, "on matrices; not on norms, biases and embeddings", least=0)
    schedule: str = _setting("cosine", "after the warm-up", choices=("cosine", "linear", "constant"))
    warmup_steps: int = _setting(0, "steps from 0 to the peak", least=0)
    min_lr_ratio: float = _setting(0.1, "where the schedule ends, as a part of the peak", least=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallel:
    """How ranks share the work."""

    mode: str = _setting(
        "auto", "`fsdp` shards weights, gradients and optimizer; `ddp` copies them; `auto`: fsdp with several ranks",
        choices=("auto", "fsdp", "ddp", "none"),
    )  # fmt: skip
    reshard_after_forward: bool = _setting(True, "fsdp: free gathered weights between forward and backward")
    cpu_offload: bool = _setting(False, "fsdp: keep weights and optimizer in host memory")
    activation_checkpointing: bool = _setting(False, "recompute layers in the backward: less memory, a third more work")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lora:
    """Adapters instead of all weights (peft)."""

    rank: int = _setting(0, "rank of the adapters; 0: train all weights", least=0)
    alpha: int = _setting(16, "scale: the adapter counts alpha / rank", least=1)
    dropout: float = _setting(0.0, "dropout on the adapters' input", least=0)
    targets: tuple[str, ...] = _setting(("all-linear",), "names of the layers that get one")
    quantize: str = _setting("none", "`nf4` keeps the frozen weights in 4 bits (QLoRA)", choices=("none", "nf4"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """What is kept to go on from."""

    url: str = _setting("", "folder or s3://bucket/folder; default: TRAINJOB_CHECKPOINT_URL, else /checkpoints")
    every: int = _setting(100, "steps between checkpoints; 0: only at the end and on SIGTERM", least=0)
    keep: int = _setting(2, "newest checkpoints to keep", least=1)
    asynchronous: bool = _setting(True, "write while the training goes on")
    resume: str = _setting("auto", "`auto`: from the newest whole one; `never`; or a step's number")


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """What others load at the end: a Hugging Face folder."""

    kind: str = _setting(
        "auto", "`full`: all weights; `adapter`: the adapter alone; `merged`: adapter put into the weights; `auto`: "
        "adapter with LoRA, else full; `none`", choices=("auto", "full", "adapter", "merged", "none"),
    )  # fmt: skip
    url: str = _setting("", "where; default: the folder `export` beside the checkpoints")


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What can be seen from outside."""

    every: int = _setting(1, "steps between lines in the log", least=1)
    metrics: str = _setting("", "JSONL file of metrics; default: metrics.jsonl beside the checkpoints; `none`")
    tensorboard: str = _setting("", "folder for TensorBoard (extra `tensorboard`)")
    mlflow: str = _setting("", "tracking URI of MLflow (extra `mlflow`)")
    mlflow_experiment: str = _setting("trainjob", "MLflow's experiment")
    status: bool = _setting(True, "progress in the TrainJob's status, where the cluster offers it")
    peak_tflops: float = _setting(0.0, "peak of a device, for MFU; 0: from a table of GPUs, else no MFU", least=0)
    watchdog: float = _setting(1800.0, "seconds without a step after which the run ends as hung; 0: never", least=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """One run."""

    model: Model = field(default_factory=Model)
    data: Data = field(default_factory=Data)
    train: Train = field(default_factory=Train)
    optim: Optim = field(default_factory=Optim)
    parallel: Parallel = field(default_factory=Parallel)
    lora: Lora = field(default_factory=Lora)
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    export: Export = field(default_factory=Export)
    report: Report = field(default_factory=Report)
