from kubernetes import client as k8s
from kubeflow.trainer import (
    CustomTrainerContainer,
    KubernetesBackendConfig,
    TrainerClient,
)
from kubeflow.trainer.options import Annotations, Labels, Name

training = TrainerClient(backend_config=KubernetesBackendConfig(namespace="nlp", context="prod"))

training.train(
    runtime="torch-v1-compat-multinode",
    trainer=CustomTrainerContainer(
        image="registry.example.com/nlp/bert:2.1",
        num_nodes=4,
        resources_per_node={"nvidia.com/gpu": 1, "memory": "64Gi"},
        env={"NCCL_DEBUG": "INFO", "HF_HOME": "/cache"},
    ),
    options=[
        Name(name="bert"),
        Labels(labels={**{"team": "nlp"}, "kueue.x-k8s.io/queue-name": "nlp-queue"}),
        Annotations(annotations={"example.com/owner": "jane"}),
    ],
)
