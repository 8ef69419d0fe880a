"""Quantities are exact, and devices are told from other resources."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from trainjob.kube import quantity


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0", 0), ("8", 8), (8, 8), (0.25, Fraction(1, 4)), ("500m", Fraction(1, 2)), ("1.5", Fraction(3, 2)),
        ("+2", 2), ("-1", -1), (".5", Fraction(1, 2)), ("5.", 5), ("1e3", 1000), ("1E3", 1000),
        ("1e-3", Fraction(1, 1000)), (1e22, 10**22), ("1k", 1000), ("1M", 10**6), ("1G", 10**9), ("1T", 10**12),
        ("1P", 10**15), ("1E", 10**18),
        ("1Ki", 1024), ("8Gi", 8 * 2**30), ("1Mi", 2**20), ("1Ti", 2**40), ("1Pi", 2**50), ("1Ei", 2**60),
        ("1u", Fraction(1, 10**6)), ("1n", Fraction(1, 10**9)), ("0.1Gi", Fraction(2**30, 10)),
    ],
)  # fmt: skip
def test_parse_is_exact(text: Any, amount: Any) -> None:
    """Every suffix of Kubernetes' grammar, without rounding."""
    assert quantity.parse(text) == Fraction(amount)


@pytest.mark.parametrize(
    "text",
    ["", "abc", "1 Gi", "1gi", "1KI", "1K", "Gi", "1e", "1e1.5", "--1", "1GiB", "0x10", "1_000", "1e41", "1e99999999",
     "9" * 5000, None, True, [1], {}, float("nan"), float("inf")],
)  # fmt: skip
def test_parse_refuses_what_is_no_quantity(text: Any) -> None:
    """Also numbers so large that they would cost memory."""
    with pytest.raises(ValueError, match=r"is not a quantity|Exceeds the limit"):
        quantity.parse(text)


@pytest.mark.parametrize(("text", "whole"), [("0", 1), ("1", 1), ("100m", 1), ("1.5", 2), ("3500m", 4), (8, 8)])
def test_cpus_count_as_processes_rounded_up(text: Any, whole: int) -> None:
    """At least one, as Trainer does."""
    assert quantity.whole_up(text) == whole


def test_show_is_short() -> None:
    """Integers without a point, other numbers with few digits."""
    assert quantity.show(Fraction(8)) == "8"
    assert quantity.show(Fraction(1, 3)) == "0.333"


@pytest.mark.parametrize(
    ("resource", "device"),
    [
        ("nvidia.com/gpu", True), ("amd.com/gpu", True), ("nvidia.com/mig-1g.10gb", True), ("gpu.intel.com/i915", True),
        ("aws.amazon.com/neuron", True), ("aws.amazon.com/neurondevice", True), ("habana.ai/gaudi", True),
        ("google.com/tpu", True), ("huawei.com/Ascend910", True), ("nvidia.com/gpu.shared", True),
        ("cpu", False), ("memory", False), ("ephemeral-storage", False), ("hugepages-2Mi", False), ("gpu", False),
        ("vpc.amazonaws.com/efa", False), ("rdma/hca_shared_devices_a", False), ("nvidia.com/gpumem", False),
        ("nvidia.com/gpucores", False), ("aws.amazon.com/neuroncore", True), ("kubernetes.io/gpu", False),
        ("openshift.io/sriov_gpu", False), ("nvidia.com/gpumem-percentage", False),
    ],
)  # fmt: skip
def test_devices_are_known(resource: str, device: bool) -> None:
    """GPU, MIG, Neuron, Gaudi, TPU and NPU count; network cards and shares of a device do not."""
    assert quantity.is_accelerator(resource) is device


@pytest.mark.parametrize(
    ("resources", "found"),
    [
        ({}, False),
        ({"limits": {"nvidia.com/gpu": 1}}, True),
        ({"requests": {"amd.com/gpu": "2"}}, True),
        ({"limits": {"nvidia.com/gpu": 0}}, False),
        ({"requests": None, "limits": {"nvidia.com/mig-1g.10gb": 1}}, False),
        ({"limits": {"example.com/GPU": 1}}, True),
    ],
)
def test_names_gpu_is_trainers_test(resources: Any, found: bool) -> None:
    """A key with "gpu" in it and an amount above zero, in requests or limits."""
    assert quantity.names_gpu(resources) is found


def test_accelerators_are_counted_once() -> None:
    """Requests and limits of one device are one number; zero is no device."""
    resources = {"requests": {"nvidia.com/gpu": 2, "cpu": 1}, "limits": {"nvidia.com/gpu": "2", "amd.com/gpu": 0}}
    assert quantity.accelerators(resources) == {"nvidia.com/gpu": 2}
