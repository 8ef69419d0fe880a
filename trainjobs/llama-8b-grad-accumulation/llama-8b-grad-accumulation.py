"""Makes llama-8b-grad-accumulation.yaml: a large global batch on the GPUs there are."""

import sys

from trainjob.builder import train_job
from trainjob.emit import TrainJob
from trainjob.targets import DEFAULT, Target, target


def job(target: Target = DEFAULT) -> TrainJob:
    """The job for the Trainer version that will read it."""
    return train_job(
        name="llama-8b-grad-accumulation",
        runtime="torch-fsdp-4gpu",
        image="registry.example.com/team/tune:1.0",
        command=["torchrun", "/workspace/tune.py"],
        args=[
            "--model=meta-llama/Llama-3.1-8B",
            "--sharding=full",
            "--sequence-length=8192",
            "--micro-batch=2",
            "--accumulation=8",
            "--activation-checkpointing",
            "--chunked-loss",
            "--output=/checkpoints/llama-8b-grad-accumulation",
        ],
        env={"HF_TOKEN": {"secretKeyRef": {"name": "hf-token", "key": "token"}}},
        queue="team-a",
        cache="model-cache",
        checkpoints="tune-checkpoints",
        target=target,
    )


if __name__ == "__main__":
    print(job(*map(target, sys.argv[1:])).to_yaml(), end="")
