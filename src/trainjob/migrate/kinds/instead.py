"""Kinds that have no runtime in Trainer 2.0 to 2.3: why, and what to use instead.

Facts: kubeflow/trainer v2.0.1 to v2.3.0 pkg/apis/trainer/v1alpha1/trainingruntime_types.go (the policies that exist),
v1.9.4 pkg/controller.v1/{tensorflow/tensorflow,paddlepaddle/envvar}.go, kubeflow/mpi-operator v0.8.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# The other MPIJob: another controller, which has used ssh from the start.
MPI_OPERATOR: Final = "kubeflow.org/v2beta1"

REASONS: Final[Mapping[str, str]] = {
    "TFJob": "no Trainer has a policy for TensorFlow, so nothing would write TF_CONFIG; parameter servers, a chief, an "
    "evaluator and dynamic workers have no counterpart",
    "PaddleJob": "no Trainer has a policy for PaddlePaddle, so nothing would write PADDLE_MASTER, PADDLE_NNODES and "
    "PADDLE_JOB_ID",
    "MXJob": "the v1 operator itself dropped this kind in 1.9, and Apache MXNet is retired",
    MPI_OPERATOR: "this MPIJob is the mpi-operator's, which goes on serving it: it is no part of the v1 Training "
    "Operator that Trainer replaces",
}
INSTEAD: Final[Mapping[str, str]] = {
    "TFJob": "leave it with the v1 operator, which runs beside Trainer; or move the model to PyTorch or JAX; or write "
    "a TrainingRuntime without a policy, with one replicatedJob a role and TF_CONFIG built from their host names "
    "<job>-<role>-0-<i>.<job> (a single worker needs no TF_CONFIG: a TrainJob of one node does)",
    "PaddleJob": "leave it with the v1 operator, which runs beside Trainer; or write a TrainingRuntime without a "
    "policy that sets PADDLE_MASTER to <job>-node-0-0.<job>:<port>, PADDLE_NNODES and PADDLE_JOB_ID in env and starts "
    "`python -m paddle.distributed.launch`",
    "MXJob": "move the model to PyTorch or JAX",
    MPI_OPERATOR: "keep it with the mpi-operator; to move it, take Trainer's runtime deepspeed-distributed as the "
    "form: Worker.replicas is numNodes, slotsPerWorker numProcPerNode, the launcher's program trainer.command; "
    "sshAuthMountPath and the Workers' sshd command stand in the runtime",
}
