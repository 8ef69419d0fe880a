from kubernetes import client as k8s
from kubeflow.training import TrainingClient

training = TrainingClient(namespace="nlp", context="prod")

training.create_job(
    name="bert",
    base_image="registry.example.com/nlp/bert:2.1",
    num_workers=4,
    resources_per_worker=k8s.V1ResourceRequirements(
        limits={"nvidia.com/gpu": 1, "memory": "64Gi"},
        requests={"nvidia.com/gpu": 1, "memory": "64Gi"},
    ),
    env_vars=[
        k8s.V1EnvVar(name="NCCL_DEBUG", value="INFO"),
        k8s.V1EnvVar(name="HF_HOME", value="/cache"),
    ],
    labels={"team": "nlp"},
    annotations={"example.com/owner": "jane"},
    queue_name="nlp-queue",
)
