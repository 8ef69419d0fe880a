import time

from kubeflow.training import TrainingClient
from kubeflow.training.constants import constants

client = TrainingClient(namespace="team-a")

# Wait until it runs, at most an hour.
client.wait_for_job_conditions(
    "resnet",
    expected_conditions={
        constants.JOB_CONDITION_RUNNING,
        constants.JOB_CONDITION_FAILED,
    },
    wait_timeout=3600,
)

while client.is_job_running("resnet"):
    for pod in client.get_job_pods("resnet"):
        print(pod.metadata.name, pod.status.phase)
    print(client.get_job_pod_names("resnet", is_master=True))
    time.sleep(30)

assert client.is_job_succeeded("resnet") == True  # noqa: E712
print(client.get_job_conditions("resnet")[-1].type)
job = client.get_job("resnet")
print(job.spec.pytorch_replica_specs["Worker"].replicas, job.metadata.creation_timestamp)
if client.is_job_restarting("resnet"):
    print("restarting")
client.update_job(job, "resnet")
client.delete_job("resnet", delete_options={"propagationPolicy": "Foreground"})
