"""The findings about Python scripts of the v1 SDK and about pipeline steps, TJ7xx."""

from __future__ import annotations

from typing import Final

SYNTAX: Final = "TJ700"
REWRITTEN: Final = "TJ701"
NODES: Final = "TJ702"
NAMESPACE: Final = "TJ703"
FUNCTION: Final = "TJ704"
PROCESSES: Final = "TJ705"
IMAGE: Final = "TJ706"
ARGUMENT: Final = "TJ707"
KIND: Final = "TJ708"
JOB_OBJECT: Final = "TJ709"
FINE_TUNING: Final = "TJ710"
STATUS: Final = "TJ711"
LOGS: Final = "TJ712"
RESULT: Final = "TJ713"
NO_METHOD: Final = "TJ714"
DYNAMIC: Final = "TJ715"
V1_IMPORT: Final = "TJ716"
CLIENT: Final = "TJ717"
RUNTIME: Final = "TJ718"
VERSION: Final = "TJ719"
OPEN: Final = "TJ720"
NOTHING: Final = "TJ721"
RESOURCES: Final = "TJ722"
QUEUE: Final = "TJ723"
VOLUMES: Final = "TJ724"
PIPELINE_STEP: Final = "TJ750"
PIPELINE_LAUNCHER: Final = "TJ751"
PIPELINE_IR: Final = "TJ752"
WORKFLOW: Final = "TJ753"
RAW_API: Final = "TJ754"

# code -> (short name, what it says); docs/rules are generated from this.
CODES: Final[dict[str, tuple[str, str]]] = {
    SYNTAX: ("python-error", "The file is no Python that can be read."),
    REWRITTEN: ("sdk-call", "A call of the v1 SDK is rewritten for TrainerClient."),
    NODES: (
        "num-workers",
        "num_workers becomes the number of pods that v1 really ran. create_job and train (1.8 and newer): "
        "num_workers counts the Master, so N is N pods. create_pytorchjob_from_func (1.6 and 1.7): num_worker_replicas "
        "comes on top of the Master, so 1 is 1 pod and N is N + 1.",
    ),
    NAMESPACE: (
        "sdk-namespace",
        "v1 took a namespace in each call, a TrainerClient has one: it moves to the client, or the call gets a "
        "client of its own.",
    ),
    FUNCTION: (
        "function-call",
        "v1 called func(parameters), v2 calls func(**func_args): the dictionary is handed over under the name of "
        "the function's parameter.",
    ),
    PROCESSES: (
        "process-count",
        "The number of processes in a pod: v1 started plain python or torchrun by SDK version and arguments, v2 "
        "always torchrun, with a process per GPU, or per CPU asked for where there is no GPU. CustomTrainer "
        "cannot set numProcPerNode.",
    ),
    IMAGE: ("default-image", "v1 had a default image of its own; v2 takes the image of the runtime."),
    ARGUMENT: (
        "sdk-argument",
        "An argument of the v1 SDK that v2 does not have, or that means something else there.",
    ),
    KIND: ("other-job-kind", "A job of another kind than PyTorchJob."),
    JOB_OBJECT: (
        "job-object",
        "A PyTorchJob as an object (a model of kubeflow.training, a dictionary or YAML text): TrainerClient takes "
        "none. Where it can be read from the script it is migrated as `trainjob migrate` does, and the TrainJob "
        "is created through the Kubernetes client inside TrainerClient.",
    ),
    FINE_TUNING: (
        "fine-tuning",
        "train() for Hugging Face models has no counterpart: its image, its storage initializer on the Master and "
        "its claim are gone.",
    ),
    STATUS: (
        "job-status",
        "Conditions become one status: Created, Running, Complete (v1: Succeeded) or Failed; there is no Restarting.",
    ),
    LOGS: (
        "job-logs",
        "get_job_logs gives the lines of one pod; v1 gave a pair of dictionaries by pod name. The rewritten call "
        "builds the same pair, with step names for pod names.",
    ),
    RESULT: (
        "job-result",
        "What v1 returned as a V1 object is a TrainJob of the SDK now: name, runtime, steps, num_nodes, status, "
        "creation_timestamp; no spec, metadata or conditions.",
    ),
    NO_METHOD: ("no-such-method", "A method of the v1 SDK without a counterpart in TrainerClient."),
    DYNAMIC: (
        "cannot-read-call",
        "A call that cannot be read from the text: **arguments, a method without its call, too many positional "
        "arguments.",
    ),
    V1_IMPORT: ("v1-import", "A name of kubeflow.training that is still used and that v2 does not have."),
    CLIENT: (
        "sdk-client",
        "The client's own arguments or attributes changed, or it cannot be told whether something is a client.",
    ),
    RUNTIME: ("sdk-runtime", "Which runtime the rewritten call uses, and what it must be."),
    VERSION: ("sdk-version", "Which version of kubeflow-training the script was read as."),
    OPEN: ("open-mark", "A mark of an earlier run that is still there: the place is not migrated."),
    NOTHING: ("no-v1-sdk", "Nothing of the v1 SDK and no PyTorchJob was found."),
    RESOURCES: ("sdk-resources", "resources_per_node is a dictionary whose amounts are both request and limit."),
    QUEUE: (
        "sdk-queue",
        "queue_name becomes the label of the queue; v1 left it away when the queue did not exist, v2 does not ask.",
    ),
    VOLUMES: ("sdk-volumes", "Volumes and mounts become one RuntimePatch of the pod."),
    PIPELINE_STEP: ("pipeline-step", "A step of a pipeline creates, reads or deletes PyTorchJobs."),
    PIPELINE_LAUNCHER: (
        "pipeline-launcher",
        "A pipeline uses the PyTorchJob launcher component of Kubeflow Pipelines.",
    ),
    PIPELINE_IR: (
        "compiled-pipeline",
        "A compiled pipeline holds a step that creates PyTorchJobs; change its source and compile again.",
    ),
    WORKFLOW: ("workflow-resource", "An Argo workflow holds a template that creates a PyTorchJob."),
    RAW_API: ("raw-api", "A PyTorchJob is created, read or deleted through the Kubernetes API itself."),
}
