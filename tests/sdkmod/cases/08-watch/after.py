import time

from kubeflow.trainer import KubernetesBackendConfig, TrainerClient

client = TrainerClient(backend_config=KubernetesBackendConfig(namespace="team-a"))

# Wait until it runs, at most an hour.
client.wait_for_job_status(
    name="resnet",
    status={"Running", "Failed"},
    timeout=3600,
)

while client.get_job(name="resnet").status == "Running":
    for pod in client.backend.core_api.list_namespaced_pod(
        namespace=client.backend.namespace,
        label_selector="jobset.sigs.k8s.io/jobset-name=resnet",
    ).items:
        print(pod.metadata.name, pod.status.phase)
    print([step.pod_name for step in client.get_job(name="resnet").steps if step.name == "node-0"])
    time.sleep(30)

assert (client.get_job(name="resnet").status == "Complete") == True  # noqa: E712
# TODO(trainjob): TJ714 get_job_conditions: a TrainJob of the SDK has one status and no conditions;
#   read get_job(name).status, or the object with
#   client.backend.custom_api.get_namespaced_custom_object
print(client.get_job_conditions("resnet")[-1].type)
job = client.get_job(name="resnet")
# TODO(trainjob): TJ713 spec.pytorch_replica_specs of the job is not there any more; the whole
#   object: client.backend.custom_api.get_namespaced_custom_object
print(job.spec.pytorch_replica_specs["Worker"].replicas, job.creation_timestamp)
# TODO(trainjob): TJ711 v2 has no status Restarting: a job that restarts is Running; drop it
if client.is_job_restarting("resnet"):
    print("restarting")
# TODO(trainjob): TJ714 update_job: TrainerClient changes no jobs, and most of a TrainJob cannot be
#   changed; delete it and train anew, or patch it with
#   client.backend.custom_api.patch_namespaced_custom_object
client.update_job(job, "resnet")
# TODO(trainjob): TJ707 delete_options={"propagationPolicy": "Foreground"} is gone: delete_job has
#   no options; delete through client.backend.custom_api where they matter
client.delete_job(name="resnet")
