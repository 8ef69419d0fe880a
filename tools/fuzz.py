"""Runs the property tests on new random input for as long as it is told; stops at the first that fails.

    python tools/fuzz.py --seconds 60
    python tools/fuzz.py --seconds 1800 --only cli

Each round gives every test of tests/property as many new examples as one round's share of the time allows.
A failure is shown as Hypothesis shows it, shrunk and with the blob that reproduces it: make it a test.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
_ROUND: Final = 40  # examples of a test in a round


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="how long (default: 60)")
    parser.add_argument("--only", default="", help="only tests whose file or name holds this text")
    args = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    from hypothesis import HealthCheck, settings

    chosen = settings(
        max_examples=_ROUND,
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    tests = [(name, chosen(test)) for name, test in _tests() if args.only in name]
    if not tests:
        print(f"no property test holds {args.only!r}", file=sys.stderr)
        return 2
    start, rounds, ran = time.monotonic(), 0, 0
    while time.monotonic() - start < args.seconds:
        for name, test in tests:
            if time.monotonic() - start >= args.seconds:
                break
            try:
                test()
            except Exception:
                print(f"{name} failed after {ran} examples", file=sys.stderr, flush=True)
                raise
            ran += _ROUND
        rounds += 1
        print(f"{time.monotonic() - start:6.0f} s  round {rounds}  about {ran} examples", file=sys.stderr, flush=True)
    print(f"{len(tests)} properties, about {ran} examples in {time.monotonic() - start:.0f} s: no failure")
    return 0


def _tests() -> Iterator[tuple[str, Callable[[], Any]]]:
    """The property tests that need no fixture."""
    for file in sorted((ROOT / "tests" / "property").glob("test_*.py")):
        module = importlib.import_module(f"tests.property.{file.stem}")
        for name, test in vars(module).items():
            if name.startswith("test_") and hasattr(test, "hypothesis") and not inspect.signature(test).parameters:
                yield f"{file.stem}::{name}", test


if __name__ == "__main__":
    sys.exit(main())
