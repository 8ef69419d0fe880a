"""Numbers as people read them."""

from __future__ import annotations

import math
from typing import Final

_GIB: Final = 2**30


def count(number: float) -> str:
    """`950`, `12.3k`, `1.24M`, `7.20B`: three digits."""
    for limit, unit in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        # Where three digits would round up to 1000 of the smaller unit.
        if abs(number) >= limit * 0.9995:
            return f"{_digits(number / limit)}{unit}"
    return _digits(number) if number != int(number) else str(int(number))


def _digits(number: float) -> str:
    places = 0 if abs(number) >= 99.95 else 1 if abs(number) >= 9.995 else 2
    return f"{number:.{places}f}"


def size(octets: float) -> str:
    """Bytes as `38.2 GiB`, or `512 MiB` below one GiB."""
    return f"{octets / _GIB:.1f} GiB" if octets >= _GIB else f"{octets / 2**20:.0f} MiB"


def duration(seconds: float) -> str:
    """`45 s`, `12 min`, `3 h 05 min`, `2 d 03 h`; `?` when it is not a number."""
    if not math.isfinite(seconds):
        return "?"
    whole = round(seconds)
    if whole < 100:
        return f"{whole} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60:02d} min"
    hours = round(minutes / 60)
    return f"{hours // 24} d {hours % 24:02d} h"
