"""Memory of one step for the next, where CPUs compute: glibc would give it back to the kernel in between.

glibc returns freed memory at the top of the heap, and takes the kernel's empty pages again for the next
activations: 22,000 page faults a step of 4,096 tokens, 6 % of the time of which is the kernel's (measured, 5 M
parameters, glibc 2.41, 2 cores; without them 2 % more tokens a second, the same peak). Not for FSDP, which is there
to save memory: with two ranks and 150 M parameters the peak rose by 4 %.
"""

from __future__ import annotations

import ctypes
import os
from typing import Final

# malloc.h. The first value is also the largest that glibc would come to by itself (DEFAULT_MMAP_THRESHOLD_MAX).
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_SETTINGS: Final = ((_MMAP_THRESHOLD, 32 << 20), (_TRIM_THRESHOLD, 256 << 20))
_SAID_ELSEWHERE: Final = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES")


def keep() -> bool:
    """Blocks up to 32 MiB come from the heap, of which up to 256 MiB that are free at its end stay.

    False, and nothing is changed, without glibc or where the environment says what malloc should do.
    """
    if any(os.environ.get(name) for name in _SAID_ELSEWHERE):
        return False
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "gnu_get_libc_version"):
        return False
    done = [libc.mallopt(option, value) == 1 for option, value in _SETTINGS]
    return all(done)
