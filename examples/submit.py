"""Builds a TrainJob and runs it with Kubeflow's TrainerClient.

    pip install "kubeflow>=0.5,<0.6"
    python examples/submit.py --list-runtimes
    python examples/submit.py --name tune-1 --runtime torch-fsdp-4gpu --image registry.example.com/team/tune:1.0 \
        --queue team-a --checkpoints tune-checkpoints --wait --logs -- torchrun /workspace/tune.py --epochs=1
    python examples/submit.py ... --dry-run            prints the YAML; needs neither SDK nor cluster
    python examples/submit.py ... --dry-run=server     asks the API server, creates nothing

Each does what it is good at. `train_job` makes the object and checks it. TrainerClient lists runtimes,
waits, reads logs and deletes. In between the object is created through the Kubernetes client inside the
TrainerClient, `client.backend.custom_api`, with its connection and namespace, because `TrainerClient.train()`
builds the object itself and cannot say (kubeflow 0.5.0):

- an object that exists already: no dictionary, no YAML, no dry run, no strict validation
- env from elsewhere: a Secret (HF_TOKEN), a ConfigMap, a pod field; its env is text, and Trainer refuses
  patches of the env of the training container
- numProcPerNode: MIG slices, Gaudi and device claims need it
- requests that differ from limits
- suspend, managedBy, generateName, finalizers, owner references
- a TrainingRuntime of its own, for what no TrainJob can carry
- terminationGracePeriodSeconds, although a TrainJob of Trainer 2.3 can patch it
- Trainer 2.0 and 2.1 (OpenShift AI up to 3.5), whose patches have other names: it would drop them silently
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from trainjob import targets
from trainjob.builder import BuildError, train_job
from trainjob.catalog import CatalogError
from trainjob.emit import TrainJob

if TYPE_CHECKING:
    from kubeflow.trainer import TrainerClient  # type: ignore[import-not-found, unused-ignore]

INSTALL: Final = 'pip install "kubeflow>=0.5,<0.6"'
FINISHED: Final = {"Complete", "Failed"}
PLURALS: Final = {"TrainJob": "trainjobs", "TrainingRuntime": "trainingruntimes"}


class SubmitError(Exception):
    """What went wrong, in words for the person who runs this."""


def connect(namespace: str | None, context: str | None) -> TrainerClient:
    """A TrainerClient for the cluster of the kubeconfig, or of the pod this runs in."""
    try:
        from kubeflow.trainer import KubernetesBackendConfig, TrainerClient  # takes 0.7 s, so not at the top
        from kubernetes.config import ConfigException  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ModuleNotFoundError as err:
        raise SubmitError(f"the Kubeflow SDK is not installed ({err.name} is missing): {INSTALL}") from None
    try:
        return TrainerClient(KubernetesBackendConfig(namespace=namespace, context=context))
    except ConfigException as err:
        raise SubmitError(f"no cluster: {err}") from None


def submit(client: TrainerClient, job: TrainJob, *, dry_run: bool = False) -> str:
    """Create the objects of a TrainJob, its own TrainingRuntime first, and return the name.

    The API server refuses fields that it does not know: with another Trainer version than the job was
    built for it would drop them, and the job would run without its volumes.
    """
    api, namespace = client.backend.custom_api, client.backend.namespace
    options = {"field_validation": "Strict"} | ({"dry_run": "All"} if dry_run else {})
    for obj in job.objects():
        group, version = obj["apiVersion"].split("/")
        with _api_errors(f"{obj['kind']} {obj['metadata']['name']} is not created"):
            try:
                api.create_namespaced_custom_object(group, version, namespace, PLURALS[obj["kind"]], obj, **options)
            except Exception as err:
                # Such a runtime is named by its content: what exists is the same.
                if obj["kind"] == "TrainJob" or getattr(err, "status", None) != 409:
                    raise
    return str(job.manifest["metadata"]["name"])


def follow(client: TrainerClient, name: str, *, poll: int) -> Iterator[str]:
    """The log of rank 0. The SDK gives nothing while the pod is Pending, so wait for that first."""
    while True:
        with _api_errors(f"no log of {name}"):
            job = client.get_job(name)
        started = any(step.name == "node-0" and step.status not in (None, "Pending") for step in job.steps)
        if started or job.status in FINISHED:
            break
        time.sleep(poll)
    with _api_errors(f"no log of {name}"):
        yield from client.get_job_logs(name, step="node-0", follow=True)


def wait(client: TrainerClient, name: str, *, timeout: int, poll: int) -> str:
    """Until the job has ended: "Complete" or "Failed".

    Not until it runs: the SDK never says "Running" of a job that Kueue has held back and admitted.
    """
    seen = ""

    def tell(job: Any) -> None:
        nonlocal seen
        if job.status != seen:
            seen = job.status
            say(f"{name}: {seen}")

    try:
        with _api_errors(f"cannot watch {name}"):
            done = client.wait_for_job_status(
                name, status=FINISHED, timeout=timeout, polling_interval=poll, callbacks=[tell]
            )
    except TimeoutError:
        raise SubmitError(f"{name} has not ended after {timeout} seconds; it goes on") from None
    return str(done.status)


def table(client: TrainerClient) -> str:
    """The runtimes that the cluster has, as the SDK sees them."""
    with _api_errors("cannot list the runtimes"):
        found = client.list_runtimes()
    rows = [("NAME", "KIND", "NODES", "DEVICE", "COUNT", "IMAGE")]
    rows += [
        (r.name, r.kind.value, str(r.trainer.num_nodes), r.trainer.device, r.trainer.device_count, r.trainer.image)
        for r in sorted(found, key=lambda r: r.name)
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows)


@contextmanager
def _api_errors(what: str) -> Iterator[None]:
    """The message of the API server instead of a traceback. The SDK wraps it in a RuntimeError."""
    try:
        yield
    except TimeoutError:
        raise
    except Exception as err:
        cause = next((e for e in (err, err.__cause__) if getattr(e, "body", None)), None)
        try:
            detail = json.loads(cause.body)["message"] if cause is not None else str(err)  # type: ignore[attr-defined]
        except (ValueError, KeyError, TypeError):
            detail = str(cause)
        raise SubmitError(f"{what}: {detail}") from err


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Build a TrainJob and run it with Kubeflow's TrainerClient.")
    parser.add_argument("--list-runtimes", action="store_true", help="show the runtimes of the cluster and end")
    parser.add_argument("--name", help="name of the TrainJob")
    parser.add_argument("--runtime", help="runtime of the catalogue, e.g. torch-fsdp-4gpu")
    parser.add_argument("--image", help="image with your code")
    parser.add_argument("--queue", help="Kueue LocalQueue")
    parser.add_argument("--checkpoints", metavar="CLAIM", help="PersistentVolumeClaim for /checkpoints")
    parser.add_argument("--model-cache", metavar="CLAIM", help="PersistentVolumeClaim for /cache, which has HF_HOME")
    parser.add_argument("--hf-secret", metavar="SECRET", help="Secret whose key `token` becomes HF_TOKEN")
    parser.add_argument("--target", default="2.3", metavar="VERSION", help="Trainer of the cluster, e.g. rhoai-3.5")
    parser.add_argument("-n", "--namespace", help="default: that of the kubeconfig's context")
    parser.add_argument("--context", help="context of the kubeconfig")
    parser.add_argument(
        "--dry-run", nargs="?", const="client", choices=("client", "server"), help="create nothing; print the YAML"
    )
    parser.add_argument("--logs", action="store_true", help="follow the log of rank 0")
    parser.add_argument("--wait", action="store_true", help="wait for the end; exit code 1 if the job failed")
    parser.add_argument("--delete", action="store_true", help="delete the job at the end (with --wait)")
    parser.add_argument("--timeout", type=int, default=86400, metavar="SECONDS", help="of --wait (default one day)")
    parser.add_argument("--poll", type=int, default=10, metavar="SECONDS", help="between two looks (default 10)")
    parser.add_argument("command", nargs="*", metavar="-- COMMAND", help="program and arguments")
    options = parser.parse_args(argv)
    if not options.list_runtimes and not (options.name and options.runtime):
        parser.error("--name and --runtime are needed")
    if options.delete and not options.wait:
        parser.error("--delete needs --wait")
    return options


def build(options: argparse.Namespace) -> TrainJob:
    """The TrainJob of the options, checked for its Trainer version."""
    token = {"HF_TOKEN": {"secretKeyRef": {"name": options.hf_secret, "key": "token"}}} if options.hf_secret else None
    try:
        return train_job(
            name=options.name,
            runtime=options.runtime,
            image=options.image,
            command=options.command or None,
            env=token,
            queue=options.queue,
            checkpoints=options.checkpoints,
            claims={"/cache": options.model_cache} if options.model_cache else None,
            target=targets.target(options.target),
        )
    except (BuildError, CatalogError, ValueError) as err:
        raise SubmitError(str(err)) from None


def run(options: argparse.Namespace) -> int:
    """Everything that was asked for, in order. Returns the exit code."""
    if options.list_runtimes:
        print(table(connect(options.namespace, options.context)))
        return 0
    job = build(options)
    if options.dry_run:
        print(job.to_yaml(), end="")
        if options.dry_run == "server":
            submit(connect(options.namespace, options.context), job, dry_run=True)
            say("the API server accepts it; nothing was created")
        return 0
    client = connect(options.namespace, options.context)
    with _api_errors(f"the cluster has no usable runtime {options.runtime}; --list-runtimes shows what it has"):
        client.get_runtime(options.runtime)
    name = submit(client, job)
    say(f"{name}: submitted to {client.backend.namespace}")
    status = ""
    try:
        if options.logs:
            for line in follow(client, name, poll=options.poll):
                print(line, flush=True)
        if options.wait:
            status = wait(client, name, timeout=options.timeout, poll=options.poll)
    finally:
        if options.delete:
            with _api_errors(f"{name} is not deleted"):
                client.delete_job(name)
            say(f"{name}: deleted")
    return 1 if status == "Failed" else 0


def main(argv: Sequence[str] | None = None) -> int:
    try:
        return run(arguments(argv))
    except SubmitError as err:
        say(f"error: {err}")
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
