from __future__ import annotations

import pytest

from trainjob.validate.queue.amounts import listing, read, show


@pytest.mark.parametrize(
    ("resource", "text", "amount"),
    [
        ("cpu", "1", 1000),
        ("cpu", "250m", 250),
        ("cpu", "0.0001", 1),
        ("memory", "1Gi", 2**30),
        ("memory", "1500m", 2),
        ("nvidia.com/gpu", "8", 8),
        ("nvidia.com/gpu", 8, 8),
    ],
)
def test_read_counts_as_kueue_does(resource: str, text: str | int, amount: int) -> None:
    assert read(resource, text) == amount


def test_read_refuses_what_is_no_quantity() -> None:
    with pytest.raises(ValueError, match="lots"):
        read("cpu", "lots")


@pytest.mark.parametrize(
    ("resource", "text", "shown"),
    [
        ("cpu", "64", "64"),
        ("cpu", "250m", "0.25"),
        ("memory", "512Gi", "512Gi"),
        ("memory", "1024Gi", "1Ti"),
        ("memory", "1536Mi", "1.5Gi"),
        ("memory", "1G", "953.67Mi"),
        ("memory", "100", "100"),
        ("ephemeral-storage", "0", "0"),
        ("nvidia.com/gpu", "2048", "2048"),
    ],
)
def test_show_is_what_people_write(resource: str, text: str, shown: str) -> None:
    assert show(resource, read(resource, text)) == shown


def test_listing_begins_with_devices() -> None:
    assert listing({"cpu": 2000, "memory": 2**30, "nvidia.com/gpu": 2}) == "2 nvidia.com/gpu, 2 cpu, 1Gi memory"
