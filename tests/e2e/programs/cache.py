"""`fill`: put a small model where the hub's client keeps downloads; `use`: load it by its name, offline."""

import os
import sys
from pathlib import Path

import torch
from huggingface_hub.constants import HF_HUB_CACHE
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

NAME, REVISION = "team/tiny", "0" * 40
folder = Path(HF_HUB_CACHE) / f"models--{NAME.replace('/', '--')}"

if sys.argv[1] == "fill":
    torch.manual_seed(0)
    size = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
    config = LlamaConfig(vocab_size=256, num_attention_heads=4, num_key_value_heads=2, **size)
    LlamaForCausalLM(config).save_pretrained(folder / "snapshots" / REVISION)
    (folder / "refs").mkdir(exist_ok=True)
    (folder / "refs" / "main").write_text(REVISION)
model = AutoModelForCausalLM.from_pretrained(NAME)
print("weights", sum(p.double().sum().item() for p in model.parameters()).hex(), flush=True)
if sys.argv[1] == "use":
    for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "XDG_CACHE_HOME"):
        Path(os.environ[name]).mkdir(parents=True, exist_ok=True)
        (Path(os.environ[name]) / "probe").write_text("writable")
    try:
        (folder / "probe").write_text("")
        print("cache can be written", flush=True)
    except OSError as error:
        print(f"cache cannot be written: {error.strerror}", flush=True)
