"""Calls that cannot be read from the text."""

from functools import partial

from kubeflow.training import TrainingClient

from ours import settings, training  # noqa: F401

client = TrainingClient(**settings.client)
plain = TrainingClient()


def progress(job):
    print(job.status.replica_statuses)


plain.create_job(
    name="imported",
    train_func=training.main,
    parameters=settings.parameters,
    num_workers=settings.workers,
    num_procs_per_worker=4,
    resources_per_worker=settings.resources,
    env_vars=settings.env,
)
plain.create_job("by-position", "team-a", None, None, None, "image")
plain.create_job(name="all", **settings.more)
plain.wait_for_job_conditions("imported", expected_conditions=settings.states, callback=progress)
ask = partial(plain.get_job, namespace="team-a")
submit = plain.create_job
