"""A shorter start: what transformers and torch import on their way, and a run without torch.compile never uses.

Measured (importtime, torch 2.13, transformers 5.24, one core): of the 4.4 s of imports before the first step of a small
model 0.65 are torch._dynamo and 0.27 accelerate. Both stay importable: who needs them gets them.

    torch._dynamo   asked by torch and transformers to mark functions for a compiler that is not there, and for a
                    context manager for masks that are not made here (attention.py). A stand-in has these; asked for
                    anything else it makes way for the real one.
    accelerate      transformers imports it if it is installed. It is, for peft.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any, Final

_DYNAMO: Final = "torch._dynamo"
_MASKS: Final = "torch._dynamo._trace_wrapped_higher_order_op"
_NAME: Final = "TransformGetItemToIndex"
_MARKS: Final = ("assume_constant_result", "allow_in_graph", "disable", "graph_break")


def imports(accelerate: bool, compiled: bool) -> None:
    """Imports the heart of transformers. To be called before anything else does; else it saves nothing.

    `accelerate`: peft or quantised weights are wanted, which need it. `compiled`: train.compile.
    """
    if compiled or "transformers.modeling_utils" in sys.modules or _DYNAMO in sys.modules:
        return
    sys.modules[_DYNAMO] = _StandIn(_DYNAMO, **dict.fromkeys(_MARKS, _unchanged))
    sys.modules[_MASKS] = _StandIn(_MASKS, **{_NAME: _Later})
    from transformers import utils
    from transformers.utils import import_utils

    real = import_utils.is_accelerate_available
    if not accelerate:
        utils.is_accelerate_available = import_utils.is_accelerate_available = lambda *_: False
    try:
        for module in ("transformers.modeling_utils", "transformers.generation.utils"):
            importlib.import_module(module)
    finally:
        utils.is_accelerate_available = import_utils.is_accelerate_available = real


class _StandIn(ModuleType):
    """A module with the little that is asked for; the real one when more is."""

    def __init__(self, name: str, **content: Any) -> None:
        super().__init__(name)
        self.__dict__.update(content)

    def __getattr__(self, name: str) -> Any:
        # __file__ and its like are asked of all modules by whoever looks around; __path__ by an import of what is
        # below the package.
        if name.startswith("__") and (name, self.__name__) != ("__path__", _DYNAMO):
            raise AttributeError(name)
        for each in (_DYNAMO, _MASKS):
            if isinstance(sys.modules.get(each), _StandIn):
                del sys.modules[each]
        return getattr(importlib.import_module(self.__name__), name)


class _Later:
    """torch's context manager of this purpose, imported when it is entered."""

    def __enter__(self) -> Any:
        if isinstance(sys.modules.get(_MASKS), _StandIn):
            del sys.modules[_MASKS]
        self._real = getattr(importlib.import_module(_MASKS), _NAME)()
        return self._real.__enter__()

    def __exit__(self, *error: Any) -> Any:
        return self._real.__exit__(*error)


def _unchanged(function: Any = None, *_: Any, **__: Any) -> Any:
    """A mark for the compiler, which is not there to see it. Without a function: what marks one."""
    return _unchanged if function is None else function
