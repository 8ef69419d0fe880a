"""Objects that cannot be migrated in their place."""

from kubernetes import client as k8s
# TODO(trainjob): TJ716 KubeflowOrgV1PyTorchJob, KubeflowOrgV1PyTorchJobSpec,
#   KubeflowOrgV1ReplicaSpec of the v1 SDK are still used; kubeflow 0.5 has nothing for it; migrate
#   the places that use it; until then install kubeflow-training beside it
from kubeflow.training import KubeflowOrgV1PyTorchJob, KubeflowOrgV1PyTorchJobSpec, KubeflowOrgV1ReplicaSpec
from kubeflow.trainer import TrainerClient

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


def submit(client: TrainerClient, job, replicas: int):
    # TODO(trainjob): TJ709 create_job gets a PyTorchJob that is not migrated in its place: job is a
    #   parameter, or is assigned more than once; write the job as YAML, run `trainjob migrate`, and
    #   create the TrainJob with client.backend.custom_api.create_namespaced_custom_object
    client.create_job(job)
    # TODO(trainjob): TJ709 create_job gets a PyTorchJob that is not migrated in its place: TJ902
    #   expected an integer, found "replicas" (text); write the job as YAML, run `trainjob migrate`,
    #   and create the TrainJob with client.backend.custom_api.create_namespaced_custom_object
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
submit(TrainerClient(), job, 1)
# TODO(trainjob): TJ709 create_job gets a PyTorchJob that is not migrated in its place: it needs a
#   TrainingRuntime of its own; write the job as YAML, run `trainjob migrate`, and create the
#   TrainJob with client.backend.custom_api.create_namespaced_custom_object
TrainerClient().create_job(whole)
# TODO(trainjob): TJ709 create_job gets a PyTorchJob that is not migrated in its place: job is
#   changed after it was made; write the job as YAML, run `trainjob migrate`, and create the
#   TrainJob with client.backend.custom_api.create_namespaced_custom_object
TrainerClient().create_job(job)
