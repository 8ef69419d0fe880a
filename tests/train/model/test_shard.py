"""One curve, whatever the number of ranks and the way that they share the model."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.train.model import ranks, tools
from trainjob.train.faults import TrainError
from trainjob.train.model import shard
from trainjob.train.model.build import build


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models")
    ranks.prepare(path)
    tools.folder(path / "broken")
    (path / "broken" / "model.safetensors").write_bytes(b"not a safetensors file")
    return path


@pytest.fixture(scope="module")
def two(root: Path) -> list[dict[str, Any]]:
    return ranks.run(root)


@pytest.fixture(scope="module")
def alone(root: Path) -> Any:
    @functools.cache
    def run(name: str, **more: Any) -> dict[str, Any]:
        return tools.run(tools.config(root / name, **more))

    return run


def agree(one: dict[str, Any], other: dict[str, Any], tolerance: float) -> None:
    assert one["losses"] == pytest.approx(other["losses"], rel=tolerance)
    assert one["norms"] == pytest.approx(other["norms"], rel=20 * tolerance)
    assert one["weights"].keys() == other["weights"].keys()
    # AdamW divides by the gradient's size: where that is next to nothing, rounding decides on the direction.
    for name, weight in one["weights"].items():
        far = (weight - other["weights"][name]).abs() > 200 * tolerance
        assert far.float().mean() < 0.02, name


@pytest.mark.parametrize(
    ("name", "model", "more"),
    [
        ("fsdp", "llama", {}),
        ("ddp", "llama", {}),
        ("fsdp kept", "llama", {}),
        ("fsdp offload", "llama", {}),
        ("fsdp recompute", "llama", {}),
        ("fsdp tied", "tied", {}),
        ("ddp tied", "tied", {}),
        ("fsdp odd", "odd", {}),
        ("fsdp lora", "llama", {"lora_rank": 3}),
        ("ddp lora", "llama", {"lora_rank": 3}),
        ("fsdp read", "weights", {"init": "pretrained"}),
        ("fsdp sent", "merged", {"init": "pretrained"}),
        ("ddp sent", "merged", {"init": "pretrained"}),
    ],
)
def test_two_ranks_learn_what_one_learns(
    name: str, model: str, more: dict[str, Any], two: list[dict[str, Any]], alone: Any
) -> None:
    wanted = alone(model, **more)
    assert wanted["losses"][-1] < wanted["losses"][0]
    for found in two:
        agree(found[name], wanted, 1e-5)
        assert found[name]["mode"] == name.split()[0]
        assert found[name]["facts"] == wanted["facts"]


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("fsdp bf16", {}),
        ("ddp bf16", {}),
        ("ddp recompute bf16", {}),
        ("fsdp lora bf16", {"lora_rank": 3}),
    ],
)
def test_bf16_is_the_same_in_every_mode(name: str, more: dict[str, Any], two: list[dict[str, Any]], alone: Any) -> None:
    half, full = alone("llama", precision="bf16", **more), alone("llama", **more)
    assert half["losses"] == pytest.approx(full["losses"], rel=1e-2)
    assert half["losses"] != pytest.approx(full["losses"], rel=1e-6)
    for found in two:
        assert found[name]["losses"] == pytest.approx(half["losses"], rel=1e-3)
        assert found[name]["norms"] == pytest.approx(half["norms"], rel=2e-2)
        assert all(weight.dtype is torch.float32 for weight in found[name]["weights"].values())


def test_ranks_agree_bit_for_bit(two: list[dict[str, Any]]) -> None:
    for name in ranks.scenarios(Path()):
        one, other = (found[name] for found in two)
        assert one["norms"] == other["norms"], name
        assert one["losses"] == other["losses"], name
        for key, weight in one["weights"].items():
            assert torch.equal(weight, other["weights"][key]), (name, key)


def test_4_bit_weights_on_two_ranks(two: list[dict[str, Any]], alone: Any) -> None:
    agree(two[0]["ddp nf4"], alone("weights", init="pretrained", lora_rank=3, quantize="nf4"), 1e-5)


def test_weights_that_are_converted_are_sent_and_it_is_said(two: list[dict[str, Any]]) -> None:
    assert "sent to the others" in two[1]["fsdp sent"]["notes"][0]
    assert not two[1]["fsdp read"]["notes"]


def test_broken_weights_end_all_ranks_with_a_reason(two: list[dict[str, Any]]) -> None:
    for found in two:
        assert found["broken"].startswith("TrainError")
        assert "are broken" in found["broken"]


def test_recomputation_changes_nothing_bit_for_bit(alone: Any) -> None:
    plain, again = alone("llama"), alone("llama", activation_checkpointing=True)
    assert again["losses"] == plain["losses"]
    assert again["norms"] == plain["norms"]


def test_recomputation_falls_the_same_dropout(alone: Any) -> None:
    torch.manual_seed(5)
    plain = alone("llama", lora_rank=3, dropout=0.5)
    torch.manual_seed(5)
    again = alone("llama", lora_rank=3, dropout=0.5, activation_checkpointing=True)
    assert again["losses"] == plain["losses"] != alone("llama", lora_rank=3)["losses"]


def test_only_layers_are_recomputed_and_all_of_them(tmp_path: Path) -> None:
    path = tools.folder(tmp_path)
    calls = []
    for recompute in (False, True):
        model = build(tools.config(path, activation_checkpointing=recompute), device=tools.CPU)
        count = [0]
        for layer in model.model.model.layers:
            layer.mlp.register_forward_pre_hook(lambda *_, c=count: c.__setitem__(0, c[0] + 1))
        model.backward(tools.batch([5]), 4, True)
        calls.append(count[0])
    assert calls == [2, 4]


# dynamo looks at `.grad` of every tensor, and hides the warning from its users, not from pytest.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_compiled_layers_learn_the_same(precision: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []

    def compile_(forward: Any) -> Any:
        compiled.append(forward)
        return torch_compile(forward, backend="aot_eager")  # inductor would want a compiler

    torch_compile = torch.compile
    monkeypatch.setattr(torch, "compile", compile_)
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    torch._dynamo.reset()
    monkeypatch.setattr(tools, "ROWS", ([9, 5, 20],))  # on CPUs each layout of documents is compiled anew
    plain = tools.run(tools.config(root / "llama", precision=precision), steps=2)
    found = tools.run(tools.config(root / "llama", precision=precision, compile=True), steps=2)
    assert len(compiled) == 2
    assert found["losses"] == pytest.approx(plain["losses"], rel=1e-5 if precision == "fp32" else 1e-3)


def test_compilation_without_a_compiler_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _name: None)
    with pytest.raises(TrainError, match="no C or C\\+\\+ compiler"):
        tools.run(tools.config(tools.folder(tmp_path), compile=True))


@pytest.mark.parametrize(
    ("mode", "world", "offload", "wanted"),
    [("auto", 1, False, "none"), ("auto", 2, False, "fsdp"), ("auto", 1, True, "fsdp"), ("ddp", 2, False, "ddp")],
)
def test_modes(mode: str, world: int, offload: bool, wanted: str) -> None:
    assert shard.mode_of(tools.config(Path(), mode=mode, cpu_offload=offload), world) == wanted


@pytest.mark.parametrize(("mode", "world", "offload"), [("none", 2, False), ("ddp", 2, True), ("none", 1, True)])
def test_modes_that_cannot_be(mode: str, world: int, offload: bool) -> None:
    with pytest.raises(TrainError, match=r"parallel\.") as raised:
        shard.mode_of(tools.config(Path(), mode=mode, cpu_offload=offload), world)
    assert raised.value.fix
