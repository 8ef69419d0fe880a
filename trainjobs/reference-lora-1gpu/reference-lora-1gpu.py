"""Makes reference-lora-1gpu.yaml: LoRA with the reference trainer. What it is for stands at the top of that file."""

import sys

from trainjob.builder import train_job
from trainjob.emit import TrainJob
from trainjob.targets import DEFAULT, Target, target


def job(target: Target = DEFAULT) -> TrainJob:
    """The job for the Trainer version that will read it."""
    return train_job(
        name="reference-lora-1gpu",
        runtime="torch-lora-1gpu",
        image="registry.example.com/team/trainer:1.0",
        command=["trainjob", "launch", "-m", "trainjob.train"],
        args=[
            "--model.path=ibm-granite/granite-3.1-8b-base",
            "--data.train=/data/*.jsonl",
            "--data.seq-length=4096",
            "--lora.rank=16",
            "--optim.lr=1e-4",
            "--train.epochs=1",
            "--train.global-batch=16",
            "--train.micro-batch=2",
            "--parallel.activation-checkpointing=true",
        ],
        env={"HF_TOKEN": {"secretKeyRef": {"name": "hf-token", "key": "token"}}},
        queue="team-a",
        cache="model-cache",
        checkpoints="tune-checkpoints/reference-lora-1gpu",
        claims={"/data": "tune-data"},
        target=target,
    )


if __name__ == "__main__":
    print(job(*map(target, sys.argv[1:])).to_yaml(), end="")
