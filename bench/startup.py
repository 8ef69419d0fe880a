"""How long a command takes before it does anything, beyond a bare Python.

python bench/startup.py      exit code 1 if a command misses the target
"""

from __future__ import annotations

import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CASE = Path(__file__).resolve().parents[1] / "migration" / "cases" / "01-master-worker-python" / "before.yaml"
RUNS = 20
MAX_MS = 200
# An installed package has its bytecode; the first, uncounted run of each command writes that of a checkout.
ENV = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}


def program(name: str) -> list[str]:
    """A script of this environment."""
    script = Path(sys.executable).with_name(name)
    if not script.exists():
        sys.exit(f"{script} is missing: run this with the Python of an environment that has trainjob installed")
    return [str(script)]


def milliseconds(command: list[str], cwd: str) -> float:
    start = time.perf_counter()
    subprocess.run(command, cwd=cwd, env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - start) * 1e3


def imports(command: list[str], cwd: str) -> list[tuple[float, float, str]]:
    """(own ms, with what it imports, module) of `-X importtime`, the slowest first."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *command], cwd=cwd, env=ENV, capture_output=True, text=True, check=True
    )
    rows = re.findall(r"^import time:\s+(\d+) \|\s+(\d+) \|\s+(\S+)$", done.stderr, re.M)
    return sorted(((int(own) / 1e3, int(total) / 1e3, name) for own, total, name in rows), reverse=True)


def main() -> int:
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "trainjob --help": [*program("trainjob"), "--help"],
        "trainjob runtimes list": [*program("trainjob"), "runtimes", "list"],
        "migrate one-file": [*program("migrate"), str(CASE)],
    }
    print(f"Python {platform.python_version()}, {platform.system()} {platform.machine()}, {os.cpu_count()} cores")
    print(f"median of {RUNS} runs, in ms; target < {MAX_MS} beyond a bare Python")
    missed = False
    with tempfile.TemporaryDirectory() as elsewhere:
        times: dict[str, list[float]] = {name: [] for name in commands}
        for command in commands.values():
            milliseconds(command, elsewhere)
        # In turns, so that a busy moment of the machine hits all alike.
        for _ in range(RUNS):
            for name, command in commands.items():
                times[name].append(milliseconds(command, elsewhere))
        bare = statistics.median(times["python -c pass"])
        for name, values in times.items():
            median = statistics.median(values)
            missed = missed or median - bare >= MAX_MS
            print(f"  {name:24}{median:6.0f}   beyond {median - bare:6.0f}   fastest {min(values):6.0f}")
        print("slowest imports of `migrate one-file`: own ms, with what it imports")
        for own, total, module in imports(commands["migrate one-file"], elsewhere)[:10]:
            print(f"  {own:6.1f} {total:7.1f}   {module}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
