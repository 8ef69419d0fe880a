"""Numbers of weights and of operations, against transformers' and torch's own counts."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from tests.train.model import tools
from trainjob.train.model.build import build
from trainjob.train.model.facts import peak_flops, peak_of

TOKENS, LENGTH, WIDTH, LORA = 128, 64, 32, 3


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("rank", [0, LORA])
def test_operations_are_those_that_torch_counts(rank: int, tied: bool, tmp_path: Path) -> None:
    path = tools.folder(tmp_path, tie_word_embeddings=tied, num_key_value_heads=4)
    built = build(tools.config(path, lora_rank=rank), device=tools.CPU)
    batch = tools.batch([LENGTH, LENGTH])
    # Attention of torch's operations that its counter knows.
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        built.backward(batch, batch.targets, True)
    # Without a flash kernel, masked scores are computed too: twice the pairs.
    wanted = built.facts.flops(TOKENS, 2 * 2 * LENGTH**2)
    # The last tokens of documents have no target, so no logits.
    wanted -= 2 * (4 if rank else 6) * tools.VOCABULARY * WIDTH
    if rank:  # nothing is learnt below the first layer's projections, so they send no gradient there
        wanted -= 2 * TOKENS * 3 * (WIDTH * WIDTH + LORA * WIDTH)
    assert counter.get_total_flops() == wanted


def test_weights_are_counted_once(tmp_path: Path) -> None:
    theirs = tools.pretrained(tmp_path, tie_word_embeddings=True)
    whole = sum(p.numel() for p in theirs.parameters())
    plain = build(tools.config(tmp_path), device=tools.CPU).facts
    assert (plain.parameters, plain.trainable) == (whole, whole)
    for quantize in ("none", "nf4"):
        adapted = build(tools.config(tmp_path, lora_rank=2, quantize=quantize), device=tools.CPU).facts
        assert adapted.parameters == whole + adapted.trainable
        assert adapted.trainable == 2 * 2 * (2 * (32 + 32) + 2 * (32 + 16) + 3 * (32 + 56))


def test_experts_count_as_often_as_they_work(tmp_path: Path) -> None:
    facts = []
    for chosen in (1, 4):
        path = tools.folder(tmp_path / str(chosen), "Mixtral", num_local_experts=4, num_experts_per_tok=chosen)
        facts.append(build(tools.config(path), device=tools.CPU).facts)
    one, all_ = facts
    experts = 2 * 4 * 3 * 32 * 56
    assert one.parameters == all_.parameters
    assert all_.flops_per_token - one.flops_per_token == 6 * experts * 3 // 4


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("NVIDIA H100 80GB HBM3", 989e12),
        ("NVIDIA H100 PCIe", 756e12),
        ("NVIDIA H200", 989e12),
        ("NVIDIA A100-SXM4-40GB", 312e12),
        ("NVIDIA L40S", 362e12),
        ("NVIDIA L40", 181e12),
        ("NVIDIA L4", 121e12),
        ("NVIDIA A10G", 125e12),
        ("Tesla T4", 65e12),
        ("Tesla V100-SXM2-16GB", 125e12),
        ("AMD Instinct MI300X", 1307e12),
        ("NVIDIA GeForce GTX 1080", None),
    ],
)
def test_peaks(name: str, peak: float | None) -> None:
    assert peak_of(name) == peak


def test_a_cpu_has_no_peak() -> None:
    assert peak_flops(torch.device("cpu")) is None
