"""What the Kubeflow SDK makes of our runtimes, and what its `train()` cannot say (examples/submit.py)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.examples.fake_api import FakeApi, running
from trainjob import emit
from trainjob.builder import train_job
from trainjob.catalog import Runtime, catalog
from trainjob.targets import TARGETS, Target, target

Client = Callable[[FakeApi], Any]
IMAGE = "registry.example.com/team/tune:1.0"


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with running(FakeApi()) as server:
        for runtime in catalog().values():
            server.add(runtime.manifest)
        yield server


def device(runtime: Runtime) -> tuple[str, str]:
    """What the SDK should show: the GPUs of all nodes, else the CPUs, else that it does not know."""
    if runtime.gpus:
        return "gpu", str(runtime.gpus * runtime.nodes)
    if runtime.resources:
        return "cpu", runtime.resources["limits"]["cpu"]
    return "Unknown", "Unknown"


@pytest.mark.parametrize("version", TARGETS, ids=str)
def test_every_runtime_is_seen(version: Target, client: Client, caplog: pytest.LogCaptureFixture) -> None:
    """One runtime that the SDK cannot read makes list_runtimes() raise for every user of the cluster."""
    with running(FakeApi(target=version)) as api, caplog.at_level(logging.WARNING):
        for runtime in catalog().values():
            api.add(emit.for_target(runtime.manifest, version))
        trainer = client(api)
        found = {r.name: r for r in trainer.list_runtimes()}
        assert list(found) == list(catalog())
        for name, runtime in catalog().items():
            seen = found[name]
            assert seen == trainer.get_runtime(name)
            assert seen.kind.value == runtime.kind
            assert seen.trainer.trainer_type.name == "CUSTOM_TRAINER"
            assert seen.trainer.framework == "torch"
            assert seen.trainer.image == runtime.image
            assert seen.trainer.num_nodes == runtime.nodes
            assert (seen.trainer.device, seen.trainer.device_count) == device(runtime)
            assert "torchrun" in seen.trainer.command[-1]
    assert caplog.text == ""
    assert len(found) == 9


def test_every_file_of_runtimes_was_among_them() -> None:
    root = Path(__file__).resolve().parents[2] / "runtimes"
    files = {f.stem for f in root.rglob("*.yaml") if f.name != "kustomization.yaml"}
    assert files == set(catalog())


def test_a_runtime_of_its_own_hides_none(api: FakeApi, client: Client) -> None:
    """A generated TrainingRuntime stands beside the others, under a name of its own."""
    job = train_job(
        name="x", runtime="torch-lora-1gpu", image=IMAGE, command=["torchrun", "x.py"],
        active_deadline_seconds=3600, target=target("2.1"),
    )  # fmt: skip
    assert job.runtime is not None
    api.add(job.runtime, "team-a")
    trainer = client(api)
    found = {r.name: r.kind.value for r in trainer.list_runtimes()}
    assert len(found) == len(catalog()) + 1
    name = job.runtime["metadata"]["name"]
    assert found[name] == "TrainingRuntime"
    assert trainer.get_runtime(name).trainer.device_count == "1"


# --- what train() sends -------------------------------------------------------------------------------------


def options(sdk: Any) -> Any:
    import kubeflow.trainer.options as module  # type: ignore[import-not-found, unused-ignore]

    assert sdk
    return module


def runtime_patch(sdk: Any, **pod: Any) -> Any:
    o = options(sdk)
    template = o.PodTemplatePatch(metadata={"labels": {"team": "a"}}, spec=o.PodSpecPatch(**pod))
    job = o.ReplicatedJobPatch("node", o.JobTemplatePatch(spec=o.JobSpecPatch(template)))
    return o.RuntimePatch(o.TrainingRuntimeSpecPatch(o.JobSetTemplatePatch(spec=o.JobSetSpecPatch([job]))))


def test_what_train_can_say(sdk: Any, api: FakeApi, client: Client) -> None:
    """Labels of pods, several claims, the queue, command and resources: not a reason to leave train()."""
    o = options(sdk)
    mounts = {"/cache": "model-cache", "/checkpoints": "tune-checkpoints"}
    ours = train_job(
        name="x", runtime="torch-lora-1gpu", image=IMAGE, command=["torchrun", "x.py"], queue="team-a",
        checkpoints=mounts["/checkpoints"], claims={"/cache": mounts["/cache"]},
    ).to_dict()  # fmt: skip
    resources = ours["spec"]["trainer"]["resourcesPerNode"]["limits"]
    patch = runtime_patch(
        sdk,
        volumes=[{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in mounts.values()],
        containers=[o.ContainerPatch("node", volume_mounts=[{"name": c, "mountPath": p} for p, c in mounts.items()])],
    )
    client(api).train(
        runtime="torch-lora-1gpu",
        trainer=sdk.CustomTrainerContainer(image=IMAGE, num_nodes=1, resources_per_node=resources),
        options=[
            o.Name("x"),
            o.Labels({"kueue.x-k8s.io/queue-name": "team-a"}),
            o.TrainerCommand(["torchrun", "x.py"]),
            patch,
        ],
    )
    (post,) = api.called("POST")
    assert post.query == {}, "no strict validation"
    sent = post.body
    (theirs,), (mine,) = sent["spec"].pop("runtimePatches"), ours["spec"].pop("runtimePatches")
    del ours["spec"]["runtimeRef"]["apiGroup"]
    assert sent == ours
    assert theirs.pop("manager") == "trainer.kubeflow.org/kubeflow-sdk"
    del mine["manager"]
    (job,) = theirs["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    assert job["template"]["spec"]["template"].pop("metadata") == {"labels": {"team": "a"}}
    assert theirs == mine


def test_what_train_cannot_say(sdk: Any, api: FakeApi, client: Client) -> None:
    """The list in the docstring of examples/submit.py."""
    o = options(sdk)
    trainer = client(api)
    secret = {"secretKeyRef": {"name": "hf-token", "key": "token"}}
    with pytest.raises(ValueError, match="Input should be a valid string"):
        trainer.train(
            runtime="torch-lora-1gpu", trainer=sdk.CustomTrainerContainer(image=IMAGE, env={"HF_TOKEN": secret})
        )
    with pytest.raises(TypeError, match="termination_grace_period_seconds"):
        o.PodSpecPatch(termination_grace_period_seconds=60)

    def everything(job_spec: dict[str, Any], *_: Any) -> None:
        """An option of one's own: only what train() looks for comes through."""
        spec = job_spec.setdefault("spec", {})
        spec |= {"suspend": True, "managedBy": "kueue.x-k8s.io/multikueue"}
        spec.setdefault("trainer", {}).update(
            numProcPerNode=2,
            env=[{"name": "HF_TOKEN", "valueFrom": secret}],
            resourcesPerNode={"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
        )
        job_spec.setdefault("metadata", {}).update(
            generateName="x-", finalizers=["example.com/keep"], ownerReferences=[{"name": "owner"}]
        )

    trainer.train(
        runtime="torch-lora-1gpu",
        trainer=sdk.CustomTrainerContainer(image=IMAGE, num_nodes=1),
        options=[o.Name("x"), everything],
    )
    (post,) = api.called("POST")
    assert post.body["metadata"] == {"name": "x"}
    assert post.body["spec"].keys() == {"runtimeRef", "trainer"}
    assert post.body["spec"]["trainer"] == {"image": IMAGE, "numNodes": 1}


def test_an_old_trainer_drops_the_patches_of_train(sdk: Any, client: Client) -> None:
    """Without strict validation the job is created, and runs without its volumes."""
    patch = runtime_patch(sdk, node_selector={"zone": "a"})
    with running(FakeApi(target=target("2.1"))) as api:
        api.add(emit.for_target(catalog()["torch-lora-1gpu"].manifest, target("2.1")))
        trainer = sdk.CustomTrainerContainer(image=IMAGE, num_nodes=1)
        client(api).train(runtime="torch-lora-1gpu", trainer=trainer, options=[options(sdk).Name("x"), patch])
        assert "runtimePatches" in api.called("POST")[0].body["spec"]
        assert "runtimePatches" not in api.objects[("trainjobs", "team-a")]["x"]["spec"]
