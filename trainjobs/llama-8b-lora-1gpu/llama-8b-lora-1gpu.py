"""Makes llama-8b-lora-1gpu.yaml: LoRA on one GPU. What it is for stands at the top of that file."""

import sys

from trainjob.builder import train_job
from trainjob.emit import TrainJob
from trainjob.targets import DEFAULT, Target, target


def job(target: Target = DEFAULT) -> TrainJob:
    """The job for the Trainer version that will read it."""
    return train_job(
        name="llama-8b-lora-1gpu",
        runtime="torch-lora-1gpu",
        image="registry.example.com/team/tune:1.0",
        command=["torchrun", "/workspace/tune.py"],
        args=[
            "--model=meta-llama/Llama-3.1-8B",
            "--lora-rank=16",
            "--sequence-length=4096",
            "--micro-batch=2",
            "--accumulation=8",
            "--activation-checkpointing",
            "--output=/checkpoints/llama-8b-lora-1gpu",
        ],
        env={"HF_TOKEN": {"secretKeyRef": {"name": "hf-token", "key": "token"}}},
        queue="team-a",
        cache="model-cache",
        checkpoints="tune-checkpoints",
        target=target,
    )


if __name__ == "__main__":
    print(job(*map(target, sys.argv[1:])).to_yaml(), end="")
