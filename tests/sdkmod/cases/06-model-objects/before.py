from kubernetes.client import V1Container, V1ObjectMeta, V1PodSpec, V1PodTemplateSpec, V1ResourceRequirements
from kubeflow.training import (
    KubeflowOrgV1PyTorchJob,
    KubeflowOrgV1PyTorchJobSpec,
    KubeflowOrgV1ReplicaSpec,
    KubeflowOrgV1RunPolicy,
    TrainingClient,
)
import os

name = "pytorch-dist-mnist-gloo"
namespace = "team-a"
IMAGE = os.environ.get("IMAGE", "registry.example.com/mnist:1.0")

# One container for both roles.
container = V1Container(
    name="pytorch",
    image=IMAGE,
    args=["--backend", "gloo"],
    resources=V1ResourceRequirements(limits={"nvidia.com/gpu": "1"}),
)

# The Master is a training pod, too.
master = KubeflowOrgV1ReplicaSpec(
    replicas=1,
    restart_policy="OnFailure",
    template=V1PodTemplateSpec(spec=V1PodSpec(containers=[container])),
)

worker = KubeflowOrgV1ReplicaSpec(
    replicas=2,
    restart_policy="OnFailure",
    template=V1PodTemplateSpec(spec=V1PodSpec(containers=[container])),
)

pytorchjob = KubeflowOrgV1PyTorchJob(
    api_version="kubeflow.org/v1",
    kind="PyTorchJob",
    metadata=V1ObjectMeta(name=name, namespace=namespace),
    spec=KubeflowOrgV1PyTorchJobSpec(
        run_policy=KubeflowOrgV1RunPolicy(clean_pod_policy="None"),
        pytorch_replica_specs={"Master": master, "Worker": worker},
    ),
)

training_client = TrainingClient()
training_client.create_job(pytorchjob, namespace=namespace)
print(training_client.get_job(name, namespace=namespace).metadata.name)
training_client.wait_for_job_conditions(name, namespace=namespace)
