"""Fashion MNIST on two GPU nodes, as most scripts of the v1 SDK look."""

from kubeflow.trainer import CustomTrainer, TrainerClient
from kubeflow.trainer.options import Name


def train_pytorch_model(parameters):
    import os

    import torch
    import torch.distributed as dist

    dist.init_process_group(backend="nccl" if torch.cuda.is_available() else "gloo")
    print(f"rank {dist.get_rank()} of {dist.get_world_size()}, lr {parameters['lr']}")
    dist.destroy_process_group()


# Start the job.
client = TrainerClient()

client.train(
    runtime="torch-distributed",
    trainer=CustomTrainer(
        func=train_pytorch_model,
        func_args={
            "parameters": {"lr": 0.01, "epochs": 3},  # handed to the function
        },
        packages_to_install=["torchvision==0.17.2"],
        num_nodes=2,  # two pods
        resources_per_node={"gpu": 1, "cpu": 8, "memory": "32Gi"},
    ),
    options=[Name(name="fashion-mnist")],
)

client.wait_for_job_status(name="fashion-mnist", timeout=1800)

# The log of the master, as it comes.
for line in client.get_job_logs(name="fashion-mnist", step="node-0", follow=True):
    print(line)

client.delete_job(name="fashion-mnist")
