"""resume.py with the imports of a fine-tuning program: they are most of its start."""

import runpy

from peft import LoraConfig, get_peft_model  # noqa: F401
from transformers import AutoTokenizer, LlamaForCausalLM  # noqa: F401

runpy.run_path("/programs/resume.py", run_name="__main__")
