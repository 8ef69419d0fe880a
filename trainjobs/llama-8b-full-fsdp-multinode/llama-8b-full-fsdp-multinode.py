"""Makes llama-8b-full-fsdp-multinode.yaml: two nodes, gated by a reason. Read the top of that file first."""

import sys

from trainjob.builder import train_job
from trainjob.emit import TrainJob
from trainjob.targets import DEFAULT, Target, target


def job(target: Target = DEFAULT) -> TrainJob:
    """The job for the Trainer version that will read it."""
    return train_job(
        name="llama-8b-full-fsdp-multinode",
        runtime="torch-fsdp-multinode",
        nodes=2,
        allow_multi_node=(
            "10 billion tokens take 60 hours on one node of 8 H100 and are due in 36; "
            "NCCL measured 44 GB/s between the nodes"
        ),
        image="registry.example.com/team/tune:1.0",
        command=["torchrun", "/workspace/tune.py"],
        args=[
            "--model=meta-llama/Llama-3.1-8B",
            "--sharding=hybrid",
            "--sequence-length=8192",
            "--micro-batch=2",
            "--accumulation=2",
            "--activation-checkpointing",
            "--output=/checkpoints/llama-8b-full-fsdp-multinode",
        ],
        env={"HF_HUB_OFFLINE": "1"},
        queue="team-a",
        cache="model-cache-rwx:rwx",
        checkpoints="tune-checkpoints-rwx:rwx",
        target=target,
    )


if __name__ == "__main__":
    print(job(*map(target, sys.argv[1:])).to_yaml(), end="")
