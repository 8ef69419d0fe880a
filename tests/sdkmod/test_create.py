# ruff: noqa: E501 - rows of calls and what is said of them
"""create_job: node and process arithmetic, and the whole call against the real SDK, argument by argument."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any
from unittest.mock import create_autospec

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainjob.findings import Severity
from trainjob.sdkmod.create import pods
from trainjob.sdkmod.engine import Options, ScriptResult, migrate_script

HEAD = """\
from kubernetes import client as k8s
from kubeflow.training import TrainingClient


def train(parameters):
    print(parameters)


client = TrainingClient()
"""


def migrate(text: str, version: tuple[int, int] | None = None) -> ScriptResult:
    return migrate_script(HEAD + text, file="s.py", options=Options(version=version))


def messages(result: ScriptResult, code: str) -> list[str]:
    return [f.message for f in result.findings if f.code == code]


@pytest.mark.parametrize(
    ("workers", "old", "expected"),
    [(1, False, 1), (2, False, 2), (5, False, 5), (1, True, 1), (2, True, 3), (3, True, 4), (0, False, 1)],
)
def test_pods_that_v1_really_ran(workers: int, old: bool, expected: int) -> None:
    """What the SDKs 1.6.0 (old), 1.8.1 and 1.9.3 create when they are called with these numbers."""
    assert pods(workers, old=old) == expected


@pytest.mark.parametrize(
    ("argument", "shown", "says"),
    [
        ("num_workers=4", "num_nodes=4", "num_workers=4 was 4 pods in v1 (Master 1 + Worker 3), so num_nodes is 4"),
        ("num_workers=1", "num_nodes=1", "num_workers=1 was 1 pod in v1 (Master 1), so num_nodes is 1"),
        ("", "num_nodes=1", "without num_workers v1 ran 1 pod, the Master: num_nodes=1"),
        ("num_workers=n", "num_nodes=n", "num_workers=n counted the Master as one, so num_nodes is the same"),
    ],
)
def test_num_workers(argument: str, shown: str, says: str) -> None:
    result = migrate(f"client.create_job(name='x', train_func=train, {argument})\n")
    assert shown in result.text
    assert messages(result, "TJ702") == [says]


@pytest.mark.parametrize(
    ("argument", "shown"),
    [("2", "num_nodes=3"), ("1", "num_nodes=1"), ("n", "num_nodes=n + 1 if n > 1 else 1"),
     ("a + b", "num_nodes=(a + b) + 1 if (a + b) > 1 else 1")],
)  # fmt: skip
def test_num_worker_replicas_came_on_top_of_the_master(argument: str, shown: str) -> None:
    result = migrate(f"client.create_pytorchjob_from_func('x', train, num_worker_replicas={argument})\n")
    assert f"{shown}," in result.text or f"{shown})" in result.text


def test_a_number_in_a_variable_is_said() -> None:
    result = migrate("N = 3\nclient.create_job(name='x', train_func=train, num_workers=N)\n")
    assert messages(result, "TJ702") == ["num_workers=N is 3 was 3 pods in v1 (Master 1 + Worker 2), so num_nodes is 3"]
    assert "num_nodes=N" in result.text


GPU2, CPU4 = "resources_per_worker={'gpu': 2}", "resources_per_worker={'cpu': '3500m'}"


@pytest.mark.parametrize(
    ("version", "arguments", "severity", "says"),
    [
        # 1.9: torchrun with several workers; the number was the GPUs
        ((1, 9), f"num_workers=2, {GPU2}", Severity.NOTE, "2 processes in each pod, as in v1; 2 x 2 = 4 processes"),
        # one worker: plain python, one process, and v2 starts two
        ((1, 9), GPU2, Severity.WARNING, "v1 started 1 process in a pod with python (kubeflow-training 1.9), v2 starts 2"),
        # 1.8: always python
        ((1, 8), f"num_workers=2, {GPU2}", Severity.WARNING,
         "v1 started 1 process in a pod with python (kubeflow-training 1.8), v2 starts 2"),
        ((1, 9), f"num_procs_per_worker=2, {GPU2}", Severity.NOTE, "2 processes in each pod, as in v1; 1 x 2 = 2 processes"),
        ((1, 9), f"num_procs_per_worker='2', {GPU2}", Severity.NOTE, "2 processes in each pod, as in v1; 1 x 2 = 2 processes"),
        ((1, 9), f"num_procs_per_worker=4, {GPU2}", Severity.WARNING, "v1 started 4 processes in a pod with torchrun, v2 starts 2"),
        ((1, 9), f"num_workers=2, {CPU4}", Severity.WARNING,
         "without a GPU v1's torchrun started a process per CPU of the host; v2 starts 4; 2 x 4 = 8 processes"),
        ((1, 9), "resources_per_worker={'gpu': 0, 'cpu': 2}", Severity.WARNING,
         "0 GPUs still name a GPU, and v2 then starts a process per CPU of the host"),
        ((1, 9), "num_procs_per_worker=n", Severity.WARNING,
         "num_procs_per_worker=n cannot be carried: v2 starts a process per GPU, or per CPU without one"),
        ((1, 9), "num_workers=2, resources_per_worker=r", Severity.WARNING,
         "the number of processes in a pod cannot be carried: v2 starts a process per GPU, or per CPU without one"),
    ],
)  # fmt: skip
def test_processes(version: tuple[int, int], arguments: str, severity: Severity, says: str) -> None:
    result = migrate(f"client.create_job(name='x', train_func=train, base_image='i', {arguments})\n", version)
    [finding] = [f for f in result.findings if f.code == "TJ705"]
    assert (finding.severity, finding.message) == (severity, says)


def test_one_process_with_nothing_asked_for_needs_no_word() -> None:
    result = migrate("client.create_job(name='x', train_func=train, base_image='i')\n", (1, 9))
    assert messages(result, "TJ705") == []


@pytest.mark.parametrize(("version", "image"), [((1, 8), "2.1.2-cuda11.8"), ((1, 9), "2.1.2-cuda11.8")])
def test_the_default_image_is_named(version: tuple[int, int], image: str) -> None:
    result = migrate("client.create_job(name='x', train_func=train)\n", version)
    [message] = messages(result, "TJ706")
    assert image in message


VALUES = {
    "parameters": "{'lr': 0.1}",
    "base_image": "'registry.example.com/i:1'",
    "num_workers": "3",
    "num_procs_per_worker": "2",
    "resources_per_worker": "{'gpu': 2, 'cpu': 4}",
    "packages_to_install": "['a==1']",
    "pip_index_url": "'https://pypi.example.com/simple'",
    "env_vars": "{'A': 'b'}",
    "labels": "{'l': 'm'}",
    "annotations": "{'a': 'n'}",
    "queue_name": "'q'",
    "namespace": "'ns'",
    "job_kind": "'PyTorchJob'",
    "volumes": "[k8s.V1Volume(name='d', empty_dir=k8s.V1EmptyDirVolumeSource(size_limit='1Gi'))]",
    "volume_mounts": "[k8s.V1VolumeMount(name='d', mount_path='/d')]",
}


def options_of(given: list[Any]) -> dict[str, Any]:
    """What the options put into a job, applied as the Kubernetes backend applies them."""
    from kubeflow.trainer.backends.kubernetes.backend import KubernetesBackend

    backend = object.__new__(KubernetesBackend)
    job: dict[str, Any] = {}
    for option in given:
        option(job, None, backend)
    return job


@settings(max_examples=80)
@given(chosen=st.sets(st.sampled_from(sorted(VALUES))), tall=st.booleans(), with_func=st.booleans())
def test_every_argument_arrives(chosen: set[str], tall: bool, with_func: bool, sdk: Any) -> None:
    """Runs the rewritten call against the real classes and a spec of the real client: no wrong name can pass."""
    if not with_func:
        chosen = chosen - {"parameters", "packages_to_install", "pip_index_url"} | {"base_image"}
    parts = ["name='x'", *(["train_func=train"] if with_func else []), *(f"{k}={VALUES[k]}" for k in sorted(chosen))]
    joined = "\n    " + ",  # c\n    ".join(parts) + ",\n" if tall else ", ".join(parts)
    result = migrate(f"client.create_job({joined})\n", (1, 9))
    text = result.text.replace("from kubernetes import client as k8s\n", "")

    client = create_autospec(sdk.TrainerClient, instance=True)
    configs: list[Any] = []

    def make(backend_config: Any = None) -> Any:
        configs.append(backend_config)
        return client

    names: dict[str, Any] = {}
    # binds the constructor's own signature, too
    inspect.signature(sdk.TrainerClient).bind(backend_config=None)
    exec(text.replace("client = TrainerClient", "client = make"), names | {"make": make}, names)
    call = client.train.call_args
    assert call.args == ()
    trainer = call.kwargs["trainer"]
    fields = {f.name: getattr(trainer, f.name) for f in dataclasses.fields(trainer)}
    assert type(trainer).__name__ == ("CustomTrainer" if with_func else "CustomTrainerContainer")
    expected: dict[str, Any] = {k: eval(v) for k, v in VALUES.items() if k in chosen and "k8s" not in v}
    assert fields["num_nodes"] == expected.get("num_workers", 1)
    assert fields["image"] == expected.get("base_image")
    assert fields["resources_per_node"] == expected.get("resources_per_worker")
    assert fields["env"] == expected.get("env_vars")
    if with_func:
        assert fields["func"] is names["train"]
        assert fields["func_args"] == ({"parameters": {"lr": 0.1}} if "parameters" in chosen else None)
        assert fields["packages_to_install"] == expected.get("packages_to_install")
        if "pip_index_url" in chosen:
            assert fields["pip_index_urls"] == [expected["pip_index_url"]]
    job = options_of(call.kwargs["options"])
    assert job["metadata"]["name"] == "x"
    labels = {**expected.get("labels", {}), **({"kueue.x-k8s.io/queue-name": "q"} if "queue_name" in chosen else {})}
    assert job["metadata"].get("labels", {}) == labels
    assert job["metadata"].get("annotations") == expected.get("annotations")
    assert ("spec" in job) is bool({"volumes", "volume_mounts"} & chosen)
    assert (configs[0].namespace if configs[0] else None) == expected.get("namespace")


def test_no_unknown_argument_is_lost_silently() -> None:
    result = migrate("client.create_job(name='x', train_func=train, brand_new=1)\n")
    assert "brand_new=1 of create_job has no counterpart" in " ".join(messages(result, "TJ707"))
    assert "# TODO(trainjob): TJ707" in result.text


@pytest.mark.parametrize(
    ("env", "shown"),
    [
        ("[k8s.V1EnvVar(name='A', value='b')]", "env={'A': 'b'}"),
        ("[k8s.V1EnvVar(name='A', value_from=s)]", "env=[k8s.V1EnvVar(name='A', value_from=s)]"),
    ],
)
def test_env_as_objects(env: str, shown: str) -> None:
    result = migrate(f"client.create_job(name='x', train_func=train, env_vars={env})\n")
    assert shown in result.text
    assert ("TJ707" in {f.code for f in result.findings if f.severity is Severity.ERROR}) is ("value_from" in env)


@pytest.mark.parametrize(
    ("requests", "marked"), [("{'cpu': 1}", True), ("{'cpu': 2}", False)], ids=["differ", "same"]
)  # fmt: skip
def test_requests_that_differ_from_limits_are_marked(requests: str, marked: bool) -> None:
    resources = f"k8s.V1ResourceRequirements(limits={{'cpu': 2}}, requests={requests})"
    result = migrate(f"client.create_job(name='x', train_func=train, resources_per_worker={resources})\n")
    assert "resources_per_node={'cpu': 2}" in result.text
    assert ("TJ722" in result.text) is marked


@pytest.mark.parametrize(
    ("definition", "func_args"),
    [
        ("def f(config: dict = None, *a): pass", "func_args={\"config\": p}"),
        ("def f(**kw): pass", "func_args=p"),
        ("def f(x, /): pass", "func_args=p"),
        ("from m import f", "func_args=p"),
        ("f = lambda x: x", "func_args=p"),
    ],
)  # fmt: skip
def test_the_dictionary_is_handed_over_by_name_where_that_is_possible(definition: str, func_args: str) -> None:
    result = migrate(f"{definition}\nclient.create_job(name='x', train_func=f, parameters=p)\n")
    assert func_args in result.text
    assert ("TJ704" in result.text) is (func_args == "func_args=p")
