"""Runs the trainer as a user does: a process, or several through a launcher."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SETTINGS = {
    "model.init": "random",
    "data.seq-length": "128",
    "train.precision": "fp32",
    "train.steps": "12",
    "optim.lr": "3e-3",
    "checkpoint.every": "4",
    "export.kind": "none",
}


@dataclass(frozen=True)
class Ran:
    """How a run ended. `log`: stdout and stderr."""

    code: int
    log: str
    folder: Path

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl: of each step the last."""
        lines = (self.folder / "metrics.jsonl").read_text().splitlines()
        return list({line["step"]: line for line in map(json.loads, lines)}.values())

    @property
    def losses(self) -> list[float]:
        return [line["loss"] for line in self.metrics]


def command(base: Path, out: Path, ranks: int = 1, launcher: str = "", **flags: Any) -> list[str]:
    """The command line. `base`: a folder of tiny.write; `flags`: `section__name` -> value."""
    given = {
        "model.path": base / "model",
        "data.train": base / "docs.jsonl",
        "checkpoint.url": out,
        **SETTINGS,
        **{name.replace("__", ".").replace("_", "-"): value for name, value in flags.items()},
    }
    launcher = launcher or ("trainjob.launch" if ranks > 1 else "")
    start = ["-m", launcher, "--nproc-per-node", str(ranks)] if launcher else []
    words = [word for key, value in given.items() for word in (f"--{key}", str(value))]
    return [sys.executable, *start, "-m", "trainjob.train", *words]


def environ(**more: str) -> dict[str, str]:
    """One thread a process, no hub, no restarts unless a test asks for some."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PET_MAX_RESTARTS": "0", **more}


def train(base: Path, out: Path, ranks: int = 1, env: dict[str, str] | None = None, **flags: Any) -> Ran:
    """Runs to the end."""
    done = subprocess.run(
        command(base, out, ranks, **flags),
        env=environ(**(env or {})),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False,
    )  # fmt: skip
    return Ran(done.returncode, done.stdout, out)
