"""Which model: its configuration, its class and its files, from a folder or from the hub."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainjob.train import hub
from trainjob.train.config import Config
from trainjob.train.faults import Code, TrainError
from trainjob.train.model import attention

_INDEX = "model.safetensors.index.json"
_SINGLE = "model.safetensors"


@dataclass(frozen=True, slots=True)
class Source:
    """A model that was found: transformers' configuration and class, and the weights that were asked for."""

    config: Any
    architecture: type[Any]
    # Weight names to safetensors files; None: there are none, only files of another kind. Empty: random weights.
    files: dict[str, Path] | None


def find(config: Config) -> Source:
    """Look the model up. Raises NOT_FOUND, NO_ACCESS, HUB, BAD_CHECKPOINT, or CONFIG for one that cannot be trained.

    Files on the hub are downloaded, with the retries of huggingface_hub.
    """
    model = config.model
    if not Path(model.path).is_dir() and model.path.startswith(("/", "./", "../", "~")):
        raise TrainError(Code.NOT_FOUND, f"model.path: no folder {model.path}", "check the path and the volume mounts")
    described = _config(config)
    if getattr(described, "quantization_config", None) is not None:
        raise TrainError(
            Code.CONFIG,
            f"model.path: the weights of {model.path} are quantised already, they cannot be trained",
            "take the unquantised model; lora.quantize=nf4 quantises while loading",
        )
    architecture = _architecture(described, config)
    attention.refuse_unsupported(architecture, described)
    files: dict[str, Path] | None = {}
    if model.init == "pretrained":
        files = _files(config)
    return Source(config=described, architecture=architecture, files=files)


def construct(source: Source) -> Any:
    """The model with weights and buffers on the meta device: a structure without memory; dtype fp32."""
    import torch
    from transformers.initialization import no_init_weights

    with no_init_weights(), torch.device("meta"):
        causal = source.architecture._from_config(
            source.config, dtype=torch.float32, attn_implementation=attention.register()
        )
    causal.tie_weights()  # no_init_weights leaves that out
    causal.config.use_cache = False
    return causal.train()


def pretrained(source: Source, config: Config, dtype: Any) -> Any:
    """The whole model on the CPU, as transformers loads it: for weights that it has to convert first."""
    model = config.model
    try:
        causal, report = source.architecture.from_pretrained(
            model.path,
            config=source.config,
            revision=model.revision or "main",
            trust_remote_code=model.trust_remote_code,
            dtype=dtype,
            output_loading_info=True,
        )
    except Exception as error:
        raise explain(error, model.path) from error
    wrong = [*report["missing_keys"], *(str(m) for m in report["mismatched_keys"])]
    if wrong:
        raise TrainError(
            Code.BAD_CHECKPOINT,
            f"model.path: {model.path} lacks weights of {source.architecture.__name__}: {', '.join(sorted(wrong)[:3])}"
            f"{f' and {len(wrong) - 3} more' if len(wrong) > 3 else ''}",
            "check that config.json and the weights are of one model, or set model.init=random",
        )
    return causal


def _config(config: Config) -> Any:
    from transformers import AutoConfig

    model = config.model
    try:
        return AutoConfig.from_pretrained(
            model.path, revision=model.revision or "main", trust_remote_code=model.trust_remote_code
        )
    except Exception as error:
        raise explain(error, model.path) from error


def _architecture(described: Any, config: Config) -> type[Any]:
    model = config.model
    remote = getattr(described, "auto_map", None) or {}
    if model.trust_remote_code and "AutoModelForCausalLM" in remote:
        from transformers.dynamic_module_utils import get_class_from_dynamic_module

        try:
            found: type[Any] = get_class_from_dynamic_module(
                remote["AutoModelForCausalLM"], model.path, revision=model.revision or "main"
            )
        except Exception as error:
            raise explain(error, model.path) from error
        return found
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

    try:
        found = MODEL_FOR_CAUSAL_LM_MAPPING[type(described)]
    except KeyError:
        raise TrainError(
            Code.CONFIG,
            f"model.path: transformers has no causal language model of the type `{described.model_type}`",
            "take a decoder like Llama, Granite, Mistral or Qwen"
            + (", or set model.trust_remote_code if you trust the model's own code" if remote else ""),
        ) from None
    if isinstance(found, tuple):  # some types have several; config.json names one
        named = set(described.architectures or ())
        found = next((one for one in found if one.__name__ in named), found[0])
    return found


