"""Calls that cannot be read from the text."""

from functools import partial

from kubeflow.trainer import CustomTrainer, TrainerClient
from kubeflow.trainer.options import Name

from ours import settings, training  # noqa: F401

# TODO(trainjob): TJ715 the client is not rewritten: it is called with **settings.client; name the
#   arguments
client = TrainerClient(**settings.client)
plain = TrainerClient()


def progress(job):
    # TODO(trainjob): TJ713 status.replica_statuses of the job is not there any more; status is one
    #   word (Created, Running, Complete, Failed); the whole object:
    #   client.backend.custom_api.get_namespaced_custom_object
    print(job.status.replica_statuses)


# TODO(trainjob): TJ704 v2 calls training.main(**func_args), v1 called it with the dictionary as its
#   one argument, and its definition is not in this file; write func_args={"<name of its
#   parameter>": ...}
# TODO(trainjob): TJ707 env_vars=settings.env is not a dictionary of texts, and CustomTrainer takes
#   nothing else; values from Secrets, ConfigMaps and fields belong into a runtime, or into a
#   TrainJob of its own
# TODO(trainjob): TJ705 num_procs_per_worker=4 cannot be carried: v2 starts a process per GPU, or
#   per CPU without one; check that the pods ask for as many GPUs
plain.train(
    runtime="torch-distributed",
    trainer=CustomTrainer(
        func=training.main,
        func_args=settings.parameters,
        num_nodes=settings.workers,
        resources_per_node=settings.resources,
        env=settings.env,
    ),
    options=[Name(name="imported")],
)
# TODO(trainjob): TJ715 create_job is not rewritten: argument 4 has no name, and its meaning depends
#   on the version of the v1 SDK; name the arguments
plain.create_job("by-position", "team-a", None, None, None, "image")
# TODO(trainjob): TJ715 create_job is not rewritten: it is called with **settings.more; name the
#   arguments
plain.create_job(name="all", **settings.more)
# TODO(trainjob): TJ711 the statuses in settings.states cannot be read here; v2 says {"Succeeded":
#   "Complete"} and has no Restarting
# TODO(trainjob): TJ713 progress is called with a TrainJob of the SDK, not with a V1 object; see
#   what it reads: name, status and steps are there; metadata, spec and conditions are not
plain.wait_for_job_status(name="imported", status=settings.states, callbacks=[progress])
# TODO(trainjob): TJ715 the method get_job is handed on here without its call; it is not rewritten;
#   call it in place
ask = partial(plain.get_job, namespace="team-a")
# TODO(trainjob): TJ715 the method create_job is handed on here without its call; it is not
#   rewritten; call it in place
submit = plain.create_job
