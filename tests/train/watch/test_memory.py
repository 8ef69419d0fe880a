from __future__ import annotations

import subprocess
import sys

from trainjob.train.watch import memory

# In a process of its own: the peak of the one that runs all tests is not known.
SCRIPT = """
from trainjob.train.watch import memory
before = memory.of("cpu")
block = bytearray(b"x") * (200 << 20)
held = memory.of("cpu")
del block
after = memory.of("cpu")
print(before.peak, held.current - before.current, after.peak - before.peak, held.current - after.current)
"""


def test_the_resident_set_and_its_peak() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    before, grown, peak, freed = map(int, done.stdout.split())
    megabyte = 2**20
    assert before > 4 * megabyte
    assert 190 * megabyte < grown < 230 * megabyte
    assert peak >= 190 * megabyte, "the peak stays when the memory is gone"
    assert freed > 190 * megabyte


def test_a_torch_device_is_understood() -> None:
    import torch

    seen = memory.of(torch.device("cpu"))
    assert seen.peak >= seen.current > 0
