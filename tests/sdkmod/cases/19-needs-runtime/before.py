"""Objects that cannot be migrated in their place."""

from kubernetes import client as k8s
from kubeflow.training import KubeflowOrgV1PyTorchJob, KubeflowOrgV1PyTorchJobSpec, KubeflowOrgV1ReplicaSpec, TrainingClient

# A service account token and an init container: only a runtime can hold that.
template = k8s.V1PodTemplateSpec(
    spec=k8s.V1PodSpec(
        init_containers=[k8s.V1Container(name="data", image="registry.example.com/data:1", command=["fetch"])],
        containers=[k8s.V1Container(name="pytorch", image="registry.example.com/train:1", command=["torchrun", "t.py"])],
    )
)
job = KubeflowOrgV1PyTorchJob(
    api_version="kubeflow.org/v1",
    kind="PyTorchJob",
    metadata=k8s.V1ObjectMeta(name="fetches"),
    spec=KubeflowOrgV1PyTorchJobSpec(
        pytorch_replica_specs={"Master": KubeflowOrgV1ReplicaSpec(replicas=1, template=template)}
    ),
)
job.metadata.labels = {"team": "nlp"}


def submit(client: TrainingClient, job, replicas: int):
    client.create_job(job)
    client.create_job(
        KubeflowOrgV1PyTorchJob(
            metadata=k8s.V1ObjectMeta(name="sized"),
            spec=KubeflowOrgV1PyTorchJobSpec(
                pytorch_replica_specs={"Master": KubeflowOrgV1ReplicaSpec(replicas=replicas, template=template)}
            ),
        )
    )


whole = {
    "kind": "PyTorchJob",
    "metadata": {"name": "whole"},
    "spec": {"pytorchReplicaSpecs": {"Master": {"replicas": 1, "template": template}}},
}
submit(TrainingClient(), job, 1)
TrainingClient().create_job(whole)
TrainingClient().create_job(job)
