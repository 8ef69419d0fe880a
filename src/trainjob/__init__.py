"""Run, build, migrate and check distributed training on Kubeflow Trainer v2."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainjob.builder import BuildError, train_job
    from trainjob.emit import TrainJob
    from trainjob.migrate import Migration, migrate_text
    from trainjob.storage import Claim

__version__ = "0.1.0"
__all__ = ["BuildError", "Claim", "Migration", "TrainJob", "__version__", "migrate_text", "train_job"]

# Imported on first use, so that `import trainjob` and `trainjob --help` stay quick.
_HOME = {
    "BuildError": "trainjob.builder",
    "train_job": "trainjob.builder",
    "TrainJob": "trainjob.emit",
    "Claim": "trainjob.storage",
    "Migration": "trainjob.migrate",
    "migrate_text": "trainjob.migrate",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
