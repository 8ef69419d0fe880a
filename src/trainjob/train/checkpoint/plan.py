"""Which rank writes what, and the copy in between. Imports DCP, so it is loaded by the thread that saves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.distributed.checkpoint import DefaultSavePlanner
from torch.distributed.checkpoint.utils import find_state_dict_object

# From live tensors by index to copies by the same; returns when the copies hold their values.
Copy = Callable[[dict[Any, Any]], dict[Any, Any]]


class Planner(DefaultSavePlanner):  # type: ignore[misc]
    """DCP's plan of a flat state, kept from save to save under `name`. With `copy`, what is written are copies."""

    def __init__(self, name: str, copy: Copy | None = None) -> None:
        super().__init__(flatten_state_dict=False, flatten_sharded_tensors=False, enable_plan_caching=True)
        # torch keeps plans by the name of the class, for the whole process.
        self._cached_plans_key = name
        self.state_dict: dict[str, Any] = {}
        self._copy = copy
        self._copies: dict[Any, Any] = {}

    def finish_plan(self, new_plan: Any) -> Any:
        """What this rank is to write. DCP asks for it on every rank, before the first byte is written."""
        plan = super().finish_plan(new_plan)
        if self._copy is not None:
            with torch.no_grad():
                sources = {item.index: find_state_dict_object(self.state_dict, item.index) for item in plan.items}
                self._copies = self._copy(sources)
        return plan

    def lookup_object(self, index: Any) -> Any:
        if self._copy is not None:
            return self._copies[index]
        return super().lookup_object(index)
