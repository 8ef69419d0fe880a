"""Ranks that run different software compute different things, or hang. They compare and refuse."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import socket
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, Final

from trainjob.train.config import Config
from trainjob.train.faults import Code, TrainError

_PACKAGES: Final = ("torch", "transformers", "peft", "trainjob")
_CONFIG: Final = "configuration"
_DATA: Final = "data"


def mine(config: Config) -> dict[str, str]:
    """What this process runs. "none" is said of what is not there. Of Python the minor version counts."""
    import torch

    found = {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}
    found.update((name, _version(name)) for name in _PACKAGES)
    found["CUDA"] = torch.version.cuda or "none"
    found["NCCL"] = "none"
    if torch.cuda.is_available() and torch.distributed.is_nccl_available():
        found["NCCL"] = ".".join(map(str, torch.cuda.nccl.version()))
    found[_CONFIG] = digest(config)
    return found


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def digest(config: Config) -> str:
    """Twelve hex digits that are the same for equal configurations. `report` may differ: rank 0 alone reports."""
    settings = {section: values for section, values in asdict(config).items() if section != "report"}
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]


def compare(config: Config, data: str = "", group: Any = None) -> None:
    """Raises the same TrainError on every rank of `group` when they differ: VERSIONS, CONFIG or BAD_DATA.

    `data`: the identity of the data that this rank sees. `group`: a process group of the CPU (gloo); None: the
    default one. One exchange of a few hundred bytes.
    """
    import torch.distributed as dist

    if not dist.is_initialized() or dist.get_world_size(group) == 1:
        return
    every: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(every, (socket.gethostname(), {**mine(config), _DATA: data}), group=group)
    differ(every)


def differ(ranks: Iterable[tuple[str, Mapping[str, str]]]) -> None:
    """Compares what (host, versions) the ranks have, in their order."""
    ranks = list(ranks)
    said = []
    for what in ranks[0][1]:
        holders: dict[str, list[int]] = defaultdict(list)
        for rank, (_, versions) in enumerate(ranks):
            holders[versions.get(what, "none")].append(rank)
        if len(holders) > 1:
            said.append(f"{what} is " + ", ".join(f"{v} on {_names(h, ranks)}" for v, h in holders.items()))
    if not said:
        return
    software = [line for line in said if not line.startswith((f"{_CONFIG} is", f"{_DATA} is"))]
    if software:
        raise TrainError(
            Code.VERSIONS, f"the ranks run different software: {'; '.join(software)}", "run one image on all nodes"
        )
    if said[0].startswith(f"{_DATA} is"):
        raise TrainError(
            Code.BAD_DATA,
            f"the ranks see different data, by names and sizes of the files: {said[0]}",
            "mount the same volume in all pods, with the same files",
        )
    raise TrainError(
        Code.CONFIG,
        f"the ranks have different settings: {said[0]}",
        "give every pod the same file, variables and flags; --print-config shows what one has",
    )


def _names(holders: list[int], ranks: list[tuple[str, Mapping[str, str]]]) -> str:
    """`ranks 0-3 (host tune-node-0-0)`; of many hosts the first."""
    hosts = list(dict.fromkeys(ranks[rank][0] for rank in holders))
    more = f" and {len(hosts) - 1} more" if len(hosts) > 1 else ""
    word = "rank" if len(holders) == 1 else "ranks"
    return f"{word} {_spans(holders)} (host {hosts[0]}{more})"


def _spans(numbers: list[int]) -> str:
    """0, 1, 2, 5 -> `0-2, 5`."""
    spans: list[tuple[int, int]] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1] = spans[-1][0], number
        else:
            spans.append((number, number))
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)
