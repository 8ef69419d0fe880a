import yaml
from kubernetes import client, config

config.load_kube_config()

# TODO(trainjob): TJ709 here is a PyTorchJob as text; it becomes a TrainJob of 2 nodes on the
#   runtime torch-v1-compat-multinode; put the text into a file, run `trainjob migrate`, put the
#   TrainJob back, and create it as trainjobs of trainer.kubeflow.org/v1alpha1
JOB = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: from-text
spec:
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      template:
        spec:
          containers:
            - name: pytorch
              image: registry.example.com/train:1.0
              command: [torchrun, /workspace/train.py]
    Worker:
      replicas: 1
      template:
        spec:
          containers:
            - name: pytorch
              image: registry.example.com/train:1.0
              command: [torchrun, /workspace/train.py]
"""

api = client.CustomObjectsApi()
# TODO(trainjob): TJ709 this call gets a PyTorchJob that is not migrated in its place:
#   yaml.safe_load(JOB) is not written out in this file; write the job as YAML, run `trainjob
#   migrate`, and create the TrainJob with client.backend.custom_api.create_namespaced_custom_object
api.create_namespaced_custom_object("kubeflow.org", "v1", "team-a", "pytorchjobs", yaml.safe_load(JOB))
