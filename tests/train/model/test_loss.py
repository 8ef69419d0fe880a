"""The loss is transformers' cross entropy, in chunks; empty batches take part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy

from tests.train.model import tools
from trainjob.train.data.batch import IGNORE, Batch
from trainjob.train.model import loss
from trainjob.train.model.build import build


def plain(model: torch.nn.Module, batch: Batch) -> torch.Tensor:
    """Each document alone through the model of transformers."""
    total = torch.zeros(())
    sizes = batch.starts.diff().tolist()
    for ids, labels in zip(batch.input_ids.split(sizes), batch.labels.split(sizes), strict=True):
        logits = model(input_ids=ids[None], use_cache=False).logits[0]
        total = total + cross_entropy(logits.float(), labels, ignore_index=IGNORE, reduction="sum")
    return total


@pytest.mark.parametrize("chunk", [1 << 22, 96 * 7, 1], ids=["whole", "seven tokens", "one token"])
@pytest.mark.parametrize(
    ("architecture", "tied"), [("Llama", False), ("Llama", True), ("Granite", True), ("Cohere", True)]
)
def test_loss_and_gradients_are_those_of_transformers(
    architecture: str, tied: bool, chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scaling = {"Granite": {"logits_scaling": 4.0, "embedding_multiplier": 3.0}, "Cohere": {"logit_scale": 0.25}}
    theirs = tools.pretrained(tmp_path, architecture, tie_word_embeddings=tied, **scaling.get(architecture, {}))
    monkeypatch.setattr(loss, "_CHUNK_CPU", chunk)
    monkeypatch.setattr(loss, "_LEAST", 1)
    built = build(tools.config(tmp_path, init="pretrained"), device=tools.CPU)
    batch = tools.batch([11, 4, 1, 15], learn=0.6)
    ours = built.loss_sum(batch)
    wanted = plain(theirs, batch)
    torch.testing.assert_close(ours, wanted, rtol=1e-5, atol=1e-5)
    (ours * 0.5).backward()
    (wanted * 0.5).backward()
    for (name, one), (_, other) in zip(built.model.named_parameters(), theirs.named_parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-4, atol=1e-5, msg=lambda m, n=name: f"{n}: {m}")


def test_logits_of_all_tokens_never_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss, "_CHUNK_CPU", 96 * 8)
    monkeypatch.setattr(loss, "_LEAST", 1)
    built = build(tools.config(tools.folder(tmp_path)), device=tools.CPU)
    seen: list[int] = []
    built.model.lm_head.register_forward_hook(lambda _m, _i, out: seen.append(out.shape[-2]))
    built.loss_sum(tools.batch([40, 24])).backward()
    assert max(seen) <= 8
    assert sum(seen) == 62


@pytest.mark.parametrize("batch", [tools.empty(), tools.batch([4, 3], learn=0.0)], ids=["no tokens", "no targets"])
def test_nothing_to_learn_gives_zero_gradients_everywhere(batch: Batch, tmp_path: Path) -> None:
    built = build(tools.config(tools.folder(tmp_path)), device=tools.CPU)
    total = built.backward(batch, 7, True)
    assert total.item() == 0.0
    for name, parameter in built.model.named_parameters():
        assert parameter.grad is not None, name
        assert not parameter.grad.any(), name


def test_without_gradients_it_is_the_same_number(tmp_path: Path) -> None:
    built = build(tools.config(tools.folder(tmp_path)), device=tools.CPU)
    batch = tools.batch([9, 9])
    with torch.no_grad():
        quiet = built.loss_sum(batch)
    assert quiet.item() == built.loss_sum(batch).item()
    assert not quiet.requires_grad


def test_other_calls_of_the_model_are_its_own(tmp_path: Path) -> None:
    built = build(tools.config(tools.folder(tmp_path)), device=tools.CPU)
    built.model.set_attn_implementation("eager")
    assert built.model(input_ids=torch.tensor([[1, 2, 3]])).logits.shape == (1, 3, tools.VOCABULARY)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_label_of_probability_0_has_a_finite_loss(dtype: torch.dtype) -> None:
    logits = torch.zeros(2, 5, dtype=dtype)
    logits[0, 3] = 200.0
    labels = torch.tensor([1, 4])
    wanted = logits.double().requires_grad_()
    exact = cross_entropy(wanted, labels, reduction="sum")
    exact.backward()
    ours, grad = loss._cross_entropy(logits, labels, True)
    assert ours.item() == pytest.approx(exact.item())
    assert ours.item() == pytest.approx(loss._cross_entropy(wanted.detach().to(dtype), labels, False)[0].item())
    assert grad is not None
    assert grad.dtype is dtype
    torch.testing.assert_close(grad.double(), wanted.grad, rtol=0, atol=1e-7 if dtype is torch.float32 else 2e-3)


@pytest.mark.parametrize("last", [torch.tanh, lambda x: torch.tanh(x)[None].squeeze(0), lambda x: torch.tanh(x) * 2.0])
def test_logits_that_their_own_backward_needs_are_not_overwritten(last: Any) -> None:
    hidden, labels = torch.randn(6, 9, requires_grad=True), torch.arange(6)
    wanted = hidden.detach().clone().requires_grad_()
    cross_entropy(last(wanted), labels, reduction="sum").backward()
    whole = (torch.arange(6),)
    ours = loss._SummedCrossEntropy.apply(last, whole, labels, True, hidden)
    ours.backward()
    torch.testing.assert_close(hidden.grad, wanted.grad)
