"""docs/comparison.md is computed; what it says of one of our runtimes holds for all of them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from trainjob.catalog import catalog
from trainjob.targets import DEFAULT
from trainjob.validate import check_runtime

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import comparison  # noqa: E402

PEERS: dict[str, Any] = json.loads(comparison.PEERS.read_text(encoding="utf-8"))
OURS = [r for r in catalog().values() if r.purpose != "v1-compat"]
# Sizes are each runtime's own.
SAME = [f for f in comparison.FEATURES if f.name not in {"CPU, memory, disk, GPUs", "`/dev/shm`"}]


def uses_nccl(runtime: Any) -> bool:
    """One process on one GPU, and CPUs, do without."""
    return bool(runtime.gpus) and runtime.purpose == "fsdp"


@pytest.mark.parametrize("runtime", OURS, ids=lambda r: r.name)
def test_every_runtime_of_ours_has_what_the_table_says_of_one(runtime: Any) -> None:
    said = comparison.View(catalog()[comparison.OURS].manifest["spec"])
    mine = comparison.View(runtime.manifest["spec"])
    for feature in SAME:
        if feature.name == "NCCL flight recorder" and not uses_nccl(runtime):
            continue
        if feature.name == "time for a last checkpoint":
            assert int(feature.cell(mine).split()[0]) > 30
        elif feature.name == "a process dies (torchrun)":
            assert feature.cell(mine).startswith("all pods")
        else:
            assert feature.cell(mine) == feature.cell(said), feature.name
    assert comparison._shm(mine).startswith("in memory")


@pytest.mark.parametrize("title", PEERS)
def test_the_others_are_valid_runtimes_without_our_settings(title: str) -> None:
    peer = PEERS[title]
    runtime = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": peer["name"], "labels": {"trainer.kubeflow.org/framework": "torch"}},
        "spec": peer["spec"],
    }
    assert check_runtime(runtime, DEFAULT) == []
    ours, theirs = comparison.View(catalog()[comparison.OURS].manifest["spec"]), comparison.View(peer["spec"])
    assert [f.name for f in comparison.FEATURES if f.cell(ours) == f.cell(theirs)] == []
