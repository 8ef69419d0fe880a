"""Kubernetes quantities: `500m`, `2Gi`, `1e3`, 8.

Grammar: k8s.io/apimachinery v0.34 pkg/api/resource/quantity.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

_SUFFIX: Final = {
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1),
    "k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12),
    "P": Fraction(10**15), "E": Fraction(10**18),
    "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30), "Ti": Fraction(2**40),
    "Pi": Fraction(2**50), "Ei": Fraction(2**60),
}  # fmt: skip
_QUANTITY: Final = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:(?P<suffix>[KMGTPE]i|[numkMGTPE]|)|[eE](?P<exp>[+-]?[0-9]+))\Z"
)


def parse(value: Any) -> Fraction:
    """The exact amount. Raises ValueError for text that is no quantity."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{value!r} is not a quantity")
    match = _QUANTITY.match(str(value).strip())
    if not match:
        raise ValueError(f"{value!r} is not a quantity")
    number = Fraction(match["number"])
    if match["exp"] is not None:
        if abs(int(match["exp"])) > 40:
            raise ValueError(f"{value!r} is not a quantity")
        return number * Fraction(10) ** int(match["exp"])
    return number * _SUFFIX[match["suffix"]]


def whole_up(value: Any) -> int:
    """The amount rounded up to an integer, at least 1 (how Trainer counts CPU as processes)."""
    amount = parse(value)
    return max(1, -(-amount.numerator // amount.denominator))


def show(amount: Fraction) -> str:
    """A short text for people: integers as integers, the rest with up to three digits."""
    return str(amount.numerator) if amount.denominator == 1 else f"{float(amount):.3g}"


_DEVICE: Final = re.compile(r"gpu|mig-|neuron|gaudi|tpu|ascend|npu|xpu|dcu")
_NOT_A_DEVICE: Final = re.compile(r"mem(ory)?\b|cores\b|percentage|priority|rdma|sriov|roce|\befa\b|hugepages")


def is_accelerator(resource: str) -> bool:
    """True for extended resources that are devices to compute on: GPU, MIG, Neuron, Gaudi, TPU, NPU.

    Network devices (EFA, RDMA, SR-IOV) and shares of a device (HAMi's `gpumem`, `gpucores`) are
    extended resources too, but not counted as devices.
    """
    domain, slash, _ = resource.partition("/")
    if not slash or domain == "kubernetes.io":
        return False
    key = resource.lower()
    return bool(_DEVICE.search(key)) and not _NOT_A_DEVICE.search(key)


def names_gpu(resources: Mapping[str, Any]) -> bool:
    """Trainer's own test for `PET_NPROC_PER_NODE=auto`: a key with "gpu" in it and a value over 0.

    Requests are looked at first, then limits (kubeflow/trainer v2.3.0 pkg/runtime/runtime.go).
    """
    for kind in ("requests", "limits"):
        for key, value in (resources.get(kind) or {}).items():
            if "gpu" in key.lower() and parse(value) > 0:
                return True
    return False


def accelerators(resources: Mapping[str, Any]) -> dict[str, Fraction]:
    """The devices that one pod's container asks for, limits before requests (equal in a valid pod)."""
    out: dict[str, Fraction] = {}
    for kind in ("requests", "limits"):
        for key, value in (resources.get(kind) or {}).items():
            if is_accelerator(key) and parse(value) > 0:
                out[key] = parse(value)
    return out
