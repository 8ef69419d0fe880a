"""Amounts as Kueue counts them: whole thousandths of a CPU, whole units of everything else, rounded up.

kubernetes-sigs/kueue v0.17.0 pkg/resources/requests.go, ResourceValue.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

from trainjob.kube import quantity

CPU: Final = "cpu"
_BINARY: Final = ("Ki", "Mi", "Gi", "Ti", "Pi")

Amounts = dict[str, int]


def count(resource: str, amount: Fraction) -> int:
    """An exact amount in Kueue's units."""
    scaled = amount * 1000 if resource == CPU else amount
    return -(-scaled.numerator // scaled.denominator)


def read(resource: str, value: Any) -> int:
    """A quantity in Kueue's units. Raises ValueError for text that is no quantity."""
    return count(resource, quantity.parse(value))


def show(resource: str, amount: int) -> str:
    """The amount as a person writes it: cores, Gi, or a plain number."""
    if resource == CPU:
        return quantity.show(Fraction(amount, 1000))
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        return _binary(amount)
    return str(amount)


def _binary(amount: int) -> str:
    """Bytes in the largest unit that leaves a number of at least 1."""
    size, unit = Fraction(amount), ""
    for name in _BINARY:
        if size < 1024:
            break
        size, unit = size / 1024, name
    text = str(size.numerator) if size.denominator == 1 else f"{float(size):.2f}".rstrip("0").rstrip(".")
    return text + unit


def listing(amounts: Mapping[str, int]) -> str:
    """`8 nvidia.com/gpu, 64 cpu, 512Gi memory`: devices first, since they decide most often."""
    names = sorted(amounts, key=lambda r: (not quantity.is_accelerator(r), r))
    return ", ".join(f"{show(name, amounts[name])} {name}" for name in names)
