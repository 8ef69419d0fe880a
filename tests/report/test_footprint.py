"""Pods and devices of a job: what v1 ran, what its Worker count suggests, and what was written."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.migrate.rules.support import GPU, v1
from tests.report.support import CASES, EXAMPLE
from trainjob.kube import yaml
from trainjob.migrate import migrate_text
from trainjob.report.footprint import Footprint, suggested, total, v1_roles, v2
from trainjob.report.footprint import v1 as ran

TWO = {"resources": {"limits": {"nvidia.com/gpu": 2}}}


def gpus(count: int) -> dict[str, Fraction]:
    return {"nvidia.com/gpu": Fraction(count)}


def test_the_master_is_a_pod_too() -> None:
    data = v1(TWO, workers=2)
    assert ran(data) == Footprint(3, gpus(6))
    assert suggested(data) == Footprint(2, gpus(4))
    assert ran(data).more_devices_than(suggested(data)) == "+2 nvidia.com/gpu"


def test_a_single_role_suggests_what_it_is() -> None:
    assert suggested(v1(TWO)) == ran(v1(TWO)) == Footprint(1, gpus(2))
    only_workers = v1(GPU, master=False, workers=3)
    assert suggested(only_workers) == ran(only_workers) == Footprint(3, gpus(3))


def test_sidecars_count() -> None:
    data = v1(GPU, pod={})
    data["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"].append(
        {"name": "eval", "image": "reg.io/eval:1", **GPU}
    )
    assert ran(data) == Footprint(1, gpus(2))
    (job,) = migrate_text(yaml.dump(data)).jobs
    assert v2(job) == Footprint(1, gpus(2))


@pytest.mark.parametrize(
    "data",
    [None, "text", [], {}, {"spec": 1}, {"spec": {"pytorchReplicaSpecs": {"Master": None, "Worker": []}}},
     {"spec": {"pytorchReplicaSpecs": {"Master": {"replicas": "two", "template": {"spec": {"containers": "x"}}}}}},
     {"spec": {"pytorchReplicaSpecs": {"Master": {"replicas": True, "template": {"spec": {"containers": [1]}}}}}}],
)  # fmt: skip
def test_what_is_no_job_has_no_pods(data: Any) -> None:
    assert ran(data).pods == 0
    assert suggested(data).pods == 0


def test_a_quantity_that_is_none_counts_as_nothing() -> None:
    assert ran(v1({"resources": {"limits": {"nvidia.com/gpu": "many"}}})) == Footprint(1, {})


@pytest.mark.parametrize("path", sorted(CASES.glob("*/before.yaml")), ids=lambda p: p.parent.name)
def test_migration_keeps_pods_and_devices(path: Path) -> None:
    """The v2 numbers are read from the output, the v1 ones from the input: they must agree."""
    for record in migrate_text(path.read_bytes(), file=path.name).records:
        if record.job is not None:
            assert v2(record.job) == ran(record.data)


def test_sums() -> None:
    (record,) = migrate_text(EXAMPLE.read_bytes()).records
    one = ran(record.data)
    assert total([one, one]) == Footprint(6, gpus(12))
    assert total([]).device_text == "0"
    assert (one.device_text, list(v1_roles(record.data))) == ("6 nvidia.com/gpu", ["Master", "Worker"])
    mixed = Footprint(1, {"nvidia.com/gpu": Fraction(1), "amd.com/gpu": Fraction(2)})
    assert mixed.device_text == "2 amd.com/gpu, 1 nvidia.com/gpu"
    assert one.more_devices_than(mixed) == "-2 amd.com/gpu, +5 nvidia.com/gpu"
