from kubeflow.training import TrainingClient

NAME = "resnet"
client = TrainingClient()

# All pods.
logs, events = client.get_job_logs(NAME, is_master=False, verbose=True)
for pod, text in logs.items():
    print(pod, len(text))
print(logs[f"{NAME}-worker-0"])

# One worker.
print(client.get_job_logs(NAME, is_master=False, replica_type="Worker", replica_index=1)[0])
for i in range(2):
    text = client.get_job_logs(NAME, is_master=False, replica_type="worker", replica_index=i)
    print(text[0].values())

everything = client.get_job_logs(NAME, follow=True)
client.get_job_logs(NAME, is_master=False, follow=True)
print(client.get_job_pod_names(NAME, replica_type="worker", replica_index=0))
