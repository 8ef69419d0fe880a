"""Models are found or it is said why not; weights arrive as transformers loads them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.train.model import tools
from trainjob.train.faults import Code, TrainError
from trainjob.train.model import load, weights
from trainjob.train.model.build import build


def fails(path: Path | str, init: str = "pretrained", **more: object) -> TrainError:
    with pytest.raises(TrainError) as raised:
        build(tools.config(Path(path), init=init, **more), device=tools.CPU)
    assert "\n" not in raised.value.reason
    assert raised.value.fix
    return raised.value


@pytest.mark.parametrize(
    ("architecture", "more", "shard"),
    [
        ("Llama", {}, "50GB"),
        ("Llama", {"tie_word_embeddings": True}, "20KB"),
        ("Granite", {"tie_word_embeddings": True}, "50GB"),
        ("Qwen2", {}, "50GB"),
    ],
)
def test_weights_are_read_as_transformers_does(
    architecture: str, more: dict[str, bool], shard: str, tmp_path: Path
) -> None:
    theirs = tools.pretrained(tmp_path, architecture, shard=shard, **more)
    built = build(tools.config(tmp_path, init="pretrained"), device=tools.CPU)
    assert not built.notes
    ours = built.model.state_dict()
    assert ours.keys() == theirs.state_dict().keys()
    for name, weight in theirs.state_dict().items():
        assert torch.equal(ours[name], weight), name
    for (name, one), (_, other) in zip(built.model.named_buffers(), theirs.named_buffers(), strict=True):
        assert torch.equal(one, other), name
    tied = built.model.lm_head.weight is built.model.model.embed_tokens.weight
    assert tied == bool(more.get("tie_word_embeddings"))


def test_half_precision_files_become_fp32(tmp_path: Path) -> None:
    theirs = tools.pretrained(tmp_path).to(torch.bfloat16)
    theirs.save_pretrained(tmp_path)
    built = build(tools.config(tmp_path, init="pretrained", precision="bf16"), device=tools.CPU)
    for name, weight in theirs.state_dict().items():
        ours = built.model.state_dict()[name]
        assert ours.dtype is torch.float32, name
        assert torch.equal(ours, weight.float()), name


def test_converted_weights_are_loaded_by_transformers(tmp_path: Path) -> None:
    theirs = tools.pretrained(tmp_path, "Mixtral", num_local_experts=2, num_experts_per_tok=1)
    built = build(tools.config(tmp_path, init="pretrained"), device=tools.CPU)
    assert "loaded whole" in built.notes[0]
    for name, weight in theirs.state_dict().items():
        assert torch.equal(built.model.state_dict()[name], weight), name


def test_files_of_pickles_are_loaded_by_transformers(tmp_path: Path) -> None:
    theirs = tools.pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save(theirs.state_dict(), tmp_path / "pytorch_model.bin")
    built = build(tools.config(tmp_path, init="pretrained"), device=tools.CPU)
    assert "no safetensors files" in built.notes[0]
    assert torch.equal(built.model.lm_head.weight, theirs.lm_head.weight)


def test_only_the_rows_of_a_rank_are_read() -> None:
    asked: list[tuple[int, int]] = []
    layer = torch.nn.Linear(3, 8)

    def rows(first: int, end: int) -> torch.Tensor:
        asked.append((first, end))
        return torch.ones(end - first, 3)

    weights.assign(layer, "weight", rows)
    assert asked == [(0, 8)]
    assert layer.weight.detach().eq(1).all()


def test_random_weights_follow_the_architecture_and_the_seed(tmp_path: Path) -> None:
    path = tools.folder(tmp_path, initializer_range=0.3, attention_bias=True)
    one, same = (build(tools.config(path), device=tools.CPU).model.state_dict() for _ in range(2))
    other = build(tools.config(path, seed=4), device=tools.CPU).model.state_dict()
    for name, weight in one.items():
        assert torch.equal(weight, same[name])
        if name.endswith("norm.weight"):
            assert weight.eq(1).all()
        elif name.endswith("bias"):
            assert weight.eq(0).all()
        else:
            assert not torch.equal(weight, other[name]), name
            assert weight.std() == pytest.approx(0.3, rel=0.1), name
    layers = [one[f"model.layers.{i}.mlp.up_proj.weight"] for i in range(2)]
    assert not torch.equal(*layers)


def test_building_leaves_the_generators_alone(tmp_path: Path) -> None:
    path = tools.folder(tmp_path)
    torch.manual_seed(11)
    wanted = torch.rand(3)
    torch.manual_seed(11)
    build(tools.config(path, lora_rank=2), device=tools.CPU)
    assert torch.equal(torch.rand(3), wanted)


def test_no_folder(tmp_path: Path) -> None:
    assert fails(tmp_path / "nowhere").code is Code.NOT_FOUND


def test_no_configuration(tmp_path: Path) -> None:
    error = fails(tmp_path)
    assert error.code is Code.NOT_FOUND
    assert "config.json" in error.reason


def test_no_weights(tmp_path: Path) -> None:
    error = fails(tools.folder(tmp_path))
    assert error.code in (Code.NOT_FOUND, Code.BAD_CHECKPOINT)
    assert "model.safetensors" in error.reason


def test_broken_weights(tmp_path: Path) -> None:
    tools.pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    error = fails(tmp_path)
    assert error.code is Code.BAD_CHECKPOINT
    assert "broken" in error.reason


def test_a_missing_part(tmp_path: Path) -> None:
    tools.pretrained(tmp_path, shard="20KB")
    part = sorted(tmp_path.glob("model-*.safetensors"))[1]
    part.unlink()
    error = fails(tmp_path)
    assert error.code is Code.BAD_CHECKPOINT
    assert part.name in error.reason


def test_an_index_that_is_none(tmp_path: Path) -> None:
    tools.pretrained(tmp_path)
    (tmp_path / "model.safetensors.index.json").write_text("{}")
    assert fails(tmp_path).code is Code.BAD_CHECKPOINT


def test_weights_of_another_model(tmp_path: Path) -> None:
    tools.pretrained(tmp_path)
    tools.folder(tmp_path, num_hidden_layers=3)
    error = fails(tmp_path)
    assert error.code is Code.BAD_CHECKPOINT
    assert "lacks weights" in error.reason
    assert "layers.2" in error.reason


def test_weights_of_another_shape(tmp_path: Path) -> None:
    tools.pretrained(tmp_path)
    stored = load_file(tmp_path / "model.safetensors")
    stored["model.norm.weight"] = torch.ones(31)
    save_file(stored, tmp_path / "model.safetensors", {"format": "pt"})
    error = fails(tmp_path)
    assert error.code is Code.BAD_CHECKPOINT
    assert "[31]" in error.reason
    assert "[32]" in error.reason


def test_an_unknown_architecture(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "nothing-like-this"}))
    assert fails(tmp_path, "random").code in (Code.CONFIG, Code.BAD_CHECKPOINT)


def test_no_language_model(tmp_path: Path) -> None:
    import transformers

    transformers.ViTConfig().save_pretrained(tmp_path)
    error = fails(tmp_path, "random")
    assert error.code is Code.CONFIG
    assert "`vit`" in error.reason


def test_quantised_already(tmp_path: Path) -> None:
    described = json.loads((tools.folder(tmp_path) / "config.json").read_text())
    described["quantization_config"] = {"quant_method": "gptq", "bits": 4}
    (tmp_path / "config.json").write_text(json.dumps(described))
    error = fails(tmp_path, "random")
    assert error.code is Code.CONFIG
    assert "nf4" in error.fix


class Hub(BaseHTTPRequestHandler):
    """Answers as the hub does, by the model's name."""

    answers: ClassVar = {
        "gated": (403, "GatedRepo"),
        "locked": (401, "GatedRepo"),
        "gone": (404, "RepoNotFound"),
        "old": (404, "RevisionNotFound"),
        "sick": (503, ""),
    }

    def do_HEAD(self) -> None:
        name = next((n for n in self.answers if f"/{n}/" in self.path), None)
        if name is None:  # nobody answers
            self.close_connection = True
            return
        status, code = self.answers[name]
        self.send_response(status)
        if code:
            self.send_header("X-Error-Code", code)
            self.send_header("X-Error-Message", "as the test wants it")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    from huggingface_hub import constants

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(constants, "ENDPOINT", endpoint)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", endpoint + "/{repo_id}/resolve/{revision}/{filename}")
    monkeypatch.setattr("time.sleep", lambda _seconds: None)  # between the library's retries
    yield
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("of/gated", Code.NO_ACCESS),
        ("of/locked", Code.NO_ACCESS),
        ("of/gone", Code.NOT_FOUND),
        ("of/old", Code.NOT_FOUND),
        ("of/sick", Code.HUB),
        ("of/dead", Code.HUB),
    ],
)
@pytest.mark.usefixtures("hub")
def test_the_hub_refuses(name: str, code: Code) -> None:
    error = fails(name)
    assert error.code is code
    assert name in error.reason


def test_an_error_keeps_its_own_explanation() -> None:
    known = TrainError(Code.NOT_FOUND, "not there", "look elsewhere")
    assert load.explain(known, "x") is known
