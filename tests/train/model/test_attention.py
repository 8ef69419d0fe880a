"""Packed documents give what each gives alone; what cannot be packed is refused."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from tests.train.model import tools
from trainjob.train.faults import Code, TrainError
from trainjob.train.model import attention, load

H, G, D = 4, 2, 8


def tensors(total: int, heads: tuple[int, ...] = (H, G, G)) -> list[torch.Tensor]:
    torch.manual_seed(0)
    # As models have them: (1, N, heads, D) in memory, seen with heads first.
    return [torch.randn(1, total, n, D, dtype=torch.float64).transpose(1, 2).requires_grad_() for n in heads]


def reference(tensors_: Iterable[torch.Tensor], lengths: list[int], window: int | None, scale: float) -> torch.Tensor:
    """By the definition: softmax over what a token may see."""
    query, key, value = tensors_
    total = sum(lengths)
    document = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
    at = torch.arange(total)
    seen = (document[:, None] == document[None]) & (at[:, None] >= at[None])
    if window is not None:
        seen &= at[:, None] - at[None] < window
    key, value = (t.repeat_interleave(query.shape[1] // t.shape[1], 1) for t in (key, value))
    scores = (query @ key.transpose(2, 3) * scale).masked_fill(~seen, float("-inf"))
    return (scores.softmax(-1) @ value).transpose(1, 2)


def attend(tensors_: list[torch.Tensor], lengths: list[int], **more: Any) -> torch.Tensor:
    batch = tools.batch(lengths)
    out, weights = attention.attend(
        torch.nn.Identity(),
        tensors_[0],
        tensors_[1],
        tensors_[2],
        None,
        **attention.arguments(batch, tools.CPU),
        **more,
    )
    assert weights is None
    return out


@pytest.mark.parametrize("window", [None, 4, 1])
@pytest.mark.parametrize("lengths", [[7], [6, 6, 6], [5, 1, 9, 3]], ids=["one", "equal", "mixed"])
@pytest.mark.parametrize("heads", [(H, H, H), (H, G, G), (H, 1, 1)], ids=["mha", "gqa", "mqa"])
def test_each_document_is_alone_forward_and_backward(
    heads: tuple[int, ...], lengths: list[int], window: int | None
) -> None:
    ours, theirs = tensors(sum(lengths), heads), tensors(sum(lengths), heads)
    out = attend(ours, lengths, scaling=0.3, sliding_window=window)
    wanted = reference(theirs, lengths, window, 0.3)
    assert out.shape == (1, sum(lengths), heads[0], D)
    torch.testing.assert_close(out, wanted, rtol=1e-9, atol=1e-9)
    direction = torch.randn_like(wanted)
    for one, other in zip(
        torch.autograd.grad(out, ours, direction), torch.autograd.grad(wanted, theirs, direction), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("window", [None, 4])
def test_the_gpu_path_hands_the_kernel_what_it_documents(window: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = [5, 1, 9]
    query, key, value = tensors(sum(lengths))

    def varlen_attn(q: Any, k: Any, v: Any, cu_q: Any, cu_k: Any, max_q: int, max_k: int, **more: Any) -> torch.Tensor:
        assert q.shape == (15, H, D)
        assert k.shape == v.shape == (15, G, D)
        assert cu_q.tolist() == cu_k.tolist() == [0, 5, 6, 15]
        assert cu_q.dtype == torch.int32
        assert max_q == max_k == 9
        assert more["enable_gqa"]
        assert more["window_size"][1] == 0
        left = more["window_size"][0]
        tensors_ = (t.transpose(0, 1)[None] for t in (q, k, v))
        return reference(tensors_, lengths, None if left == -1 else left + 1, more["scale"])[0]

    monkeypatch.setitem(sys.modules, "torch.nn.attention.varlen", SimpleNamespace(varlen_attn=varlen_attn))
    monkeypatch.setattr(attention, "_varlen_fits", lambda *_: True)
    monkeypatch.setattr(attention, "_has_varlen", lambda *_: True)
    out = attend([query, key, value], lengths, scaling=0.3, sliding_window=window)
    torch.testing.assert_close(out, reference((query, key, value), lengths, window, 0.3), rtol=1e-9, atol=1e-9)


def test_the_kernel_of_torch_accepts_these_arguments() -> None:
    with FakeTensorMode():
        query, key = (torch.empty(1, n, 15, 64, dtype=torch.bfloat16, device="cuda") for n in (H, G))
        starts = torch.empty(4, dtype=torch.int32, device="cuda")
        out = attention._varlen(query, key, key, starts, 9, 0.3, 4)
        assert out.shape == (1, 15, H, 64)
        assert out.device.type == "cuda"


@pytest.mark.parametrize("architecture", ["Llama", "Granite", "Mistral", "Qwen2", "Qwen3"])
def test_a_packed_row_gives_the_logits_of_each_document(architecture: str, tmp_path: Path) -> None:
    more = {"sliding_window": 6} if architecture == "Mistral" else {}
    reference_model = tools.pretrained(tmp_path, architecture, **more)
    source = load.find(tools.config(tmp_path, init="pretrained"))
    source.config._attn_implementation = attention.register()
    packed = source.architecture.from_pretrained(tmp_path, config=source.config).train()
    lengths = [5, 1, 12]
    batch = tools.batch(lengths)
    out = packed(
        input_ids=batch.input_ids[None],
        position_ids=batch.positions[None],
        use_cache=False,
        **attention.arguments(batch, tools.CPU),
    ).logits[0]
    for document, logits in zip(batch.input_ids.split(lengths), out.split(lengths), strict=True):
        alone = reference_model(input_ids=document[None], use_cache=False).logits[0]
        torch.testing.assert_close(logits, alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("architecture", "more", "reason"),
    [
        ("Jamba", {}, "kind linear_attention"),
        (
            "GraniteMoeHybrid",
            {"num_hidden_layers": 2, "layer_types": ["mamba", "attention"]},
            "kind linear_attention",
        ),
        ("RecurrentGemma", {}, "kind|state from token to token"),
        ("Llama4", {}, "kind chunked_attention"),
        ("Bloom", {}, "cannot be exchanged"),
    ],
)
def test_models_in_which_documents_would_meet_are_refused(architecture: str, more: dict[str, Any], reason: str) -> None:
    import transformers

    described = getattr(transformers, f"{architecture}Config")(**more)
    described = described.get_text_config()
    with pytest.raises(TrainError, match=reason) as raised:
        attention.refuse_unsupported(getattr(transformers, f"{architecture}ForCausalLM"), described)
    assert raised.value.code is Code.CONFIG
    assert raised.value.fix


def test_supported_models_are_not_refused() -> None:
    import transformers

    for architecture in ("Llama", "Granite", "Mistral", "Qwen2", "Qwen3", "Mixtral", "Olmo2", "Phi3", "SmolLM3"):
        attention.refuse_unsupported(
            getattr(transformers, f"{architecture}ForCausalLM"), getattr(transformers, f"{architecture}Config")()
        )
    # A hybrid by its class, like Granite 4.0, of which this one has attention alone.
    attention.refuse_unsupported(
        transformers.GraniteMoeHybridForCausalLM,
        transformers.GraniteMoeHybridConfig(num_hidden_layers=2, layer_types=["attention"] * 2),
    )


@pytest.mark.parametrize("argument", ["softcap", "s_aux"])
def test_what_no_kernel_knows_is_refused(argument: str) -> None:
    with pytest.raises(TrainError, match=argument):
        attend(tensors(3), [3], scaling=1.0, **{argument: 30.0})


def test_a_model_that_loses_the_documents_is_refused() -> None:
    query, key, value = tensors(3)
    with pytest.raises(TrainError, match="does not pass on where documents begin"):
        attention.attend(torch.nn.Identity(), query, key, value, None, scaling=1.0)
