"""Running contenders in turns, and what is said of the results."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[1] / "src"
# One that hangs must not hold up the bench.
MAX_SECONDS = 900


@dataclass(frozen=True, slots=True)
class Contender:
    """A program of contenders/ with its arguments. `peer`: the environment in which it runs, "" for the image's own."""

    name: str
    script: str
    arguments: tuple[str, ...] = ()
    peer: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """A promise and what was measured. `least`: the target is a minimum, else a maximum."""

    name: str
    measured: float
    target: float
    least: bool = True

    @property
    def met(self) -> bool:
        return self.measured >= self.target if self.least else self.measured <= self.target


def environment(threads: int) -> dict[str, str]:
    """The processes' environment: so many threads each, bytecode kept, no hub."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH")}
    return kept | {
        "OMP_NUM_THREADS": str(threads),
        "PYTHONPATH": str(SOURCE),
        "PYTHONWARNINGS": "ignore",
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
    }


def interpreter(peers: Path, peer: str) -> str:
    return str(peers / peer / "bin" / "python") if peer else sys.executable


def launched(python: str, program: Sequence[str], world: int) -> list[str]:
    """The command line of a program on `world` processes of this machine."""
    if world == 1:
        return [python, *program]
    run = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={world}", "--no-python"]
    return [python, *run, python, *program]


def run(command: Sequence[str], threads: int, seconds: float = MAX_SECONDS) -> dict[str, Any]:
    """Runs a contender; returns its result. Raises RuntimeError with the end of its output when it fails."""
    done = subprocess.run(
        command, env=environment(threads), capture_output=True, text=True, timeout=seconds, check=False
    )
    found = [line for line in done.stdout.splitlines() if line.startswith('{"steps"')]
    if done.returncode or not found:
        said = (done.stdout + done.stderr)[-2000:]
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}\n{said}")
    result: dict[str, Any] = json.loads(found[-1])
    return result


def in_turns(
    rounds: int, contenders: Sequence[Contender], measure: Callable[[Contender], dict[str, Any]]
) -> dict[str, list[dict[str, Any]]]:
    """A B C, A B C, ...: a busy moment of the machine hits all alike. One that fails takes no further part."""
    results: dict[str, list[dict[str, Any]]] = {each.name: [] for each in contenders}
    failed: set[str] = set()
    for number in range(rounds):
        for each in contenders:
            if each.name in failed:
                continue
            began = time.monotonic()
            try:
                result = measure(each)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                failed.add(each.name)
                print(f"FAILED {each.name}: {error}", file=sys.stderr, flush=True)
                continue
            results[each.name].append(result)
            took = f"{time.monotonic() - began:5.0f} s, load {os.getloadavg()[0]:.1f}"
            print(f"round {number + 1}  {each.name:36} {took}  {brief(result)}", file=sys.stderr, flush=True)
    return {name: values for name, values in results.items() if name not in failed}


def brief(result: dict[str, Any]) -> str:
    """The figures of a run in a line, for who watches."""
    keys = ("useful_tokens_per_second", "useful_tokens_per_cpu_second", "start", "held_seconds", "peak")
    return "  ".join(f"{key} {result[key]:.4g}" for key in keys if key in result)


def median(results: Sequence[dict[str, Any]], key: str) -> float:
    return float(statistics.median(each[key] for each in results))


def spread(results: Sequence[dict[str, Any]], key: str) -> str:
    values = [each[key] for each in results]
    return f"{min(values):.4g} to {max(values):.4g}"


def quotient(ours: Sequence[dict[str, Any]], other: Sequence[dict[str, Any]], key: str) -> float:
    """The median of the rounds' quotients: what both had at about the same time is compared."""
    return float(statistics.median(a[key] / b[key] for a, b in zip(ours, other, strict=True)))


def report(checks: Sequence[Check]) -> int:
    """Prints promises beside what was measured; returns the exit code."""
    print("\n| promise | measured | target | |\n|---|---|---|---|")
    for each in checks:
        word, sign = ("met" if each.met else "MISSED"), ("at least" if each.least else "at most")
        print(f"| {each.name} | {each.measured:.3g} | {sign} {each.target:g} | {word} |")
    return 0 if checks and all(each.met for each in checks) else 1
