"""The whole state of a run, and how it becomes flat: tensors by name for DCP, the rest as JSON.

    model.<parameter>            weights; with frozen ones (LoRA) only what is trained, the rest is the model's files
    optim.<parameter>.<key>      AdamW's exp_avg, exp_avg_sq, step
    rng.<rank>.<generator>       python, torch, cuda

Names are those of the bare model, so what FSDP saved loads under DDP or in one process, and the other way round.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import nn

from trainjob.train.faults import Code, TrainError

_WRAPPERS: Final = ("_orig_mod", "_checkpoint_wrapped_module", "_fsdp_wrapped_module")
# Of param_groups: what belongs to how an update is computed on this machine, not to the run.
_MACHINE: Final = frozenset({"params", "foreach", "fused", "capturable", "differentiable", "maximize"})


def bare(model: Any) -> Any:
    """The model inside DDP and torch.compile."""
    from torch.nn.parallel import DistributedDataParallel

    while True:
        if isinstance(model, DistributedDataParallel):
            model = model.module
        elif isinstance(getattr(model, "_orig_mod", None), nn.Module):
            model = model._orig_mod
        else:
            return model


def plain(name: str) -> str:
    """A parameter's name without what wrappers of inner modules put into it."""
    return ".".join(part for part in name.split(".") if part not in _WRAPPERS)


def reshard(model: Any) -> None:
    """Puts FSDP2's sharded parameters back in place: after an evaluation some are left gathered."""
    # A second to import, and where nobody has done so nothing is sharded.
    if (fsdp := sys.modules.get("torch.distributed.fsdp")) is None:
        return
    for module in model.modules():
        if isinstance(module, fsdp.FSDPModule):
            module.reshard()


def is_sharded(tensor: Any) -> bool:
    """True for a DTensor: this process holds a part of it."""
    return hasattr(tensor, "device_mesh")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state between two steps: live tensors, which change with the next update, and fixed values as JSON."""

    tensors: dict[str, Any]
    values: Mapping[str, Any]


class State:
    """The live objects of a run. Without an optimizer, that of a checkpoint is left where it is.

    `model`: a Module, also in FSDP2, DDP, torch.compile or peft. `optimizer`, `schedule`: torch's, or None.
    `extra()`: what else belongs to the run, as JSON (position in the data, ...); it comes back from a load.
    `seed`: for generators of ranks that the saved run did not have.
    """

    def __init__(
        self, model: Any, optimizer: Any = None, schedule: Any = None, *,
        extra: Callable[[], Mapping[str, Any]] | None = None, seed: int = 0, rank: int | None = None,
    ) -> None:  # fmt: skip
        self.model = bare(model)
        self.optimizer = optimizer
        self.schedule = schedule
        self.extra = extra
        self.seed = seed
        if rank is None:
            import torch.distributed as dist

            rank = dist.get_rank() if dist.is_available() and dist.is_initialized() else 0
        self.rank = rank

    @property
    def device(self) -> Any:
        """Where the training computes."""
        return next((parameter.device for parameter in self.model.parameters()), torch.device("cpu"))

    def weights(self) -> dict[str, Any]:
        """Parameters and buffers that a checkpoint holds, by their plain names. Tied ones once."""
        reshard(self.model)
        if any(not parameter.requires_grad for parameter in self.model.parameters()):
            named = ((name, value) for name, value in self.model.named_parameters() if value.requires_grad)
            return {plain(name): value for name, value in named}
        found: dict[str, Any] = {}
        seen: set[int] = set()
        for name, value in self.model.state_dict(keep_vars=True).items():
            if not isinstance(value, torch.Tensor):
                raise TrainError(Code.CONFIG, f"the model keeps state that is no tensor: {name}")
            if id(value) not in seen:
                seen.add(id(value))
                found[plain(name)] = value
        return found

    def _optimized(self) -> Iterator[tuple[str, Any, Mapping[str, Any]]]:
        """Name, parameter and group of what the optimizer updates."""
        names = {id(value): plain(name) for name, value in self.model.named_parameters()}
        for group in self.optimizer.param_groups if self.optimizer is not None else ():
            for parameter in group["params"]:
                yield names[id(parameter)], parameter, group

    def snapshot(self) -> Snapshot:
        """To be called between steps, by the training thread."""
        tensors: dict[str, Any] = {}
        for name, value in self.weights().items():
            # Buffers change in the forward, which goes on while parameters are copied.
            tensors[f"model.{name}"] = value.detach() if isinstance(value, nn.Parameter) else value.detach().clone()
        numbers: dict[str, dict[str, Any]] = {}
        for name, parameter, _ in self._optimized():
            for key, value in self.optimizer.state.get(parameter, {}).items():
                if not isinstance(value, torch.Tensor):
                    numbers.setdefault(name, {})[key] = value
                    continue
                if is_sharded(parameter) and not is_sharded(value) and value.numel() > 1:
                    raise TrainError(
                        Code.CONFIG, f"the optimizer keeps {key} of {name} apart on each rank: it cannot be saved",
                        "use an optimizer whose state is sharded as the weights are, as AdamW's is",
                    )  # fmt: skip
                tensors[f"optim.{name}.{key}"] = value.detach()
        tensors |= {f"rng.{self.rank}.{name}": value for name, value in _generators().items()}
        return Snapshot(tensors, self._values(numbers))

    def _values(self, numbers: Mapping[str, Any]) -> Mapping[str, Any]:
        groups = [
            {key: _number(value) for key, value in group.items() if key not in _MACHINE}
            for group in (self.optimizer.param_groups if self.optimizer is not None else ())
        ]
        values = {
            "optim": {"groups": groups, "numbers": numbers},
            "schedule": self.schedule.state_dict() if self.schedule is not None else None,
            "extra": dict(self.extra()) if self.extra is not None else {},
        }
        try:
            fixed: Mapping[str, Any] = json.loads(json.dumps(values))
        except TypeError as error:
            raise TrainError(Code.CONFIG, f"a value of the run's state cannot be written as JSON: {error}") from error
        return fixed

    def targets(self, shapes: Mapping[str, tuple[tuple[int, ...], Any]]) -> dict[str, Any]:
        """Tensors to load into, by name. `shapes`: shape and dtype of every tensor of the checkpoint.

        The optimizer's are made anew, as its state may be empty so far; `apply` hands them over.
        """
        found: dict[str, Any] = {f"model.{name}": value.detach() for name, value in self.weights().items()}
        states: dict[str, list[str]] = {}
        for name in shapes:
            if name.startswith("optim."):
                parameter_name, _, key = name[len("optim.") :].rpartition(".")
                states.setdefault(parameter_name, []).append(key)
        for parameter_name, parameter, group in self._optimized():
            for key in states.get(parameter_name, ()):
                name = f"optim.{parameter_name}.{key}"
                found[name] = _room(parameter, group, key, *shapes[name])
        for generator in _generators():
            name = f"rng.{self.rank}.{generator}"
            if name in shapes:
                found[name] = torch.zeros(shapes[name][0], dtype=torch.uint8)
        return found

    def apply(self, step: int, loaded: Mapping[str, Any], values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Makes `loaded` (the filled targets) and `values` the state; returns what `extra` was."""
        states: dict[str, dict[str, Any]] = {}
        for name, value in loaded.items():
            if name.startswith("optim."):
                parameter_name, _, key = name[len("optim.") :].rpartition(".")
                states.setdefault(parameter_name, {})[key] = value
        for name, numbers in values["optim"]["numbers"].items():
            states.setdefault(name, {}).update(numbers)
        for name, parameter, _ in self._optimized():
            if name in states:
                self.optimizer.state[parameter] = states[name]
        if self.optimizer is not None:
            for group, saved in zip(self.optimizer.param_groups, values["optim"]["groups"], strict=True):
                for key, value in saved.items():
                    _set(group, key, value)
        if self.schedule is not None and values["schedule"] is not None:
            self.schedule.load_state_dict(values["schedule"])
        start = f"rng.{self.rank}."
        generators = {name[len(start) :]: value for name, value in loaded.items() if name.startswith(start)}
        if "torch" not in generators:
            _seed(self.seed, step, self.rank)
        _set_generators(generators)
        return dict(values["extra"])


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, torch.Tensor) else value


