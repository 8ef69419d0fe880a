"""The reference trainer beside others: speed, start, checkpoints, memory. Linux, CPUs.

    python bench/trainer/run.py speed [--rows skewed,equal] [--world 1] [--precision fp32] [--only TRL,litgpt]
    python bench/trainer/run.py start | stall | memory
    python bench/trainer/run.py all --quick

In the training image, after `sh bench/trainer/peers.sh`. Contenders run in turns, `--rounds` times; printed are
medians, their spread and the median of the rounds' quotients. Exit code 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.trainer import memory, speed, stall, start, workload
from bench.trainer.figures import Check, report

ROUNDS, STEPS = 5, 12
QUICK_STEPS = 5


def prepared(work: Path, size: str) -> Path:
    """The folder of a workload, made if it is not there."""
    folder = work / size
    if not (folder / "equal.jsonl").exists():
        folder.mkdir(parents=True, exist_ok=True)
        workload.make(folder, size)
    return folder


def run_speed(args: argparse.Namespace, raw: dict[str, Any]) -> list[Check]:
    checks: list[Check] = []
    folder = prepared(args.work, args.size)
    key = "useful_tokens_per_cpu_second" if args.cpu_time else "useful_tokens_per_second"
    for rows in args.rows.split(","):
        what = f"{rows}, {args.precision}, {args.world} process{'es' if args.world > 1 else ''}"
        results = speed.measure(
            rows, folder, args.peers, world=args.world, precision=args.precision, steps=args.steps, rounds=args.rounds,
            only=args.only, quick=args.quick, alone=args.cpu_time,
        )  # fmt: skip
        print(f"\n{what}")
        speed.table(results, key)
        checks += speed.checks(rows, results, key, what)
        raw[what] = results
    return checks


def run_start(args: argparse.Namespace, raw: dict[str, Any]) -> list[Check]:
    key = "cpu" if args.cpu_time else "start"
    raw["start"], checks = start.measure(prepared(args.work, "tiny"), args.rounds, key)
    return checks


def run_stall(args: argparse.Namespace, raw: dict[str, Any]) -> list[Check]:
    raw["stall"], checks = stall.measure(prepared(args.work, "medium"), args.rounds, args.world)
    return checks


def run_memory(args: argparse.Namespace, raw: dict[str, Any]) -> list[Check]:
    folders = {name: prepared(args.work, name) for name in (memory.MODEL, memory.BASELINE)}
    raw["memory"], checks = memory.measure(folders, args.rounds)
    return checks


COMMANDS = {"speed": run_speed, "start": run_start, "stall": run_stall, "memory": run_memory}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("what", choices=(*COMMANDS, "all"))
    parser.add_argument("--rows", default="skewed,equal")
    parser.add_argument("--world", type=int, default=1)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--size", choices=sorted(workload.SIZES), default="small")
    parser.add_argument("--only", default="", help="parts of contenders' names, comma")
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_STEPS} steps, each trainer once")
    parser.add_argument("--cpu-time", action="store_true", help="tokens a CPU second, where others load the machine")
    parser.add_argument("--work", type=Path, default=Path("/tmp/trainjob-bench"), help="folder for models and data")
    parser.add_argument("--peers", type=Path, default=Path("/opt/peers"), help="environments of peers.sh")
    parser.add_argument("--json", type=Path, help="file for all results")
    args = parser.parse_args()
    args.rounds = args.rounds or ROUNDS
    args.steps = args.steps or (QUICK_STEPS if args.quick else STEPS)
    print(
        f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores, "
        f"load {os.getloadavg()[0]:.1f}; {args.rounds} rounds of {args.steps} steps, model {args.size}"
    )
    raw: dict[str, Any] = {}
    checks: list[Check] = []
    for name in COMMANDS if args.what == "all" else [args.what]:
        checks += COMMANDS[name](args, raw)
    if args.json:
        args.json.write_text(json.dumps(raw, indent=1))
    return report(checks)


if __name__ == "__main__":
    sys.exit(main())
