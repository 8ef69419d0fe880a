"""A kustomization rendered as its user would see it, or without what comes after its patches."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

from trainjob.kube import yaml
from trainjob.kustomize import Engine, KustomizeError, plain_stderr
from trainjob.migrate.tree import edits
from trainjob.migrate.tree.kustomization import AFTER_PATCHES

_SECONDS: Final = 120


def render(engine: Engine, folder: Path) -> str:
    """What the engine prints for a folder; its warnings are the user's own. Raises KustomizeError."""
    try:
        done = subprocess.run(
            engine.command(folder), env=os.environ | {"KUBERC": "off"}, stdin=subprocess.DEVNULL, capture_output=True,
            timeout=_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise KustomizeError(f"{engine.name} took more than {_SECONDS} seconds") from None
    except OSError as err:
        raise KustomizeError(f"{engine.path} cannot be run: {err.strerror}") from None
    if done.returncode:
        said = plain_stderr(done.stderr.decode(errors="replace"))
        raise KustomizeError(f"{engine.name} fails: {said or done.returncode}")
    return done.stdout.decode("utf-8")


def early(text: str) -> str:
    """A kustomization without what comes after its patches (configureBuiltinTransformers, kustomize v5.8.1)."""
    data = edits.parse(text).data
    return yaml.dump({k: v for k, v in data.items() if k not in AFTER_PATCHES})