def _set(group: dict[str, Any], key: str, value: Any) -> None:
    """A value of a group as it was: JSON knows no tuples, and compiled updates keep the rate in a tensor."""
    now = group.get(key)
    if isinstance(now, torch.Tensor):
        now.fill_(value)
    else:
        group[key] = tuple(value) if isinstance(now, tuple) else value


def _room(parameter: Any, group: Mapping[str, Any], key: str, shape: tuple[int, ...], dtype: Any) -> Any:
    """An empty tensor of an optimizer's state."""
    if tuple(shape) == tuple(parameter.shape) and key != "step":
        return torch.zeros_like(parameter, dtype=dtype, requires_grad=False)
    # torch counts steps on the host, except where the update itself runs on the device.
    on_device = key != "step" or group.get("fused") or group.get("capturable")
    return torch.zeros(shape, dtype=dtype, device=parameter.device if on_device else "cpu")


def _generators() -> dict[str, Any]:
    """States of the random generators that training uses, as bytes."""
    version, inner, gauss = random.getstate()
    python = json.dumps([version, list(inner), gauss]).encode()
    states = {"python": torch.frombuffer(bytearray(python), dtype=torch.uint8), "torch": torch.get_rng_state()}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states["cuda"] = torch.cuda.get_rng_state()
    return states


def _set_generators(states: Mapping[str, Any]) -> None:
    if "python" in states:
        version, inner, gauss = json.loads(bytes(states["python"].tolist()))
        random.setstate((version, tuple(inner), gauss))
    if "torch" in states:
        torch.set_rng_state(states["torch"])
    if "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"])


def _seed(seed: int, step: int, rank: int) -> None:
    """Generators of a rank that the saved run did not have: the same whenever that happens again."""
    number = int.from_bytes(hashlib.sha256(f"{seed}/{step}/{rank}".encode()).digest()[:8], "big") >> 1
    torch.manual_seed(number)
    random.seed(number)
