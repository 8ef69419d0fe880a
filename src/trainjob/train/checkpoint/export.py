"""What others load: a Hugging Face folder with all weights, with an adapter, or with the adapter put into the weights.

All ranks take part: weights are gathered one at a time, and only rank 0 keeps them, on the host in the dtype that
is written. It needs 2 bytes a parameter for bf16 there; the others need room for the largest weight.
"""

from __future__ import annotations

import copy
import os
import re
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import torch

from trainjob.train.checkpoint.place import Place, fault
from trainjob.train.checkpoint.ranks import Ranks
from trainjob.train.checkpoint.state import bare, is_sharded, plain, reshard
from trainjob.train.config import Model
from trainjob.train.faults import Code, TrainError

_SHARD: Final = "5GB"
# Written last: without it nothing loads the folder.
_KEYS: Final = {"full": "config.json", "merged": "config.json", "adapter": "adapter_config.json"}
_WEIGHTS: Final = {
    "full": re.compile(r"(model|pytorch_model)(-\d+-of-\d+)?\.(safetensors|bin)(\.index\.json)?\Z"),
    "adapter": re.compile(r"adapter_model\.(safetensors|bin)\Z"),
}
_ADAPTER: Final = "default"


def export(kind: str, trained: Any, *, url: str, tokenizer: Any = None, model: Model) -> None:
    """Writes `trained` to the folder `url`. To be called by all ranks.

    `kind`: `full`, `adapter` or `merged`. `model`: where the training began; what it was stored as (dtype) is what
    is written. A folder that is there is taken over: its weights are replaced, other files stay.
    Raises TrainError on all ranks: CONFIG, NO_SPACE, NO_ACCESS, STORAGE.
    """
    ranks = Ranks()
    try:
        trained = bare(trained)
        _check(kind, trained, url, model)
        dtype = ranks.first(lambda: _stored_dtype(model))
        gather = _Gather(ranks.rank == 0)
        reshard(trained)
        base = {} if kind == "adapter" else gather.base(trained, dtype)
        adapter = {} if kind == "full" else gather.adapter(trained)
        error: TrainError | None = None
        if ranks.rank == 0:
            try:
                _write(kind, trained, base, adapter, dtype, Place(url), tokenizer)
            except Exception as caught:
                error = fault(caught, "cannot write the export", url)
        ranks.agree(error)
    finally:
        ranks.close()


def _check(kind: str, trained: Any, url: str, model: Model) -> None:
    adapted = _is_adapted(trained)
    if kind not in _KEYS:
        raise TrainError(Code.CONFIG, f'export.kind: "{kind}"', f"one of {', '.join(_KEYS)}")
    if adapted and kind == "full":
        raise TrainError(Code.CONFIG, "export.kind: full, of a model with an adapter", "take merged, or adapter")
    if not adapted and kind != "full":
        raise TrainError(
            Code.CONFIG, f"export.kind: {kind}, of a model without an adapter", "take full, or set lora.rank"
        )
    if "://" not in url and Path(url).absolute() == Path(model.path).absolute():
        raise TrainError(
            Code.CONFIG, f"export.url: {url} is the model that was trained from", "name another folder (export.url)"
        )


def _is_adapted(trained: Any) -> bool:
    return hasattr(trained, "peft_config")


def _stored_dtype(model: Model) -> Any:
    """What the model that training began from says it is stored as; None if it does not."""
    from transformers import AutoConfig

    try:
        config = AutoConfig.from_pretrained(
            model.path, revision=model.revision or None, trust_remote_code=model.trust_remote_code
        )
    except (OSError, ValueError):
        return None
    dtype = config.dtype
    return dtype if isinstance(dtype, torch.dtype) else getattr(torch, str(dtype), None)


class _Gather:
    """Whole weights, one at a time. `keeps`: this rank holds on to them."""

    def __init__(self, keeps: bool) -> None:
        self._keeps = keeps
        self._done: dict[int, Any] = {}

    def base(self, trained: Any, dtype: Any) -> dict[str, Any]:
        """All of the model without an adapter, by transformers' names; tied weights under each of their names."""
        inner = trained.base_model.model if _is_adapted(trained) else trained
        found: dict[str, Any] = {}
        for name, value in _stored(inner):
            if "lora_" in name or ".modules_to_save." in name:
                continue
            name = plain(name).replace(".base_layer.", ".").replace(".original_module.", ".")
            found[name] = self._whole(value, dtype)
        return found

    def adapter(self, trained: Any) -> dict[str, Any]:
        """What is trained, by peft's names."""
        return {plain(name): self._whole(value, None) for name, value in _stored(trained) if value.requires_grad}

    def _whole(self, value: Any, dtype: Any) -> Any:
        if id(value) in self._done:
            return self._done[id(value)]
        key = id(value)
        whole = value.full_tensor() if is_sharded(value) else value
        whole = whole.detach()
        if self._keeps:
            if type(value).__name__ == "Params4bit":
                from bitsandbytes.functional import dequantize_4bit

                whole = dequantize_4bit(value.data, value.quant_state)
            wanted = dtype if dtype is not None and whole.is_floating_point() else whole.dtype
            whole = whole.to("cpu", wanted, copy=True).contiguous()
        else:
            whole = None
        self._done[key] = whole
        return whole


