"""Pipeline steps that create PyTorchJobs by manifest."""

import kfp
from kfp import dsl


@dsl.component(packages_to_install=["kubernetes"])
def launch(name: str, image: str, namespace: str = "team-a"):
    from kubernetes import client, config

    config.load_incluster_config()
    api = client.CustomObjectsApi()
    manifest = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {
            "runtimeRef": {
                "apiGroup": "trainer.kubeflow.org",
                "kind": "ClusterTrainingRuntime",
                "name": "torch-v1-compat-multinode",
            },
            "trainer": {
                "numNodes": 4,
                "image": image,
                "command": ["torchrun", "/workspace/train.py"],
                "env": [{"name": "PYTHONUNBUFFERED", "value": "1"}],
                "resourcesPerNode": {"limits": {"nvidia.com/gpu": "1"}},
            },
        },
    }
    api.create_namespaced_custom_object(
        group="trainer.kubeflow.org",
        version="v1alpha1",
        namespace=namespace,
        plural="trainjobs",
        body=manifest,
    )
    # TODO(trainjob): TJ750 the pipeline step launch reads a TrainJob now: its conditions are
    #   Suspended, Complete and Failed; there is no Running, Succeeded or replicaStatuses: see what
    #   is read from the result
    status = api.get_namespaced_custom_object("trainer.kubeflow.org", "v1alpha1", namespace, "trainjobs", name)["status"]
    print(status)
    api.delete_namespaced_custom_object("trainer.kubeflow.org", "v1alpha1", namespace, "trainjobs", name)


# TODO(trainjob): TJ751 this component launches a PyTorchJob through the v1 API; use a Python step
#   that creates the TrainJob with TrainerClient (package kubeflow>=0.5,<0.6) and waits for it with
#   wait_for_job_status; give the job a name of its own for each run, and delete it on exit: a
#   retried step meets its old job
launcher = kfp.components.load_component_from_url(
    "https://example.com/components/kubeflow/pytorch-launcher/component.yaml"
)


@dsl.container_component
def apply_manifest():
    # TODO(trainjob): TJ750 this ContainerSpec creates a PyTorchJob; use a Python step that creates
    #   the TrainJob with TrainerClient (package kubeflow>=0.5,<0.6) and waits for it with
    #   wait_for_job_status; give the job a name of its own for each run, and delete it on exit: a
    #   retried step meets its old job
    return dsl.ContainerSpec(
        image="registry.example.com/kubectl:1.30",
        command=["sh", "-c", "kubectl create -f /manifests/pytorchjob.yaml && kubectl wait pytorchjobs/fixed --for=condition=Succeeded"],
    )


@dsl.component
def by_text(name: str):
    import subprocess

    # TODO(trainjob): TJ750 the pipeline step by_text holds a PyTorchJob as text; it becomes a
    #   TrainJob of 1 node on the runtime torch-v1-compat; put the text into a file, run `trainjob
    #   migrate`, put the TrainJob back, and create it as trainjobs of trainer.kubeflow.org/v1alpha1
    job = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: from-text}
spec:
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      template:
        spec:
          containers:
          - {name: pytorch, image: registry.example.com/train:1.0, command: [python, train.py]}
"""
    subprocess.run(["kubectl", "create", "-f", "-"], input=job.encode(), check=True)


@dsl.pipeline(name="by-manifest")
def pipeline(image: str):
    launch(name="by-manifest", image=image)
    launcher(name="launched")
    apply_manifest()
    by_text(name="x")
