import pickle
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.train.checkpoint.small import Run
from trainjob.train.checkpoint import whole as wholes
from trainjob.train.checkpoint.place import Place
from trainjob.train.checkpoint.save import Checkpointer
from trainjob.train.checkpoint.state import State
from trainjob.train.config import Checkpoint
from trainjob.train.faults import Code, TrainError


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    run = Run()
    run.step()
    run.saver(tmp_path / "run", fingerprint={"lora.rank": 4, "data": "a"}).save(1, wait=True)
    return tmp_path / "run"


def fails(url: Path, **more: Any) -> TrainError:
    with pytest.raises(TrainError) as caught:
        Run().saver(url, **{"fingerprint": {"lora.rank": 4, "data": "a"}, **more}).resume()
    assert caught.value.code is Code.BAD_CHECKPOINT
    assert caught.value.fix
    return caught.value


def test_another_model(saved: Path) -> None:
    model = nn.ModuleDict({"first": nn.Linear(5, 7), "last": nn.Linear(6, 2, bias=False), "more": nn.Linear(2, 2)})
    saver = Checkpointer(
        Checkpoint(), url=str(saved), state=State(model), fingerprint={"lora.rank": 4, "data": "a"}, say=print
    )
    with pytest.raises(TrainError) as caught:
        saver.resume()
    assert caught.value.code is Code.BAD_CHECKPOINT
    assert "of another model: first.bias is float32 6 in the checkpoint and float32 7 here; " in caught.value.reason
    assert "first.weight is float32 6x5 in the checkpoint and float32 7x5 here" in caught.value.reason
    assert "last.bias is in the checkpoint alone" in caught.value.reason
    assert "more" in caught.value.reason


def test_another_precision_is_not_rounded_in_silence(saved: Path) -> None:
    run = Run()
    run.model.bfloat16()
    with pytest.raises(TrainError, match=r"first\.bias is float32 6 in the checkpoint and bfloat16 6 here"):
        run.saver(saved, fingerprint={"lora.rank": 4, "data": "a"}).resume()


def test_other_settings(saved: Path) -> None:
    error = fails(saved, fingerprint={"lora.rank": 8, "data": "a", "new": 1})
    assert "lora.rank was 4 and is 8; new was not set and is 1" in error.reason


def test_settings_are_compared_as_json(tmp_path: Path) -> None:
    run = Run()
    run.step()
    run.saver(tmp_path, fingerprint={"targets": ("a", "b")}).save(1, wait=True)
    assert Run().saver(tmp_path, fingerprint={"targets": ("a", "b")}).resume() is not None


def test_a_truncated_file(saved: Path) -> None:
    file = saved / "step-00000001/__0_0.distcp"
    size = file.stat().st_size
    file.write_bytes(file.read_bytes()[: size // 2])
    assert f"__0_0.distcp has {size // 2} bytes instead of {size}" in fails(saved).reason


def test_a_flipped_bit(saved: Path) -> None:
    """The size is right; only the checksum knows."""
    file = saved / "step-00000001/__0_0.distcp"
    content = bytearray(file.read_bytes())
    weights = Run()
    weights.step()
    at = content.find(weights.model.first.weight.detach().numpy().tobytes())
    assert at > 0
    content[at] ^= 1
    file.write_bytes(content)
    error = fails(saved)
    assert "__0_0.distcp" in error.reason
    assert "model.first.weight" in error.reason
    assert f"remove {saved}/step-00000001" in error.fix


def test_garbage_where_tensors_should_be(saved: Path) -> None:
    file = saved / "step-00000001/__0_0.distcp"
    file.write_bytes(b"\0" * file.stat().st_size)
    assert "cannot be read" in fails(saved).reason


def test_a_metadata_file_cannot_run_code(saved: Path, tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "ran",))

    content = pickle.dumps(Evil())
    (saved / "step-00000001/.metadata").write_bytes(content)
    found = wholes.look(Place(str(saved))).wholes[0]
    changed = wholes.Whole(
        **{
            **{name: getattr(found, name) for name in found.__slots__},
            "files": {**found.files, ".metadata": len(content)},
        }
    )
    (Place(str(saved)) / "step-00000001").write("complete.json", changed.json())
    assert "which is no part of a checkpoint" in fails(saved).reason
    assert not (tmp_path / "ran").exists()


def test_another_optimizer(saved: Path) -> None:
    run = Run()
    run.optimizer = torch.optim.AdamW(run.model.parameters())
    run.state.optimizer = run.optimizer
    with pytest.raises(TrainError) as caught:
        run.saver(saved, fingerprint={"lora.rank": 4, "data": "a"}).resume()
    assert caught.value.code is Code.BAD_CHECKPOINT


def test_without_an_optimizer_only_weights_are_loaded(saved: Path) -> None:
    run = Run(seed=9)
    run.state.optimizer = None
    run.saver(saved, fingerprint={"lora.rank": 4, "data": "a"}).resume()
    expected = Run()
    expected.step()
    assert torch.equal(run.model.last.weight, expected.model.last.weight)
    assert not run.optimizer.state


def test_versions_that_differ_are_said(saved: Path) -> None:
    folder = Place(str(saved)) / "step-00000001"
    content = folder.read("complete.json")
    assert content is not None
    folder.write("complete.json", re.sub(rb'"torch": "[^"]*"', b'"torch": "2.0.0"', content))
    said: list[str] = []
    Run().saver(saved, fingerprint={"lora.rank": 4, "data": "a"}, said=said).resume()
    assert len(said) == 1
    assert said[0].startswith("step 1 was saved with torch 2.0.0; this is ")