def _stored(module: Any) -> Iterator[tuple[str, Any]]:
    """Parameters, and buffers that are saved, by every name that they have."""
    yield from module.named_parameters(remove_duplicate=False)
    for path, part in module.named_modules():
        for name, buffer in part._buffers.items():
            if buffer is not None and name not in part._non_persistent_buffers_set:
                yield f"{path}.{name}" if path else name, buffer


def _write(
    kind: str, trained: Any, base: dict[str, Any], adapter: dict[str, Any], dtype: Any, place: Place, tokenizer: Any
) -> None:
    """On rank 0: into a draft, and from there to where it belongs."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    with _draft(place) as draft:
        if kind == "adapter":
            trained.save_pretrained(str(draft), state_dict=adapter, save_embedding_layers=False)
        else:
            shell = _shell(trained, base, dtype)
            if kind == "merged":
                shell = _merge(shell, trained, adapter)
            weights = shell.state_dict()
            base.clear()
            shell.save_pretrained(str(draft), state_dict=weights, max_shard_size=_SHARD)
        if tokenizer is not None:
            tokenizer.save_pretrained(str(draft))
        for file in draft.iterdir():
            _flush(file)
        _hand_over(kind, draft, place)


@contextmanager
def _draft(place: Place) -> Iterator[Path]:
    """An empty folder: on the disk of the export, so that it can be renamed; for a store, on this machine's."""
    if not place.local:
        with tempfile.TemporaryDirectory() as name:
            yield Path(name)
        return
    target = Path(place.path)
    draft = target.with_name(f".{target.name}.draft")
    Place(str(draft)).remove()
    try:
        draft.mkdir(parents=True)
        yield draft
    finally:
        Place(str(draft)).remove()


def _shell(trained: Any, base: dict[str, Any], dtype: Any) -> Any:
    """A model of the same class with the gathered weights, free of sharding, adapters and what training changed."""
    from transformers import PreTrainedModel

    inner = trained.base_model.model if _is_adapted(trained) else trained
    # FSDP2 puts a class FSDPLlamaForCausalLM before LlamaForCausalLM.
    kinds = (kind for kind in type(inner).__mro__ if issubclass(kind, PreTrainedModel))
    architecture = next(kind for kind in kinds if not any(part.__name__ == "FSDPModule" for part in kind.__mro__))
    config = copy.deepcopy(inner.config)
    config._attn_implementation = "eager"
    with torch.device("meta"):
        shell = architecture(config)
    shell.load_state_dict(base, assign=True)
    shell.tie_weights()
    if getattr(inner, "generation_config", None) is not None:
        shell.generation_config = copy.deepcopy(inner.generation_config)
    if dtype is not None:
        shell.config.dtype = dtype
    return shell.eval()


def _merge(shell: Any, trained: Any, adapter: dict[str, Any]) -> Any:
    """peft's own merging: it knows every kind of adapter. Sums are in fp32 and rounded once."""
    from peft import get_peft_model, get_peft_model_state_dict, set_peft_model_state_dict

    settings = copy.deepcopy(trained.peft_config[_ADAPTER])
    weights = get_peft_model_state_dict(trained, state_dict=adapter, save_embedding_layers=False)
    with warnings.catch_warnings():
        # peft 0.21 asks transformers 5.24 by a name that it is about to drop.
        warnings.filterwarnings("ignore", "`is_gradient_checkpointing` is deprecated", FutureWarning)
        adapted = get_peft_model(shell, settings, autocast_adapter_dtype=True)
    set_peft_model_state_dict(adapted, weights)
    return adapted.merge_and_unload()


def _hand_over(kind: str, draft: Path, place: Place) -> None:
    """Moves the finished files to `place`: at once if it is new, else the file that makes it loadable last."""
    there = place.files()
    if place.local and not there:
        target = Path(place.path)
        if target.is_dir():
            target.rmdir()
        draft.rename(target)
        Place(str(target.parent)).sync()
        return
    new = {str(file.relative_to(draft)) for file in draft.rglob("*") if file.is_file()}
    key = _KEYS[kind]
    stale = _WEIGHTS["adapter" if kind == "adapter" else "full"]
    for name in [key, *(name for name in there if stale.match(name))]:
        if name in there:
            place.discard(name)
    for name in [*sorted(new - {key}), key]:
        place.put(str(draft / name), name)


def _flush(file: Path) -> None:
    with file.open("rb") as stream:
        os.fsync(stream.fileno())