def _files(config: Config) -> dict[str, Path] | None:
    """Weight names and the safetensors files that hold them, or None without such files."""
    model = config.model
    index = _file(config, _INDEX)
    if index is None:
        single = _file(config, _SINGLE)
        return None if single is None else dict.fromkeys(_names(single), single)
    try:
        where: dict[str, str] = json.loads(index.read_text())["weight_map"]
    except (ValueError, KeyError, TypeError) as error:
        raise TrainError(
            Code.BAD_CHECKPOINT, f"model.path: {index} cannot be read: {error}", "download or copy the model again"
        ) from error
    paths: dict[str, Path] = {}
    for name in sorted(set(where.values())):
        found = _file(config, name)
        if found is None:
            raise TrainError(
                Code.BAD_CHECKPOINT,
                f"model.path: {model.path} lacks {name}, which {_INDEX} names",
                "download or copy the model again",
            )
        paths[name] = found
    return {weight: paths[name] for weight, name in where.items()}


def _file(config: Config, name: str) -> Path | None:
    from transformers.utils.hub import cached_file

    model = config.model
    folder = Path(model.path)
    if folder.is_dir():
        return folder / name if (folder / name).is_file() else None
    try:
        found = cached_file(
            model.path, name, revision=model.revision or "main", _raise_exceptions_for_missing_entries=False
        )
    except Exception as error:
        raise explain(error, model.path) from error
    return Path(found) if found else None


def _names(path: Path) -> list[str]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as weights:
            return list(weights.keys())
    except (SafetensorError, OSError) as error:
        raise explain(error, str(path)) from error


def explain(error: BaseException, path: str) -> TrainError:
    """A library's error while a model is looked up or read, as one of ours."""
    if isinstance(error, TrainError):
        return error
    names, told, line = hub.names(error), hub.code(error), hub.line(error)
    folder = Path(path)
    if folder.exists():
        if names & {"SafetensorError", "UnpicklingError"}:
            return TrainError(
                Code.BAD_CHECKPOINT,
                f"model.path: the weights in {path} are broken: {line}",
                "download or copy the model again",
            )
        if "PermissionError" in names:
            return TrainError(Code.NO_ACCESS, f"model.path: {line}", "let the pod's user read the folder")
        if folder.is_dir() and not (folder / "config.json").is_file():
            return TrainError(
                Code.NOT_FOUND,
                f"model.path: {path} holds no config.json",
                "name the folder that holds the model's files",
            )
        if "MemoryError" in names:
            return TrainError(
                Code.OUT_OF_MEMORY, f"model.path: no memory to load {path}", "raise the pod's memory limit"
            )
        return TrainError(
            Code.BAD_CHECKPOINT, f"model.path: {path} cannot be read: {line}", "check the folder with `ls -l`"
        )
    if told is Code.NO_ACCESS:
        return TrainError(
            Code.NO_ACCESS,
            f"model.path: the hub gives no access to {path}; it is gated, private or does not exist",
            "accept its licence on the hub and set HF_TOKEN from a secret, or check the name",
        )
    if told is Code.NOT_FOUND:
        return TrainError(
            Code.NOT_FOUND,
            f"model.path: {path} is neither a folder nor a model on the hub (or it has no such revision)",
            "check model.path and model.revision",
        )
    if names & {"ValueError", "KeyError"} and not names & {"OSError"}:
        return TrainError(Code.CONFIG, f"model.path: {path}: {line}", "take a model that this transformers knows")
    return TrainError(
        Code.HUB,
        f"model.path: {path} is no folder, and the hub cannot be reached: {line}",
        "allow egress to the hub, or put the model on a volume or in the cache (HF_HOME) and name it there",
    )
