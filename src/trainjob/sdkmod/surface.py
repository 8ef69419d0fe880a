"""Facts about the v1 SDK: signatures, constants and statuses.

Read in the wheels of kubeflow-training 1.7.0, 1.8.1, 1.9.0 and 1.9.3
(kubeflow/training/api/training_client.py, constants/constants.py, utils/utils.py).
"""

from __future__ import annotations

from typing import Final

# Where the v1 SDK lives, newest first.
V1_PACKAGES: Final = ("kubeflow.training", "kubeflow.pytorchjob", "kubeflow.tfjob")
CLIENT: Final = "TrainingClient"
OLD_CLIENTS: Final = ("PyTorchJobClient", "TFJobClient", "XGBoostJobClient", "MXJobClient", "MPIJobClient")

# Positional order of the arguments. Only what every version from 1.8 on has in common: 1.9.3 put labels
# and annotations in the middle of create_job and train.
_CHECK: Final = ("name", "namespace", "job_kind", "job", "timeout")
POSITIONAL: Final[dict[str, tuple[str, ...]]] = {
    "__init__": ("config_file", "context", "client_configuration", "namespace", "job_kind"),
    "create_job": ("job", "name", "namespace"),
    "train": ("name", "namespace"),
    "get_job": ("name", "namespace", "job_kind", "timeout"),
    "list_jobs": ("namespace", "job_kind", "timeout"),
    "get_job_conditions": _CHECK,
    "is_job_created": _CHECK,
    "is_job_running": _CHECK,
    "is_job_restarting": _CHECK,
    "is_job_succeeded": _CHECK,
    "is_job_failed": _CHECK,
    "wait_for_job_conditions": (
        "name", "namespace", "job_kind", "expected_conditions", "wait_timeout", "polling_interval", "callback",
        "timeout",
    ),
    "get_job_pods": ("name", "namespace", "is_master", "replica_type", "replica_index", "timeout"),
    "get_job_pod_names": ("name", "namespace", "is_master", "replica_type", "replica_index", "timeout"),
    "get_job_logs": (
        "name", "namespace", "job_kind", "is_master", "replica_type", "replica_index", "follow", "timeout", "verbose",
    ),
    "update_job": ("job", "name", "namespace", "job_kind"),
    "delete_job": ("name", "namespace", "job_kind", "delete_options"),
}  # fmt: skip

# 1.7 and older: another order, and methods per kind.
_OLD: Final[dict[str, tuple[str, ...]]] = {
    "get_job_logs": (
        "name", "namespace", "is_master", "replica_type", "replica_index", "container", "follow", "timeout",
    ),
    "wait_for_job_conditions": (
        "name", "namespace", "job_kind", "expected_conditions", "wait_timeout", "polling_interval", "callback",
        "timeout",
    ),
    "create_pytorchjob": ("job", "namespace"),
    "create_pytorchjob_from_func": (
        "name", "train_func", "parameters", "base_image", "namespace", "num_worker_replicas", "packages_to_install",
        "pip_index_url",
    ),
    "get_pytorchjob": ("name", "namespace", "timeout"),
    "list_pytorchjobs": ("namespace", "timeout"),
    "delete_pytorchjob": ("name", "namespace", "delete_options"),
    "patch_pytorchjob": ("job", "name", "namespace"),
}  # fmt: skip

# Method of 1.7 -> method of 1.8 and newer that means the same.
OLD_NAMES: Final = {
    "get_pytorchjob": "get_job",
    "list_pytorchjobs": "list_jobs",
    "delete_pytorchjob": "delete_job",
    "patch_pytorchjob": "update_job",
    "create_pytorchjob": "create_job",
    "create_pytorchjob_from_func": "create_job",
}
OTHER_KINDS: Final = ("TFJob", "MXJob", "XGBoostJob", "MPIJob", "PaddleJob", "JAXJob")
# Methods that no other client has: whoever calls one is a TrainingClient.
ONLY_V1: Final = frozenset(
    {"wait_for_job_conditions", "get_job_conditions", "get_job_pod_names", "get_job_pods", "is_job_created",
     "is_job_running", "is_job_restarting", "is_job_succeeded", "is_job_failed", *OLD_NAMES}
)  # fmt: skip

CONDITIONS: Final = {"Created": "Created", "Running": "Running", "Succeeded": "Complete", "Failed": "Failed"}
JOB_CONSTANTS: Final = {
    "JOB_CONDITION_CREATED": "Created",
    "JOB_CONDITION_RUNNING": "Running",
    "JOB_CONDITION_SUCCEEDED": "Complete",
    "JOB_CONDITION_FAILED": "Failed",
}
# The newest minor version of kubeflow-training.
NEWEST: Final = (1, 9)
# Other constants whose values stand for themselves.
TEXTS: Final = {
    "API_VERSION": "kubeflow.org/v1",
    "GROUP": "kubeflow.org",
    "KUBEFLOW_GROUP": "kubeflow.org",
    "VERSION": "v1",
    "OPERATOR_VERSION": "v1",
    "PYTORCHJOB_KIND": "PyTorchJob",
    "PYTORCHJOB_PLURAL": "pytorchjobs",
    "PYTORCHJOB_CONTAINER": "pytorch",
    "REPLICA_TYPE_MASTER": "Master",
    "REPLICA_TYPE_WORKER": "Worker",
    "ISTIO_SIDECAR_INJECTION": "sidecar.istio.io/inject",
    "LOCAL_QUEUE_LABEL": "kueue.x-k8s.io/queue-name",
}
IMAGES: Final = {
    (1, 7): "pytorch/pytorch:1.12.1-cuda11.3-cudnn8-runtime",
    (1, 8): "pytorch/pytorch:2.1.2-cuda11.8-cudnn8-runtime",
    (1, 9): "pytorch/pytorch:2.1.2-cuda11.8-cudnn8-runtime",
}
# What runs jobs of the other kinds in Trainer 2.3, where anything does.
OTHER_RUNTIMES: Final = {
    "TFJob": "no runtime replaces it: write a TrainingRuntime whose pods build TF_CONFIG",
    "XGBoostJob": "use the runtime xgboost-distributed",
    "JAXJob": "use the runtime jax-distributed",
    "MPIJob": "use the runtime deepspeed-distributed or mlx-distributed",
    "PaddleJob": "no runtime replaces it: write a TrainingRuntime of its own",
    "MXJob": "no runtime replaces it: MXNet is retired",
}


def positional(method: str, version: tuple[int, int]) -> tuple[str, ...] | None:
    """The order of a method's positional arguments in a version, None for a method that is not known."""
    if version < (1, 8) and method in _OLD:
        return _OLD[method]
    return POSITIONAL.get(method) or _OLD.get(method)
