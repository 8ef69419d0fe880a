"""What a run does not use is not imported, and is there all the same when something wants it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.train import tiny
from tests.train.trainer import SETTINGS, environ

LEAN = "from trainjob.train.model import lean; lean.imports(accelerate=False, compiled=False)\n"


def python(code: str) -> str:
    """What a fresh interpreter prints; import order is the matter here."""
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ(), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_plain_run_imports_neither_compiler_nor_accelerate(tmp_path: Path) -> None:
    base = tiny.write(tmp_path)
    flags = {**SETTINGS, "train.steps": "2", "model.path": base / "model", "data.train": base / "docs.jsonl"}
    words = [word for key, value in flags.items() for word in (f"--{key}", str(value))]
    said = python(
        "import sys\n"
        "from trainjob.train.__main__ import main\n"
        f"assert main({[*words, '--checkpoint.url', str(tmp_path / 'out')]!r}) == 0\n"
        "print([m for m in sys.modules if m.startswith(('torch._dynamo.', 'accelerate'))])\n"
    )
    assert said.splitlines()[-1] == "['torch._dynamo._trace_wrapped_higher_order_op']", "the stand-in alone"


@pytest.mark.parametrize(
    "use",
    [
        "print(torch.compile(lambda x: x + 1, backend='eager')(torch.ones(1)).item())",
        "import torch._dynamo.utils; print(float(torch._dynamo.utils.counters is not None) + 1)",
        "from torch._dynamo import config; print(2.0 if config.cache_size_limit else 0)",
        "torch._dynamo.reset(); print(2.0)",
        # Attention masks of transformers, which a run of ours never makes.
        "from transformers import LlamaConfig, LlamaForCausalLM as M; c = LlamaConfig(vocab_size=9, hidden_size=8,"
        " intermediate_size=8, num_hidden_layers=1, num_attention_heads=2, attn_implementation='flex_attention');"
        "c._attn_implementation = 'sdpa'; i = torch.ones(2, 3, dtype=torch.long);"
        "m = torch.tensor([[1, 1, 0], [1, 1, 1]]);"
        "print(2.0 if M(c)(input_ids=i, attention_mask=m).logits.shape == (2, 3, 9) else 0)",
        "import accelerate; from peft import LoraConfig; print(2.0 if LoraConfig(r=2).r == 2 else 0)",
    ],
)
def test_who_wants_them_gets_them(use: str) -> None:
    assert python(f"{LEAN}import torch\n{use}") == "2.0\n"


def test_with_torch_compile_nothing_stands_in() -> None:
    said = python(
        "import sys\nfrom trainjob.train.model import lean; lean.imports(accelerate=False, compiled=True)\n"
        "print('torch._dynamo' in sys.modules)"
    )
    assert said == "False\n"
