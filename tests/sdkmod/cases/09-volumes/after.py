from kubeflow.trainer import CustomTrainer, KubernetesBackendConfig, TrainerClient
from kubeflow.trainer.options import (
    ContainerPatch,
    JobSetSpecPatch,
    JobSetTemplatePatch,
    JobSpecPatch,
    JobTemplatePatch,
    Name,
    PodSpecPatch,
    PodTemplatePatch,
    ReplicatedJobPatch,
    RuntimePatch,
    TrainingRuntimeSpecPatch,
)
from kubernetes.client import (
    V1PersistentVolumeClaimVolumeSource,
    V1Volume,
    V1VolumeMount,
)

CLAIM = "datasets"


def train():
    import os

    print(os.listdir("/data"))


TrainerClient(backend_config=KubernetesBackendConfig(namespace="vision")).train(
    runtime="torch-distributed",
    trainer=CustomTrainer(
        func=train,
        image="pytorch/pytorch:2.13.0-cuda13.0-cudnn9-runtime",
        num_nodes=2,
        resources_per_node={"gpu": 8},
    ),
    options=[
        Name(name="imagenet"),
        RuntimePatch(
            training_runtime_spec=TrainingRuntimeSpecPatch(
                template=JobSetTemplatePatch(
                    spec=JobSetSpecPatch(
                        replicated_jobs=[
                            ReplicatedJobPatch(
                                name="node",
                                template=JobTemplatePatch(
                                    spec=JobSpecPatch(
                                        template=PodTemplatePatch(
                                            spec=PodSpecPatch(
                                                volumes=[
                                                    {
                                                        "name": "data",
                                                        "persistentVolumeClaim": {
                                                            "claimName": CLAIM,
                                                        },
                                                    },
                                                ],
                                                containers=[
                                                    ContainerPatch(
                                                        name="node",
                                                        volume_mounts=[
                                                            {
                                                                "name": "data",
                                                                "mountPath": "/data",
                                                                "readOnly": True,
                                                            },
                                                        ],
                                                    ),
                                                ],
                                            ),
                                        ),
                                    ),
                                ),
                            ),
                        ],
                    ),
                ),
            ),
        ),
    ],
)
