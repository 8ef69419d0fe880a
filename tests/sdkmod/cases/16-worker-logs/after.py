from kubeflow.trainer import TrainerClient

NAME = "resnet"
client = TrainerClient()

# All pods.
# TODO(trainjob): TJ712 the events that verbose=True added come from get_job_events(name) now; ask
#   for them there
logs, events = {
    step.name: "\n".join(client.get_job_logs(name=NAME, step=step.name))
    for step in client.get_job(name=NAME).steps
    if step.name.startswith("node-")
}, {}
for pod, text in logs.items():
    print(pod, len(text))
# TODO(trainjob): TJ712 this key is a pod's name of v1; the steps are called node-0 (v1's Master),
#   node-1 (Worker 0), ...
print(logs[f"{NAME}-worker-0"])

# One worker.
print({"node-2": "\n".join(client.get_job_logs(name=NAME, step="node-2"))})
for i in range(2):
    text = ({f"node-{i + 1}": "\n".join(client.get_job_logs(name=NAME, step=f"node-{i + 1}"))}, {})
    print(text[0].values())

# TODO(trainjob): TJ712 v1 printed the lines while it followed; the rewritten call waits for the end
#   and prints none; loop over get_job_logs(..., follow=True) and print
everything = ({"node-0": "\n".join(client.get_job_logs(name=NAME, step="node-0", follow=True))}, {})
# TODO(trainjob): TJ712 v1 printed the lines of several pods as they came; loop over each step; the
#   steps are called node-0 (v1's Master), node-1 (Worker 0), ...
client.get_job_logs(NAME, is_master=False, follow=True)
print([step.pod_name for step in client.get_job(name=NAME).steps if step.name == "node-1"])
