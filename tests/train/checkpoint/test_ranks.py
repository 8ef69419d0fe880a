from pathlib import Path
from typing import Any

import pytest
import torch

from tests.train.checkpoint.small import Run, equal, whole
from trainjob.train.checkpoint.ranks import Ranks
from trainjob.train.faults import Code, TrainError


def test_two_ranks_resume_to_the_last_bit(two: list[dict[str, Any]]) -> None:
    assert [each["bitwise"] for each in two] == [True, True]
    assert [each["resumed"] for each in two] == [(3, 2, {"row": 21})] * 2


def test_saved_is_called_on_every_rank(two: list[dict[str, Any]]) -> None:
    assert [each["saved"] for each in two] == [[1, 2, 3], [1, 2, 3]]


def test_each_rank_writes_a_file(two: list[dict[str, Any]]) -> None:
    assert two[0]["files"] == [".metadata", "__0_0.distcp", "__1_0.distcp", "complete.json"]


@pytest.mark.parametrize("way", ["fsdp to ddp", "ddp to fsdp"])
def test_modes_load_each_other(two: list[dict[str, Any]], way: str) -> None:
    assert [each[way] for each in two] == [True, True]


def test_one_to_two(two: list[dict[str, Any]]) -> None:
    assert [each["one to two"] for each in two] == [True, True]


@pytest.mark.parametrize("kind", ["fsdp", "ddp"])
def test_two_to_one(two: list[dict[str, Any]], root: Path, kind: str) -> None:
    assert two
    run = Run(seed=9)
    resumed = run.saver(root / kind).resume()
    assert resumed is not None
    assert resumed.world_size == 2
    state = whole(run)
    assert equal(state, torch.load(root / "two.pt")["state"])
    assert sum(name.endswith("exp_avg_sq") for name in state) == 4


def test_two_to_three(three: list[dict[str, Any]]) -> None:
    assert [each["equal"] for each in three] == [True] * 3
    assert [each["written by"] for each in three] == [2] * 3


def test_a_new_rank_draws_the_same_each_time_and_not_what_others_draw(three: list[dict[str, Any]]) -> None:
    for each in three:
        assert torch.equal(each["drawn"], each["drawn again"])
    assert not torch.equal(three[2]["drawn"], three[0]["drawn"])
    assert not torch.equal(three[2]["drawn"], three[1]["drawn"])


def test_three_to_one(three: list[dict[str, Any]], root: Path) -> None:
    assert three
    run = Run(seed=9)
    run.saver(root / "three").resume()
    assert equal(whole(run), torch.load(root / "two.pt")["state"])


def test_the_fault_of_one_rank_is_raised_on_all(two: list[dict[str, Any]]) -> None:
    """Rank 1 alone has another model than the checkpoint."""
    assert two[0]["another model"] == two[1]["another model"]
    assert two[0]["another model"].startswith("BAD_CHECKPOINT: rank 1: ")


def test_a_full_disk_of_one_rank(two: list[dict[str, Any]], root: Path) -> None:
    assert two[0]["full"] == two[1]["full"]
    assert two[0]["full"].startswith("NO_SPACE: rank 1: cannot write the checkpoint ")
    run = Run(seed=9)
    resumed = run.saver(root / "full").resume()
    assert resumed is not None
    assert resumed.step == 1


def test_disks_that_ranks_do_not_share(two: list[dict[str, Any]]) -> None:
    assert two[0]["own disks"] == two[1]["own disks"]
    assert two[0]["own disks"].startswith("CONFIG: ")
    assert "__1_0.distcp of another rank cannot be seen from rank 0" in two[0]["own disks"]


def test_alone() -> None:
    ranks = Ranks()
    assert (ranks.rank, ranks.world) == (0, 1)
    assert ranks.first(lambda: 5) == 5
    ranks.agree(None)
    with pytest.raises(TrainError) as caught:
        ranks.agree(TrainError(Code.NO_SPACE, "full", "free some"))
    assert (caught.value.code, caught.value.reason, caught.value.fix) == (Code.NO_SPACE, "full", "free some")
    ranks.close()
