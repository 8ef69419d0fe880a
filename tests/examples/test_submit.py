"""examples/submit.py with the real Kubeflow SDK, over real HTTP, against an API server of our own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.examples.fake_api import GROUP, FakeApi, Step, running
from trainjob import emit
from trainjob.builder import train_job
from trainjob.catalog import catalog
from trainjob.targets import TARGETS, Target, target

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "examples" / "submit.py"
# Held back by Kueue and admitted: from the first condition on the SDK never says "Running".
SHORT = (Step(("Pending",), "Suspended"), Step(("Running",), "Suspended"), Step(("Succeeded",), "Complete"))
JOB = (
    "--name=tune-1", "--runtime=torch-fsdp-4gpu", "--image=registry.example.com/team/tune:1.0", "--queue=team-a",
    "--checkpoints=tune-checkpoints", "--model-cache=model-cache", "--hf-secret=hf-token",
)  # fmt: skip
COMMAND = ("--", "torchrun", "/workspace/tune.py", "--epochs=1")

Submit = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def api(sdk: Any, tmp_path: Path) -> Iterator[FakeApi]:  # noqa: ARG001
    with running(FakeApi(steps=SHORT)) as server:
        for runtime in catalog().values():
            server.add(runtime.manifest)
        server.kubeconfig(tmp_path)
        yield server


@pytest.fixture
def submit(tmp_path: Path) -> Submit:
    env = {k: v for k, v in os.environ.items() if "proxy" not in k.lower()} | {"KUBECONFIG": f"{tmp_path}/kubeconfig"}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(SCRIPT), *arguments]
        return subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)

    return run


def expected(**changes: Any) -> dict[str, Any]:
    options: dict[str, Any] = {
        "name": "tune-1",
        "runtime": "torch-fsdp-4gpu",
        "image": "registry.example.com/team/tune:1.0",
        "command": list(COMMAND[1:]),
        "queue": "team-a",
        "checkpoints": "tune-checkpoints",
        "claims": {"/cache": "model-cache"},
        "env": {"HF_TOKEN": {"secretKeyRef": {"name": "hf-token", "key": "token"}}},
    }
    return train_job(**options | changes).to_dict()


def test_submit_follow_wait_delete(api: FakeApi, submit: Submit) -> None:
    done = submit(*JOB, "--logs", "--wait", "--delete", "--poll=1", "--timeout=30", *COMMAND)
    assert done.stderr.splitlines() == ["tune-1: submitted to team-a", "tune-1: Complete", "tune-1: deleted"]
    assert done.stdout == api.log
    assert done.returncode == 0
    (post,) = api.called("POST")
    assert post.path == f"{GROUP}/namespaces/team-a/trainjobs"
    assert post.query == {"fieldValidation": "Strict"}
    assert post.body == expected()
    (delete,) = api.called("DELETE")
    assert delete.path == f"{post.path}/tune-1"
    (log,) = [r for r in api.requests if r.path.endswith("/log")]
    assert log.path == "/api/v1/namespaces/team-a/pods/tune-1-node-0-0-abcde/log"
    assert log.query == {"container": "node", "follow": "True"}
    # The log is asked for only once the pod runs: before that the SDK gives nothing and says nothing.
    assert api.requests.index(log) > 5


def test_namespace_of_the_flag(api: FakeApi, submit: Submit) -> None:
    done = submit(*JOB, "--namespace=team-b", *COMMAND)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "tune-1: submitted to team-b\n")
    assert [r.path for r in api.called("POST")] == [f"{GROUP}/namespaces/team-b/trainjobs"]


def test_a_failed_job_is_exit_code_1(api: FakeApi, submit: Submit) -> None:
    api.steps = (Step(("Failed",), "Failed"),)
    done = submit(*JOB, "--wait", "--poll=1", "--timeout=10", *COMMAND)
    assert done.stderr.splitlines() == ["tune-1: submitted to team-a", "tune-1: Failed"]
    assert done.returncode == 1
    assert not api.called("DELETE")


def test_a_job_that_does_not_end_goes_on(api: FakeApi, submit: Submit) -> None:
    api.steps = (Step(("Running",)),)
    done = submit(*JOB, "--wait", "--poll=1", "--timeout=2", *COMMAND)
    assert done.stderr.splitlines()[1:] == [
        "tune-1: Running",
        "error: tune-1 has not ended after 2 seconds; it goes on",
    ]
    assert done.returncode == 1


def test_dry_run_needs_no_cluster(submit: Submit) -> None:
    done = submit(*JOB, "--dry-run", *COMMAND)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == emit.TrainJob(expected()).to_yaml()


def test_dry_run_of_the_server_creates_nothing(api: FakeApi, submit: Submit) -> None:
    done = submit(*JOB, "--dry-run=server", *COMMAND)
    assert (done.returncode, done.stderr) == (0, "the API server accepts it; nothing was created\n")
    (post,) = api.called("POST")
    assert post.query == {"fieldValidation": "Strict", "dryRun": "All"}
    assert post.body == expected()
    assert not api.objects.get(("trainjobs", "team-a"))


@pytest.mark.parametrize("server", TARGETS[:2], ids=str)
def test_a_job_for_another_trainer_is_refused_by_name(server: Target, api: FakeApi, submit: Submit) -> None:
    """Strict validation: a server drops fields that it does not know otherwise, the volumes with them."""
    api.target = server
    done = submit(*JOB, "--target=2.3", *COMMAND)
    assert done.returncode == 1
    assert done.stderr.startswith("error: TrainJob tune-1 is not created: ")
    assert 'unknown field "spec.runtimePatches"' in done.stderr


def test_openshift_ai_with_trainer_2_1(api: FakeApi, submit: Submit) -> None:
    rhoai = target("rhoai-3.5")
    api.target = rhoai
    api.objects.clear()
    for runtime in catalog().values():
        api.add(emit.for_target(runtime.manifest, rhoai))
    done = submit(*JOB, "--target=rhoai-3.5", "--wait", "--poll=1", "--timeout=30", *COMMAND)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (0, "tune-1: Complete")
    (post,) = api.called("POST")
    assert "podTemplateOverrides" in post.body["spec"]
    assert post.body == expected(target=rhoai)


def test_the_same_name_twice(api: FakeApi, submit: Submit) -> None:
    api.add(expected(), "team-a")
    done = submit(*JOB, *COMMAND)
    assert done.returncode == 1
    assert done.stderr == (
        'error: TrainJob tune-1 is not created: trainjobs.trainer.kubeflow.org "tune-1" already exists\n'
    )


def test_a_runtime_that_is_not_installed(api: FakeApi, submit: Submit) -> None:
    del api.objects[("clustertrainingruntimes", "")]["torch-fsdp-4gpu"]
    done = submit(*JOB, *COMMAND)
    assert done.returncode == 1
    assert done.stderr == (
        "error: the cluster has no usable runtime torch-fsdp-4gpu; --list-runtimes shows what it has: "
        'clustertrainingruntimes.trainer.kubeflow.org "torch-fsdp-4gpu" not found\n'
    )
    assert not api.called("POST")


@pytest.mark.usefixtures("api")
def test_list_runtimes(submit: Submit) -> None:
    done = submit("--list-runtimes")
    assert (done.returncode, done.stderr) == (0, "")
    header, *lines = done.stdout.splitlines()
    assert header.split() == ["NAME", "KIND", "NODES", "DEVICE", "COUNT", "IMAGE"]
    assert [line.split()[0] for line in lines] == sorted(catalog())
    assert lines[0].split()[1:5] == ["ClusterTrainingRuntime", "1", "gpu", "1"]


@pytest.mark.usefixtures("sdk")
def test_no_cluster(submit: Submit) -> None:
    done = submit(*JOB, *COMMAND)
    assert done.returncode == 1
    assert done.stderr.startswith("error: no cluster: ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--name=x", "--runtime=nothing"), "error: no runtime 'nothing' in the catalogue"),
        (("--name=Bad_Name", "--runtime=torch-lora-1gpu"), "error: Trainer 2.3 would refuse this TrainJob"),
        (("--name=x", "--runtime=torch-lora-1gpu", "--target=9"), "error: unknown target '9'"),
    ],
)
def test_bad_options_reach_no_cluster(arguments: tuple[str, ...], message: str, submit: Submit) -> None:
    done = submit(*arguments, *COMMAND)
    assert done.returncode == 1
    assert done.stderr.startswith(message)


@pytest.mark.parametrize("arguments", [(), ("--name=x",), (*JOB, "--delete"), (*JOB, "--dry-run=maybe")])
def test_usage_errors(arguments: tuple[str, ...], submit: Submit) -> None:
    assert submit(*arguments).returncode == 2


def test_without_the_sdk_it_says_what_to_install(tmp_path: Path) -> None:
    hide = "import sys; sys.modules['kubeflow'] = None; sys.argv = sys.argv[1:]; "
    start = f"{hide}import runpy; runpy.run_path(sys.argv[0], run_name='__main__')"
    for arguments, code in ((["--dry-run"], 0), ([], 1)):
        command = [sys.executable, "-c", start, str(SCRIPT), *JOB, *arguments, *COMMAND]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == code
    assert done.stderr.count("\n") == 1
    assert 'pip install "kubeflow>=0.5,<0.6"' in done.stderr
