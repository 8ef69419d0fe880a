"""Makes llama-8b-full-fsdp.yaml: every weight, four GPUs, one node. Why four stands at the top of that file."""

import sys

from trainjob.builder import train_job
from trainjob.emit import TrainJob
from trainjob.targets import DEFAULT, Target, target


def job(target: Target = DEFAULT) -> TrainJob:
    """The job for the Trainer version that will read it."""
    return train_job(
        name="llama-8b-full-fsdp",
        runtime="torch-fsdp-4gpu",
        image="registry.example.com/team/tune:1.0",
        command=["torchrun", "/workspace/tune.py"],
        args=[
            "--model=meta-llama/Llama-3.1-8B",
            "--sharding=full",
            "--sequence-length=8192",
            "--micro-batch=1",
            "--accumulation=1",
            "--activation-checkpointing",
            "--output=/checkpoints/llama-8b-full-fsdp",
        ],
        env={"HF_TOKEN": {"secretKeyRef": {"name": "hf-token", "key": "token"}}},
        queue="team-a",
        cache="model-cache",
        checkpoints="tune-checkpoints",
        target=target,
    )


if __name__ == "__main__":
    print(job(*map(target, sys.argv[1:])).to_yaml(), end="")
