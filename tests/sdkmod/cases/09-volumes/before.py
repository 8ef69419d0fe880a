from kubeflow.training import TrainingClient
from kubernetes.client import (
    V1PersistentVolumeClaimVolumeSource,
    V1Volume,
    V1VolumeMount,
)

CLAIM = "datasets"
mounts = [V1VolumeMount(name="data", mount_path="/data", read_only=True)]


def train():
    import os

    print(os.listdir("/data"))


TrainingClient(namespace="vision").create_job(
    name="imagenet",
    base_image="pytorch/pytorch:2.13.0-cuda13.0-cudnn9-runtime",
    train_func=train,
    num_workers=2,
    resources_per_worker={"gpu": 8},
    volumes=[V1Volume(name="data", persistent_volume_claim=V1PersistentVolumeClaimVolumeSource(claim_name=CLAIM))],
    volume_mounts=mounts,
)
