"""Fashion MNIST on two GPU nodes, as most scripts of the v1 SDK look."""

from kubeflow.training import TrainingClient


def train_pytorch_model(parameters):
    import os

    import torch
    import torch.distributed as dist

    dist.init_process_group(backend="nccl" if torch.cuda.is_available() else "gloo")
    print(f"rank {dist.get_rank()} of {dist.get_world_size()}, lr {parameters['lr']}")
    dist.destroy_process_group()


# Start the job.
client = TrainingClient()

client.create_job(
    name="fashion-mnist",
    train_func=train_pytorch_model,
    parameters={"lr": 0.01, "epochs": 3},  # handed to the function
    num_workers=2,  # two pods
    num_procs_per_worker="auto",
    resources_per_worker={"gpu": 1, "cpu": 8, "memory": "32Gi"},
    packages_to_install=["torchvision==0.17.2"],
)

client.wait_for_job_conditions(name="fashion-mnist", wait_timeout=1800)

# The log of the master, as it comes.
client.get_job_logs(name="fashion-mnist", follow=True)

client.delete_job(name="fashion-mnist")
