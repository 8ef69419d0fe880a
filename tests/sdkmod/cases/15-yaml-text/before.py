import yaml
from kubernetes import client, config

config.load_kube_config()

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
api.create_namespaced_custom_object("kubeflow.org", "v1", "team-a", "pytorchjobs", yaml.safe_load(JOB))
