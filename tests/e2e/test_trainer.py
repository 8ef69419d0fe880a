"""The reference trainer on the cluster, from its image, through our runtimes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.e2e.finetune import LORA, FineTune
from tests.e2e.kube import Kubectl
from tests.e2e.test_storage import data_connection
from trainjob.kube.yaml import dump

__all__ = ["data_connection"]

pytestmark = pytest.mark.trainer
Seen = Callable[[str], None]


@pytest.fixture(scope="module")
def space(cluster: Kubectl) -> Iterator[Kubectl]:
    """A namespace for the runs that nobody disturbs."""
    name = f"e2e-trainer-{int(time.time())}"
    labels = {"trainjob.dev/multi-node": "allowed"}
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    cluster.run("create", "-f", "-", stdin=dump(body))
    yield replace(cluster, namespace=name)
    cluster.run("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="module")
def full(space: Kubectl) -> FineTune:
    """All weights, sharded over two pods."""
    return complete(FineTune(space, "full").submit())


@pytest.fixture(scope="module")
def lora(space: Kubectl) -> FineTune:
    return complete(FineTune(space, "lora", settings=LORA).submit())


def complete(job: FineTune) -> FineTune:
    assert job.kubectl.finished(job.name, seconds=400) == "Complete", job.log()
    return job


def disturbed(job: FineTune) -> FineTune:
    """The worker's pod is deleted in mid-training, and the job completes."""
    job.submit().wait_step(12)
    job.delete_pod(1)
    return complete(job)


@pytest.mark.ci
def test_full_fine_tune_on_two_pods(full: FineTune, seen: Seen) -> None:
    """Full FSDP2 fine-tuning on two pods: the loss falls, a checkpoint is whole, the export has all weights."""
    losses = full.losses()
    assert len(losses) == 40
    assert losses[-1] < 0.5 * losses[0]
    run = full.folder / "run"
    assert json.loads((run / "step-00000040/complete.json").read_text())["world_size"] == 2
    assert (run / "export/model.safetensors").stat().st_size > 4 * 82_000
    seen(f"loss {losses[0]:.2f} to {losses[-1]:.2f} in 40 steps, 2 pods")


@pytest.mark.ci
def test_lora_worker_pod_deleted(kubectl: Kubectl, lora: FineTune, seen: Seen) -> None:
    """LoRA on two pods, the worker's pod deleted: the log says from which step it resumed, and the last loss is that of
    the undisturbed run, to the last digit."""
    job = disturbed(FineTune(kubectl, "hurt", settings=LORA))
    step = job.resumed_from()
    assert step is not None
    assert step >= 10
    assert job.losses() == lora.losses()
    assert (job.folder / "run/export/adapter_model.safetensors").exists()
    seen(f"resumed from step {step}; all 40 losses equal")


@pytest.mark.full
def test_full_worker_pod_deleted(kubectl: Kubectl, full: FineTune, seen: Seen) -> None:
    """The same with all weights."""
    job = disturbed(FineTune(kubectl, "hurt"))
    step = job.resumed_from()
    assert step is not None
    assert job.losses() == full.losses()
    seen(f"resumed from step {step}; all 40 losses equal")


@pytest.mark.full
def test_suspended_and_resumed_loses_no_step(kubectl: Kubectl, full: FineTune, seen: Seen) -> None:
    """A suspended job saves after the step it is in (SIGTERM), and goes on from exactly there."""
    job = FineTune(kubectl, "pause", settings={"CHECKPOINT_EVERY": "1000"}).submit()
    job.wait_step(10)
    kubectl.run("patch", "trainjob", "pause", "--type=merge", "-p", '{"spec": {"suspend": true}}')
    kubectl.wait_for("the pods are gone", lambda: not kubectl.pods("pause"), 120)
    reached = len(job.losses())
    kubectl.run("patch", "trainjob", "pause", "--type=merge", "-p", '{"spec": {"suspend": false}}')
    complete(job)
    assert job.resumed_from() == reached
    assert job.losses() == full.losses()
    seen(f"saved and resumed at step {reached}; all 40 losses equal")


@pytest.mark.full
def test_one_pod_goes_on_from_two(kubectl: Kubectl, full: FineTune, seen: Seen) -> None:
    """A checkpoint of two pods is loaded by one: the curve goes on within rounding."""
    two = complete(FineTune(kubectl, "two", settings={"CHECKPOINT_KEEP": "9"}).submit())
    two.forget(25, 30, 35, 40)
    one = complete(FineTune(kubectl, "one", nodes=1, claim_of="two").submit())
    assert one.resumed_from() == 20
    assert one.losses()[:20] == full.losses()[:20]
    assert one.losses() == pytest.approx(full.losses(), abs=2e-4)
    seen("from step 20 on one pod: 20 losses within 2e-4")


