"""Memory that is kept from step to step."""

from __future__ import annotations

import os
import subprocess
import sys

# Two blocks as large as activations, made and dropped time and again: faults a round.
_PROGRAM = """
import resource, torch
from trainjob.train import heap
print(heap.keep())
def step():
    a = torch.ones(4 << 20)
    b = torch.ones(2 << 20)
for _ in range(3):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    step()
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) // 10)
"""


def run(**more: str) -> tuple[bool, int]:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], env=os.environ | more, capture_output=True, text=True, check=True
    )
    kept, faults = done.stdout.split()
    return kept == "True", int(faults)


def test_a_step_takes_no_new_pages() -> None:
    kept, faults = run()
    assert kept
    assert faults < 100


def test_the_environment_has_the_last_word() -> None:
    """And without the setting each round takes its 24 MiB anew."""
    kept, faults = run(MALLOC_TRIM_THRESHOLD_="131072")
    assert not kept
    assert faults > 1000
