import kfp.dsl as dsl
from kfp.components import create_component_from_func, load_component_from_file

POD = {"spec": {"containers": [{"name": "pytorch", "image": "registry.example.com/train:1", "command": ["python", "t.py"]}]}}
MANIFEST = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "PyTorchJob",
    "metadata": {"name": "resource-op"},
    "spec": {"pytorchReplicaSpecs": {"Master": {"template": POD}, "Worker": {"replicas": 2, "template": POD}}},
}

launcher = load_component_from_file("launcher.yaml")


def delete(name: str):
    from kubernetes import client, config

    config.load_incluster_config()
    client.CustomObjectsApi().delete_namespaced_custom_object(
        "kubeflow.org", "v1", "team-a", "pytorchjobs", name  # the job
    )


delete_op = create_component_from_func(delete)


@dsl.pipeline(name="v1")
def pipeline():
    train = dsl.ResourceOp(
        name="train",
        k8s_resource=MANIFEST,
        success_condition="status.replicaStatuses.Master.succeeded == 1",
    )
    launcher().after(train)
    delete_op("resource-op")