@pytest.mark.full
def test_told_to_go_back_does_so_once(kubectl: Kubectl, seen: Seen) -> None:
    """A job that is told to begin at an older step goes on from its own checkpoints when it is restarted."""
    complete(FineTune(kubectl, "first", settings={"CHECKPOINT_KEEP": "9"}).submit())
    settings = {"CHECKPOINT_RESUME": "20", "CHECKPOINT_EVERY": "1000", "CHECKPOINT_KEEP": "99", "TRAIN_STEPS": "400"}
    back = FineTune(kubectl, "back", claim_of="first", settings=settings).submit()
    back.wait_step(60)
    assert back.resumed_from() == 20
    back.delete_pod(1)
    complete(back)
    step = back.resumed_from()
    assert step is not None
    assert step >= 60
    seen(f"told to begin at step 20; restarted, it went on from step {step}")


@pytest.mark.full
@pytest.mark.storage
def test_checkpoints_in_s3(kubectl: Kubectl, data_connection: str, full: FineTune, seen: Seen) -> None:
    """Checkpoints and export in a real S3 server; the worker's pod deleted, resumed from there."""
    job = disturbed(FineTune(kubectl, "bucket", s3_secret=data_connection))
    step = job.resumed_from()
    assert step is not None
    assert job.losses() == full.losses()
    seen(f"resumed from step {step} of s3://training/bucket; all 40 losses equal")


@pytest.mark.ci
def test_why_it_failed_stands_in_the_pod(kubectl: Kubectl, seen: Seen) -> None:
    """A loss that is not finite: Failed at once and not restarted, with the reason as the pod's termination message."""
    job = FineTune(kubectl, "diverges", settings={"OPTIM_LR": "1e30", "TRAIN_MAX_GRAD_NORM": "0"}).submit()
    assert kubectl.finished("diverges", seconds=300) == "Failed"
    words = " ".join(job.last_words())
    assert "NOT_FINITE" in words
    assert "in step" in words
    assert job.restarts() == 0
    seen(next(word for word in job.last_words() if "NOT_FINITE" in word).splitlines()[-1][:120])


@pytest.fixture
def status_gate(cluster: Kubectl) -> Iterator[None]:
    """Trainer with its alpha gate TrainJobStatus, for this test."""
    system = replace(cluster, namespace="kubeflow-system")
    name = "kubeflow-trainer-controller-manager"
    manager = f"deploy/{name}"
    path = "/spec/template/spec/containers/0/args/-"
    add = json.dumps([{"op": "add", "path": path, "value": "--feature-gates=TrainJobStatus=true"}])

    def rolled_out() -> None:
        system.run("rollout", "status", manager, "--timeout=120s")
        # Until it is gone the old manager goes on making jobs in its own way.
        system.wait_for(
            "one manager", lambda: sum(pod["metadata"]["name"].startswith(name) for pod in system.list("pods")) == 1
        )

    system.run("patch", manager, "--type=json", "-p", add)
    try:
        rolled_out()
        yield
    finally:
        system.run("rollout", "undo", manager)
        rolled_out()


@pytest.mark.full
@pytest.mark.usefixtures("status_gate")
def test_progress_in_the_status_of_the_trainjob(kubectl: Kubectl, seen: Seen) -> None:
    """Where Trainer offers it (2.2 and later, gate TrainJobStatus), `kubectl get trainjob -o yaml` shows the progress:
    percentage, time that is left, loss and rate."""
    job = FineTune(kubectl, "told", settings={"TRAIN_STEPS": "400", "CHECKPOINT_EVERY": "1000"}).submit()

    def status() -> dict[str, Any]:
        return kubectl.get("trainjob", "told").get("status", {}).get("trainerStatus") or {}  # type: ignore[no-any-return]

    while_running = kubectl.wait_for(
        "progress in the status", lambda: (now := status()).get("progressPercentage", 0) > 0 and now, 240
    )
    assert while_running["estimatedRemainingSeconds"] > 0
    complete(job)
    last = kubectl.wait_for("all of it", lambda: status().get("progressPercentage") == 100 and status(), 60)
    metrics = {each["name"]: each["value"] for each in last["metrics"]}
    assert float(metrics["loss"]) == pytest.approx(job.losses()[-1], abs=1e-3)
    assert last["estimatedRemainingSeconds"] == 0
    seen(f"{while_running['progressPercentage']} % while it ran, at the end 100 % and {', '.join(sorted(metrics))}")
