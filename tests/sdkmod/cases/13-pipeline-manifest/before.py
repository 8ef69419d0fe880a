"""Pipeline steps that create PyTorchJobs by manifest."""

import kfp
from kfp import dsl


@dsl.component(packages_to_install=["kubernetes"])
def launch(name: str, image: str, namespace: str = "team-a"):
    from kubernetes import client, config

    config.load_incluster_config()
    api = client.CustomObjectsApi()
    template = {
        "spec": {
            "containers": [
                {
                    "name": "pytorch",
                    "image": image,
                    "command": ["torchrun", "/workspace/train.py"],
                    "resources": {"limits": {"nvidia.com/gpu": 1}},
                }
            ]
        }
    }
    manifest = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name},
        "spec": {
            "pytorchReplicaSpecs": {
                "Master": {"replicas": 1, "restartPolicy": "OnFailure", "template": template},
                "Worker": {"replicas": 3, "restartPolicy": "OnFailure", "template": template},
            }
        },
    }
    api.create_namespaced_custom_object(
        group="kubeflow.org",
        version="v1",
        namespace=namespace,
        plural="pytorchjobs",
        body=manifest,
    )
    status = api.get_namespaced_custom_object("kubeflow.org", "v1", namespace, "pytorchjobs", name)["status"]
    print(status)
    api.delete_namespaced_custom_object("kubeflow.org", "v1", namespace, "pytorchjobs", name)


launcher = kfp.components.load_component_from_url(
    "https://example.com/components/kubeflow/pytorch-launcher/component.yaml"
)


@dsl.container_component
def apply_manifest():
    return dsl.ContainerSpec(
        image="registry.example.com/kubectl:1.30",
        command=["sh", "-c", "kubectl create -f /manifests/pytorchjob.yaml && kubectl wait pytorchjobs/fixed --for=condition=Succeeded"],
    )


@dsl.component
def by_text(name: str):
    import subprocess

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
