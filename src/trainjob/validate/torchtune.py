"""What the torch plug-in refuses of a TorchTune job (`command: [tune, run]`).

kubeflow/trainer pkg/runtime/framework/plugins/torch/torchtune.go and pkg/constants/constants.go
(v2.1.0, v2.2.0, v2.3.0), torch.go of v2.0.1. Up to 2.1 the checks run only with numProcPerNode.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from trainjob.findings import Finding
from trainjob.kube import quantity
from trainjob.kube.schema import Path
from trainjob.validate.case import Case
from trainjob.validate.trainjob import runtime_ref
from trainjob.validate.view import NODE, TRAINER, count, entries, listed, mapping, since

LARGE: Final = "llama3_3/70B"
SMALL_LLAMAS: Final = ("llama3_2/1B", "llama3_2/3B")
QWEN: Final = "qwen2_5/1.5B"
_MODELS_20: Final = ("llama3_2/1B", "llama3_2/7B", LARGE)
_MODELS: Final = (*SMALL_LLAMAS, LARGE, QWEN)
_MANAGED: Final = ("output_dir", "tokenizer.path", "checkpointer.checkpoint_dir", "tokenizer.merges_file")
_TRAINER: Final[Path] = ("spec", "trainer")


def check_torchtune(case: Case) -> Iterator[Finding]:
    """TJ523."""
    if case.trainer.get("command") != ["tune", "run"] or case.policy not in ("torch", ""):
        return
    if case.runtime is not None and not case.policy:
        return
    if case.target.torch_nproc_in_runtime and case.trainer.get("numProcPerNode") is None:
        return
    name = runtime_ref(case.obj)[2]
    model = _model(name)
    nodes = count(case.trainer.get("numNodes"))
    if nodes is None and case.target.torch_nproc_in_runtime:
        told = f"numNodes is missing: the webhook of Trainer {case.target} crashes on such a job"
        yield case.find("TJ523", (*_TRAINER, "numNodes"), told, "set numNodes")
    nodes = 1 if nodes is None else nodes
    ref: Path = ("spec", "runtimeRef", "name")
    models = _MODELS if since(case.target, "2.1") else _MODELS_20
    if model not in models:
        yield case.find(
            "TJ523", ref, f"must have a supported pretrained model, invalid model configured: {model}",
            "the runtime must be called torchtune-<family>-<size>, such as torchtune-llama3.2-1b",
        )  # fmt: skip
    if nodes > 1 and model != LARGE:
        yield case.find("TJ523", (*_TRAINER, "numNodes"), f"must be 1 for {model} model")
    if not since(case.target, "2.1"):
        return
    args = [arg for arg in listed(case.trainer.get("args")) if isinstance(arg, str)]
    yield from _qlora(case, model, nodes, args)
    if not since(case.target, "2.3"):
        return
    if nodes > 1 and (_lora(args) or _is_qlora(case, args)):
        told = "LoRA fine-tuning is not supported for multi-node training in TorchTune"
        yield case.find("TJ523", (*_TRAINER, "numNodes"), told)
    for index, arg in enumerate(listed(case.trainer.get("args"))):
        key = str(arg).split("=", 1)[0]
        if key in _MANAGED:
            told = f'must not set immutable config "{key}" in trainer args; it is managed by the runtime'
            yield case.find("TJ523", (*_TRAINER, "args", index), told, "remove the argument")


def _qlora(case: Case, model: str, nodes: int, args: list[str]) -> Iterator[Finding]:
    """QLoRA on several devices of one node (the config with the suffix `_qlora`)."""
    if nodes != 1 or not _is_qlora(case, args):
        return
    processes = case.trainer.get("numProcPerNode")
    if model == QWEN:
        told = f"QLoRA is not supported for {model} model"
        yield case.find("TJ523", ("spec", "runtimeRef", "name"), told)
    if model in SMALL_LLAMAS and not (count(processes) == 1 or _gpus(case) == 1):
        told = f"must be auto or 1 for {model} model when using QLoRA"
        yield case.find("TJ523", (*_TRAINER, "numProcPerNode"), told)
        told = f"must have gpu resource with value 1 for {model} model when using QLoRA"
        yield case.find("TJ523", (*_TRAINER, "resourcesPerNode"), told)


def _model(runtime: str) -> str:
    fields = runtime.split("-")
    return f"{fields[1].replace('.', '_')}/{fields[2].upper()}" if len(fields) == 3 else ""


def _lora(args: list[str]) -> bool:
    return any("model.lora_attn_modules" in arg for arg in args)


def _is_qlora(case: Case, args: list[str]) -> bool:
    """Up to 2.2 the mere names count, since 2.3 their value must be true."""
    dora, quantized = "model.use_dora", "model.quantize_base"
    if not since(case.target, "2.3"):
        return any(quantized in a for a in args) and not any(dora in a for a in args)
    return not _true(args, dora) and _true(args, quantized)


def _true(args: list[str], item: str) -> bool:
    pairs = (arg.partition("=") for arg in args)
    return any(item in name and value.strip().lower() == "true" for name, _, value in pairs)


def _gpus(case: Case) -> int:
    """The number behind the first resource with "gpu" in its name; requests before limits."""
    resources: Any = case.trainer.get("resourcesPerNode")
    if resources is None and case.runtime is not None:
        for job in case.jobs:
            if job.step == TRAINER or job.name == NODE:
                found = (c for _, c in entries(job.pod, "containers") if c.get("name") == NODE)
                resources = next(found, {}).get("resources")
    for half in ("requests", "limits"):
        for key, value in mapping(mapping(resources).get(half)).items():
            if "gpu" in str(key).lower():
                try:
                    return int(quantity.parse(value))
                except ValueError:
                    return 0
    return 0
