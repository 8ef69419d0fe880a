"""Adapters on the layers that were asked for, alone trainable; 4-bit weights under them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.train.model import tools
from trainjob.train.faults import Code, TrainError
from trainjob.train.model.build import build

LINEAR = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def trainable(model: torch.nn.Module) -> set[str]:
    return {name for name, p in model.named_parameters() if p.requires_grad}


def test_all_linear_layers_but_not_the_head(tmp_path: Path) -> None:
    built = build(tools.config(tools.folder(tmp_path), lora_rank=3), device=tools.CPU)
    names = trainable(built.model)
    assert len(names) == 2 * len(LINEAR) * 2
    assert all("lora_" in name for name in names)
    assert {name.split(".lora_")[0].rpartition(".")[2] for name in names} == set(LINEAR)
    assert {id(p) for g in built.optimizer.param_groups for p in g["params"]} == {
        id(p) for p in built.model.parameters() if p.requires_grad
    }


def test_named_layers(tmp_path: Path) -> None:
    made = tools.config(tools.folder(tmp_path), lora_rank=3, targets=("v_proj", "layers.0.mlp.up_proj"))
    names = {name.split(".lora_")[0].partition("layers.")[2] for name in trainable(build(made, device=tools.CPU).model)}
    assert names == {"0.self_attn.v_proj", "1.self_attn.v_proj", "0.mlp.up_proj"}


def test_a_layer_that_is_not_there(tmp_path: Path) -> None:
    made = tools.config(tools.folder(tmp_path), lora_rank=3, targets=("v_proj", "query_key_value"))
    with pytest.raises(TrainError, match="no linear layer query_key_value") as raised:
        build(made, device=tools.CPU)
    assert raised.value.code is Code.CONFIG
    assert all(name in raised.value.fix for name in LINEAR)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_new_adapter_changes_nothing(precision: str, tmp_path: Path) -> None:
    tools.pretrained(tmp_path)
    batch = tools.batch([9, 4, 20])
    plain, adapted = (
        build(tools.config(tmp_path, init="pretrained", precision=precision, lora_rank=rank), device=tools.CPU)
        for rank in (0, 3)
    )
    assert adapted.loss_sum(batch).item() == plain.loss_sum(batch).item()


def test_frozen_weights_take_two_bytes_and_adapters_four(tmp_path: Path) -> None:
    built = build(tools.config(tools.folder(tmp_path), precision="bf16", lora_rank=3), device=tools.CPU)
    for name, parameter in built.model.named_parameters():
        assert parameter.dtype is (torch.float32 if "lora_" in name else torch.bfloat16), name


def test_adapters_learn_and_the_rest_stays(tmp_path: Path) -> None:
    tools.pretrained(tmp_path)
    built = build(tools.config(tmp_path, init="pretrained", lora_rank=3), device=tools.CPU)
    before = {name: p.detach().clone() for name, p in built.model.named_parameters()}
    losses = tools.train(built, 0, 1)["losses"]
    assert losses[-1] < losses[0]
    for name, parameter in built.model.named_parameters():
        assert torch.equal(parameter, before[name]) != ("lora_" in name), name


def test_first_values_depend_on_the_seed_alone(tmp_path: Path) -> None:
    path = tools.folder(tmp_path)
    one, same = (tools.whole(build(tools.config(path, lora_rank=3), device=tools.CPU).model) for _ in range(2))
    other = tools.whole(build(tools.config(path, lora_rank=3, seed=8), device=tools.CPU).model)
    for name, weight in one.items():
        assert torch.equal(weight, same[name])
        assert torch.equal(weight, other[name]) == ("lora_B" in name)
        assert weight.any() == ("lora_A" in name)


def test_4_bit_weights_are_those_of_bitsandbytes(tmp_path: Path) -> None:
    from bitsandbytes.functional import dequantize_4bit, quantize_4bit

    theirs = tools.pretrained(tmp_path)
    made = tools.config(tmp_path, init="pretrained", lora_rank=3, quantize="nf4", precision="bf16")
    built = build(made, device=tools.CPU)
    up = built.model.get_base_model().model.layers[1].mlp.up_proj.base_layer.weight
    assert up.dtype is torch.uint8
    assert up.numel() == 56 * 32 // 2
    assert not up.requires_grad
    wanted = quantize_4bit(
        theirs.model.layers[1].mlp.up_proj.weight.detach().bfloat16(), quant_type="nf4", compress_statistics=True
    )
    assert torch.equal(dequantize_4bit(up, up.quant_state), dequantize_4bit(*wanted))
    assert built.model.get_base_model().lm_head.weight.dtype is torch.bfloat16


@pytest.mark.parametrize("init", ["pretrained", "random"])
def test_adapters_learn_on_4_bit_weights(init: str, tmp_path: Path) -> None:
    tools.pretrained(tmp_path)
    found = tools.run(tools.config(tmp_path, init=init, lora_rank=3, quantize="nf4"))
    full = tools.run(tools.config(tmp_path, init=init, lora_rank=3))
    assert found["losses"][-1] < found["losses"][0]
    assert found["losses"] == pytest.approx(full["losses"], rel=0.1)
    assert found["losses"] != full["losses"]
    assert found["facts"] == full["facts"]


@pytest.mark.parametrize(
    ("more", "reason"), [({}, "only adapters"), ({"lora_rank": 2, "mode": "fsdp"}, "cannot be sharded")]
)
def test_4_bit_weights_that_cannot_be(more: dict[str, object], reason: str, tmp_path: Path) -> None:
    with pytest.raises(TrainError, match=reason) as raised:
        build(tools.config(tools.folder(tmp_path), quantize="nf4", **more), device=tools.CPU)
    assert raised.value.code is Code.CONFIG


def test_without_bitsandbytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(TrainError, match="bitsandbytes"):
        build(tools.config(tools.folder(tmp_path), quantize="nf4", lora_rank=2), device=tools.CPU)
