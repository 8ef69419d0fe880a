from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where several processes meet, with a tiny Llama and a checkpoint of one process."""
    import torch

    from tests.train.checkpoint import llama, small

    root = tmp_path_factory.mktemp("worlds")
    llama.write(root / "llama")
    run = small.Run()
    run.step()
    run.saver(root / "one").save(1, wait=True)
    torch.save(small.whole(run), root / "one.pt")
    return root


@pytest.fixture(scope="session")
def two(root: Path) -> list[dict[str, Any]]:
    """What `worlds.two` found on each of two ranks."""
    from tests.train.checkpoint import worlds

    return worlds.start(worlds.two, 2, root)


@pytest.fixture(scope="session")
def three(root: Path, two: list[dict[str, Any]]) -> list[dict[str, Any]]:
    from tests.train.checkpoint import worlds

    assert len(two) == 2
    return worlds.start(worlds.three, 3, root)
