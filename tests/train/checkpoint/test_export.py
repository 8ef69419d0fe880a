import errno
import json
import uuid
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.train.checkpoint import llama
from trainjob.train.checkpoint.export import export
from trainjob.train.checkpoint.place import Place
from trainjob.train.config import Model
from trainjob.train.faults import Code, TrainError

# peft 0.21 asks transformers 5.24 by a name that it is about to drop.
pytestmark = pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")
IDS = torch.arange(8)[None]


def logits(folder: Path, base: Path | None = None) -> torch.Tensor:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    model: Any = AutoModelForCausalLM.from_pretrained(base or folder, dtype=torch.float32)
    if base is not None:
        model = PeftModel.from_pretrained(model, folder)
    with torch.no_grad():
        found: torch.Tensor = model.eval()(input_ids=IDS).logits
    return found


def adapted(folder: Path, **more: Any) -> Any:
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.manual_seed(5)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    settings = LoraConfig(r=2, target_modules="all-linear", init_lora_weights=False, task_type="CAUSAL_LM", **more)
    return get_peft_model(model, settings)


def test_sharded_full(two: list[dict[str, Any]], root: Path) -> None:
    assert torch.equal(logits(root / "export-full"), two[0]["exports"]["full"])
    config = json.loads((root / "export-full/config.json").read_text())
    assert (config["architectures"], config["dtype"]) == (["LlamaForCausalLM"], "float32")


def test_sharded_adapter(two: list[dict[str, Any]], root: Path) -> None:
    assert torch.equal(logits(root / "export-adapter", base=root / "llama"), two[0]["exports"]["adapter"])
    settings = json.loads((root / "export-adapter/adapter_config.json").read_text())
    assert settings["base_model_name_or_path"] == str(root / "llama")


def test_sharded_merged(two: list[dict[str, Any]], root: Path) -> None:
    torch.testing.assert_close(logits(root / "export-merged"), two[0]["exports"]["merged"], atol=1e-5, rtol=1e-5)
    assert not (root / "export-merged/adapter_config.json").exists()


@pytest.mark.parametrize("tied", [True, False])
def test_what_began_in_bf16_is_written_in_bf16(tmp_path: Path, tied: bool) -> None:
    from safetensors import safe_open
    from transformers import AutoModelForCausalLM, AutoTokenizer

    llama.write(tmp_path / "llama", "bfloat16", tie_word_embeddings=tied)
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "llama", dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "llama")
    export("full", model, url=str(tmp_path / "out"), tokenizer=tokenizer, model=Model(path=str(tmp_path / "llama")))
    with safe_open(tmp_path / "out/model.safetensors", "pt") as stored:
        names = set(stored.keys())
        assert {stored.get_slice(name).get_dtype() for name in names} == {"BF16"}
    assert ("lm_head.weight" in names) is not tied
    assert json.loads((tmp_path / "out/config.json").read_text())["dtype"] == "bfloat16"
    assert torch.equal(logits(tmp_path / "out"), logits(tmp_path / "llama"))
    assert AutoTokenizer.from_pretrained(tmp_path / "out")("w5")["input_ids"] == [5]
    assert next(model.parameters()).dtype is torch.float32
    # What training held in memory is untouched, and so is its configuration.
    assert model.config.dtype in (torch.float32, "float32")


def test_merged_is_the_adapter_in_the_weights(tmp_path: Path) -> None:
    llama.write(tmp_path / "llama")
    model = adapted(tmp_path / "llama", use_rslora=True)
    for kind in ("merged", "adapter"):
        export(kind, model, url=str(tmp_path / kind), model=Model(path=str(tmp_path / "llama")))
    with torch.no_grad():
        expected = model.eval()(input_ids=IDS).logits
    torch.testing.assert_close(logits(tmp_path / "merged"), expected, atol=1e-5, rtol=1e-5)
    assert torch.equal(logits(tmp_path / "adapter", base=tmp_path / "llama"), expected)
    assert not torch.allclose(expected, logits(tmp_path / "llama"), atol=1e-3)


def test_large_models_become_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from trainjob.train.checkpoint import export as module

    monkeypatch.setattr(module, "_SHARD", "4KB")
    llama.write(tmp_path / "llama")
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tmp_path / "llama", dtype=torch.float32)
    export("full", model, url=str(tmp_path / "out"), model=Model(path=str(tmp_path / "llama")))
    assert len(list((tmp_path / "out").glob("model-*.safetensors"))) > 1
    assert torch.equal(logits(tmp_path / "out"), logits(tmp_path / "llama"))
    # Once more into the same folder, in one file: nothing of the first is left, other files stay.
    (tmp_path / "out/notes.txt").write_text("mine")
    monkeypatch.setattr(module, "_SHARD", "5GB")
    with torch.no_grad():
        model.lm_head.weight.mul_(2)
    export("full", model, url=str(tmp_path / "out"), model=Model(path=str(tmp_path / "llama")))
    assert sorted(file.name for file in (tmp_path / "out").glob("model*")) == ["model.safetensors"]
    assert (tmp_path / "out/notes.txt").read_text() == "mine"
    assert torch.equal(logits(tmp_path / "out"), 2 * logits(tmp_path / "llama"))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["llama", "out"]


def test_to_a_store(tmp_path: Path) -> None:
    llama.write(tmp_path / "llama")
    url = f"memory://{uuid.uuid4()}/export"
    export("adapter", adapted(tmp_path / "llama"), url=url, model=Model(path=str(tmp_path / "llama")))
    there = Place(url).files()
    assert {"adapter_config.json", "adapter_model.safetensors"} <= set(there)


@pytest.mark.parametrize(("kind", "lora"), [("full", True), ("merged", False), ("adapter", False), ("other", False)])
def test_kinds_that_the_model_has_not(tmp_path: Path, kind: str, lora: bool) -> None:
    from transformers import AutoModelForCausalLM

    llama.write(tmp_path / "llama")
    model = adapted(tmp_path / "llama") if lora else AutoModelForCausalLM.from_pretrained(tmp_path / "llama")
    with pytest.raises(TrainError) as caught:
        export(kind, model, url=str(tmp_path / "out"), model=Model(path=str(tmp_path / "llama")))
    assert caught.value.code is Code.CONFIG
    assert not (tmp_path / "out").exists()


def test_the_model_that_was_trained_from_is_not_overwritten(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    llama.write(tmp_path / "llama")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "llama")
    with pytest.raises(TrainError, match="is the model that was trained from"):
        export("full", model, url=f"{tmp_path}/llama/", model=Model(path=str(tmp_path / "llama")))


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import AutoModelForCausalLM, LlamaForCausalLM

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    llama.write(tmp_path / "llama")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "llama")
    monkeypatch.setattr(LlamaForCausalLM, "save_pretrained", full)
    with pytest.raises(TrainError) as caught:
        export("full", model, url=str(tmp_path / "out"), model=Model(path=str(tmp_path / "llama")))
    assert caught.value.code is Code.NO_SPACE
    assert sorted(each.name for each in tmp_path.iterdir()) == ["llama"]
