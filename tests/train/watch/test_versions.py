from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.train.watch.ranks import spawn
from trainjob.train.config import Config, Model, Report
from trainjob.train.faults import Code, TrainError
from trainjob.train.watch import versions

SAME = {"python": "3.13", "torch": "2.13.0", "peft": "0.21.2", "configuration": "abc"}


def refused(*ranks: tuple[str, dict[str, str]]) -> TrainError:
    with pytest.raises(TrainError) as caught:
        versions.differ(ranks)
    return caught.value


def test_equal_ranks_pass() -> None:
    versions.differ([("a", SAME), ("b", dict(SAME))])


def test_who_has_what() -> None:
    old = {**SAME, "torch": "2.12.1"}
    error = refused(("node-0", SAME), ("node-0", SAME), ("node-1", old), ("node-1", old), ("node-2", SAME))
    assert error.code is Code.VERSIONS
    assert error.reason == (
        "the ranks run different software: torch is 2.13.0 on ranks 0-1, 4 (host node-0 and 1 more), "
        "2.12.1 on ranks 2-3 (host node-1)"
    )


def test_a_package_that_one_has_not() -> None:
    error = refused(("a", SAME), ("b", {k: v for k, v in SAME.items() if k != "peft"}))
    assert "peft is 0.21.2 on rank 0 (host a), none on rank 1 (host b)" in error.reason


def test_different_settings() -> None:
    error = refused(("a", SAME), ("b", {**SAME, "configuration": "def"}))
    assert error.code is Code.CONFIG
    assert "configuration is abc on rank 0 (host a), def on rank 1 (host b)" in error.reason


def test_different_data() -> None:
    error = refused(("a", {**SAME, "data": "1"}), ("b", {**SAME, "data": "2"}))
    assert error.code is Code.BAD_DATA
    assert "different data" in error.reason
    assert "data is 1 on rank 0 (host a), 2 on rank 1 (host b)" in error.reason


def test_a_digest_is_that_of_the_settings() -> None:
    config = Config(model=Model(path="x"))
    assert versions.digest(config) == versions.digest(Config(model=Model(path="x")))
    assert versions.digest(config) != versions.digest(replace(config, model=Model(path="y")))
    assert versions.digest(config) == versions.digest(replace(config, report=Report(every=7)))


def test_what_this_process_runs() -> None:
    import torch

    found = versions.mine(Config())
    assert found["torch"].partition("+")[0] == torch.__version__.partition("+")[0]
    for package in ("transformers", "peft"):
        assert found[package].split(".")[0].isdigit()
    assert found["NCCL"] == "none"


def test_without_a_group_there_is_nothing_to_compare() -> None:
    versions.compare(Config())


def compare(rank: int, out: Path, kind: str) -> None:
    """One of two ranks, the second of which differs."""
    config = Config()
    if rank == 1 and kind == "software":
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(versions, "_version", lambda name: "0.0.1" if name == "torch" else "1")
            return said(config, out / f"{rank}")
    if rank == 1 and kind == "settings":
        config = replace(config, model=Model(path="elsewhere"))
    return said(config, out / f"{rank}")


def said(config: Config, file: Path) -> None:
    try:
        versions.compare(config)
    except TrainError as error:
        file.write_text(f"{error.code.name} {error.reason}")
    else:
        file.write_text("passed")


@pytest.mark.parametrize("kind", ["nothing", "software", "settings"])
def test_real_ranks_refuse_the_same_way(kind: str, tmp_path: Path) -> None:
    spawn(compare, 2, tmp_path, kind)
    first, second = ((tmp_path / str(rank)).read_text() for rank in range(2))
    assert first == second
    begin = {"nothing": "passed", "software": "VERSIONS the ranks run different software: torch is ",
             "settings": "CONFIG the ranks have different settings: configuration is "}[kind]  # fmt: skip
    assert first.startswith(begin)
