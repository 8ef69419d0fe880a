from kubernetes.client import V1Container, V1ObjectMeta, V1PodSpec, V1PodTemplateSpec, V1ResourceRequirements
from kubeflow.trainer import KubernetesBackendConfig, TrainerClient
import os

name = "pytorch-dist-mnist-gloo"
namespace = "team-a"
IMAGE = os.environ.get("IMAGE", "registry.example.com/mnist:1.0")

# One container for both roles.

# The Master is a training pod, too.


pytorchjob = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "TrainJob",
    "metadata": {"name": name, "namespace": namespace},
    "spec": {
        "runtimeRef": {
            "apiGroup": "trainer.kubeflow.org",
            "kind": "ClusterTrainingRuntime",
            "name": "torch-v1-compat-multinode",
        },
        "trainer": {
            "numNodes": 3,
            "image": IMAGE,
            "args": ["--backend", "gloo"],
            "env": [
                {"name": "MASTER_ADDR", "value": f"{name}-node-0-0.{name}"},
                {"name": "MASTER_PORT", "value": "29500"},
                {"name": "WORLD_SIZE", "value": "3"},
                {
                    "name": "RANK",
                    "valueFrom": {
                        "fieldRef": {
                            "fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']",
                        },
                    },
                },
                {"name": "PYTHONUNBUFFERED", "value": "1"},
            ],
            "resourcesPerNode": {"limits": {"nvidia.com/gpu": "1"}},
        },
    },
}

training_client = TrainerClient(backend_config=KubernetesBackendConfig(namespace=namespace))
training_client.backend.custom_api.create_namespaced_custom_object(
    group="trainer.kubeflow.org",
    version="v1alpha1",
    namespace=namespace,
    plural="trainjobs",
    body=pytorchjob,
)
print(training_client.get_job(name=name).name)
training_client.wait_for_job_status(name=name)
