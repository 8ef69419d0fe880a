import kfp.dsl as dsl
from kfp.components import create_component_from_func, load_component_from_file

POD = {"spec": {"containers": [{"name": "pytorch", "image": "registry.example.com/train:1", "command": ["python", "t.py"]}]}}
MANIFEST = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "PyTorchJob",
    "metadata": {"name": "resource-op"},
    "spec": {"pytorchReplicaSpecs": {"Master": {"template": POD}, "Worker": {"replicas": 2, "template": POD}}},
}

# TODO(trainjob): TJ751 this component launches a PyTorchJob through the v1 API; use a Python step
#   that creates the TrainJob with TrainerClient (package kubeflow>=0.5,<0.6) and waits for it with
#   wait_for_job_status; give the job a name of its own for each run, and delete it on exit: a
#   retried step meets its old job
launcher = load_component_from_file("launcher.yaml")


def delete(name: str):
    from kubernetes import client, config

    config.load_incluster_config()
    client.CustomObjectsApi().delete_namespaced_custom_object(
        "trainer.kubeflow.org", "v1alpha1", "team-a", "trainjobs", name  # the job
    )


delete_op = create_component_from_func(delete)


@dsl.pipeline(name="v1")
def pipeline():
    # TODO(trainjob): TJ750 this ResourceOp creates a PyTorchJob (its object becomes a TrainJob of 3
    #   nodes on the runtime torch-v1-compat-multinode); Kubeflow Pipelines 2 has no ResourceOp and
    #   no ContainerOp; use a Python step that creates the TrainJob with TrainerClient (package
    #   kubeflow>=0.5,<0.6) and waits for it with wait_for_job_status; give the job a name of its
    #   own for each run, and delete it on exit: a retried step meets its old job
    train = dsl.ResourceOp(
        name="train",
        k8s_resource=MANIFEST,
        success_condition="status.replicaStatuses.Master.succeeded == 1",
    )
    launcher().after(train)
    delete_op("resource-op")
