"""Values for weights that have memory but no values yet: read, converted or random, each rank its own part.

No rank ever holds a second copy of the model: what is read is the slice that the rank keeps, what is drawn
or sent around is one weight, or the weights of one layer, at a time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from torch import nn

from trainjob.train.faults import Code, TrainError
from trainjob.train.model.load import Source, explain

# (first row, end row) -> these rows of a weight
Rows = Callable[[int, int], torch.Tensor]


def slots(causal: nn.Module) -> Iterator[tuple[str, nn.Module, str]]:
    """Every weight of the model itself: its name in checkpoints, the module that has it, the attribute.

    Adapters are left out, and the `base_layer` that peft puts into names. Shared weights come once a name.
    """
    for path, module in causal.named_modules():
        if "lora_" in path:
            continue
        for attribute, weight in module._parameters.items():
            if weight is not None:
                parts = [part for part in path.split(".") if part not in ("", "base_layer")]
                yield ".".join([*parts, attribute]), module, attribute


def shape_of(module: nn.Module, attribute: str) -> torch.Size:
    """The full shape of a weight, sharded or still to be quantised."""
    weight = module._parameters[attribute]
    assert weight is not None
    if _is_4bit(weight):
        return torch.Size((module.out_features, module.in_features))
    return weight.shape


def assign(module: nn.Module, attribute: str, rows: Rows) -> None:
    """Fill one weight from `rows`, asking only for those that this rank holds."""
    weight = module._parameters[attribute]
    assert weight is not None
    with torch.no_grad():
        if _is_4bit(weight):
            shape = shape_of(module, attribute)
            home = module.weight_home  # set by adapters.quantise
            value = type(weight)(
                rows(0, shape[0]).to(torch.bfloat16),
                requires_grad=False,
                quant_type=weight.quant_type,
                compress_statistics=weight.compress_statistics,
                quant_storage=weight.quant_storage,
                module=module,
            )
            module._parameters[attribute] = value.to(home)
        elif hasattr(weight, "placements"):
            from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

            shape, offset = compute_local_shape_and_global_offset(weight.shape, weight.device_mesh, weight.placements)
            if shape[0]:
                weight.to_local().copy_(rows(offset[0], offset[0] + shape[0]))
        elif weight.ndim == 0:
            weight.copy_(rows(0, 1))
        else:
            weight.copy_(rows(0, weight.shape[0]))


def _is_4bit(weight: Any) -> bool:
    return type(weight).__name__ == "Params4bit"


def readable(causal: Any, source: Source) -> str:
    """Why the files cannot be read weight by weight, or an empty text if they can."""
    if source.files is None:
        return "there are no safetensors files"
    held = set(source.files)
    by_weight: dict[int, list[str]] = {}
    for name, module, attribute in slots(causal):
        by_weight.setdefault(id(module._parameters[attribute]), []).append(name)
    missing = sorted(names[0] for names in by_weight.values() if not held.intersection(names))
    if missing:
        return f"they have no {missing[0]}"
    known = {name for names in by_weight.values() for name in names} | {name for name, _ in causal.named_buffers()}
    other = sorted(name for name in held - known if not name.endswith("rotary_emb.inv_freq"))
    if other:
        return f"they have {other[0]}, which the model has not"
    from transformers.conversion_mapping import get_model_conversion_mapping

    for transform in get_model_conversion_mapping(causal, add_legacy=False):
        for name in held:
            if transform.compiled_sources.search(name):
                return f"transformers converts {name}"
    return ""


def read(causal: Any, files: dict[str, Path]) -> None:
    """Fill the weights, and buffers that are saved, from safetensors files; each rank reads its rows."""
    from safetensors import SafetensorError, safe_open

    with ExitStack() as stack:
        opened: dict[Path, Any] = {}
        done: set[int] = set()
        try:
            for path in sorted(set(files.values())):
                opened[path] = stack.enter_context(safe_open(path, "pt"))
            for name, module, attribute in slots(causal):
                weight = module._parameters[attribute]
                if name not in files or id(weight) in done:
                    continue
                stored = opened[files[name]].get_slice(name)
                if list(stored.get_shape()) != list(shape_of(module, attribute)):
                    raise TrainError(
                        Code.BAD_CHECKPOINT,
                        f"model.path: {name} in {files[name]} has the shape {list(stored.get_shape())}, config.json "
                        f"says {list(shape_of(module, attribute))}",
                        "check that config.json and the weights are of one model",
                    )
                assign(module, attribute, _slice(opened[files[name]], name, stored))
                done.add(id(weight))
            for name, buffer in causal.named_buffers():
                if name in files:
                    buffer.copy_(opened[files[name]].get_tensor(name))
        except (SafetensorError, OSError) as error:
            raise explain(error, str(path)) from error


def _slice(opened: Any, name: str, stored: Any) -> Rows:
    shape = stored.get_shape()

    def rows(first: int, end: int) -> torch.Tensor:
        value: torch.Tensor = opened.get_tensor(name) if not shape or end - first == shape[0] else stored[first:end]
        return value

    return rows


def broadcast(causal: Any, load: Callable[[], Any], device: torch.device, rank: int, world: int) -> None:
    """Fill the weights from a whole model that rank 0 gets from `load()`, one weight at a time.

    An error of rank 0 is raised on all ranks: the others would wait for its weights.
    """
    whole: dict[str, torch.Tensor] = {}
    failed: list[TrainError | None] = [None]
    if rank == 0:
        try:
            loaded = load()
            whole = {name: tensor.detach() for name, tensor in loaded.state_dict().items()}
        except TrainError as error:
            failed[0] = error
    if world > 1:
        import torch.distributed as dist

        dist.broadcast_object_list(failed, src=0)
    if failed[0] is not None:
        raise failed[0]
    done: set[int] = set()
    for name, module, attribute in slots(causal):
        weight = module._parameters[attribute]
        if id(weight) in done:
            continue
        if rank == 0:
            full = whole.pop(name).to(device, torch.float32)
        else:
            full = torch.empty(shape_of(module, attribute), dtype=torch.float32, device=device)
        if world > 1:
            dist.broadcast(full, src=0)
        assign(module, attribute, _rows_of(full))
        done.add(id(module._parameters[attribute]))
    saved = causal.state_dict().keys()
    for name, buffer in causal.named_buffers():
        if name in saved:
            if rank == 0:
                buffer.copy_(whole[name])
            if world > 1:
                dist.broadcast(buffer, src=0)


def _rows_of(full: torch.Tensor) -> Rows:
    return lambda first, end: full[first:end] if full.ndim else full


def draw(causal: Any, units: Iterable[nn.Module], seed: int) -> None:
    """Random weights as the architecture wants them, the same for any number of ranks and any way of sharding."""
    inside: set[nn.Module] = set()
    for i, unit in enumerate(units):
        members = list(unit.modules())
        inside.update(members)
        _draw(causal, members, f"{seed}/layer/{i}")
    _draw(causal, [m for m in causal.modules() if m not in inside], f"{seed}/rest")


def _draw(causal: Any, modules: list[nn.Module], seed: str) -> None:
    wanted = set(modules)
    held = [(m, a) for _, m, a in slots(causal) if m in wanted]
    own = {m for m, _ in held}  # without adapters

    def initialise() -> None:
        for module in reversed(modules):  # children before parents, as transformers does it
            if module in own:
                causal._init_weights(module)

    drawn(held, initialise, seed)


def drawn(held: list[tuple[nn.Module, str]], initialise: Callable[[], None], seed: str) -> None:
    """Let `initialise` fill whole weights on the CPU in the place of those in `held`, then keep this rank's part."""
    kept = [(module, attribute, module._parameters[attribute]) for module, attribute in held]
    whole: dict[int, nn.Parameter] = {}
    for module, attribute, weight in kept:
        if id(weight) not in whole:
            whole[id(weight)] = nn.Parameter(torch.empty(shape_of(module, attribute), device="cpu"))
    for module, attribute, weight in kept:
        module._parameters[attribute] = whole[id(weight)]
    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "big", signed=True))
            initialise()
    finally:
        for module, attribute, weight in kept:
            module._parameters[attribute] = weight
    for module, attribute, weight in kept:
        full = whole.pop(id(weight), None)
        if full is not None:
            assign(module, attribute, _rows_of(full.detach()))


def fill_buffers(causal: Any, source: Source) -> None:
    """Values of buffers that no checkpoint holds, like the frequencies of rotary positions.

    transformers computes them in `_init_weights`, as it too builds models on the meta device. What that leaves out,
    in code that came with a model, is taken from a model that is built whole.
    """
    owners = [m for m in causal.modules() if any(b is not None for b in m._buffers.values())]
    with torch.no_grad():
        for module in owners:
            for buffer in module._buffers.values():
                if buffer is not None and buffer.is_floating_point():
                    buffer.fill_(float("nan"))
        for module in owners:
            causal._init_weights(module)
        lacking = {
            name
            for name, buffer in causal.named_buffers()
            if not buffer.is_floating_point() or bool(buffer.isnan().any())
        }
        if lacking:
            whole = dict(source.architecture(source.config).named_buffers())
            for name, buffer in causal.named_buffers():
                if name in lacking:
                    buffer.copy_(whole[name.replace(".base_layer", "")])
