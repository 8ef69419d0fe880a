# ruff: noqa: E501 - rows of lines before and after
"""Single rewrites: what a line becomes, and what must stay as it is."""

from __future__ import annotations

import ast

import pytest

from trainjob.sdkmod.engine import Options, ScriptResult, migrate_script

HEAD = "from kubeflow.training import TrainingClient, constants\n\nc = TrainingClient()\n"


def line(text: str, version: tuple[int, int] | None = None) -> ScriptResult:
    return migrate_script(HEAD + text + "\n", file="s.py", options=Options(version=version))


def last(result: ScriptResult) -> str:
    ast.parse(result.text)
    return result.text.rstrip("\n").split("\n")[-1]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("c.get_job('x', None, 'PyTorchJob', 30)", "c.get_job(name='x')"),
        ("ok = c.is_job_succeeded('x')", "ok = c.get_job(name='x').status == \"Complete\""),
        ("ok = c.is_job_failed('x') is True", "ok = (c.get_job(name='x').status == \"Failed\") is True"),
        ("ok = not c.is_job_failed('x')", "ok = not c.get_job(name='x').status == \"Failed\""),
        ("ok = c.is_job_created('x')", 'ok = c.get_job(name=\'x\').status in {"Created", "Running", "Complete", "Failed"}'),
        ("ok = [c.is_job_running(n) for n in names]", "ok = [(c.get_job(name=n).status == \"Running\") for n in names]"),
        ("c.wait_for_job_conditions('x', expected_conditions={'Created'})", 'c.wait_for_job_status(name=\'x\', status={"Created", "Running", "Complete"})'),
        ("c.wait_for_job_conditions('x', callback=print)", "c.wait_for_job_status(name='x', callbacks=[print])"),
        ("print(c.get_job('x').metadata.name)", "print(c.get_job(name='x').name)"),
        ("print([j.metadata.name for j in c.list_jobs()])", "print([j.name for j in c.list_jobs()])"),
        ("print(c.namespace, c.core_api)", "print(c.backend.namespace, c.backend.core_api)"),
        ("print(constants.JOB_CONDITION_SUCCEEDED)", 'print("Complete")'),
        ("p = c.get_job_pod_names('x')", "p = [step.pod_name for step in c.get_job(name='x').steps]"),
        ("t = c.get_job_logs('x')[0]", "t = {\"node-0\": \"\\n\".join(c.get_job_logs(name='x', step=\"node-0\"))}"),
        ("(c).delete_job('x')", "(c).delete_job(name='x')"),
        ("print(f'{c.is_job_failed(name)}')", "print(f'{(c.get_job(name=name).status == \"Failed\")}')"),
        ('print(f"{c.is_job_failed(name)}")', "print(f\"{(c.get_job(name=name).status == 'Failed')}\")"),
    ],
)  # fmt: skip
def test_a_line(before: str, after: str) -> None:
    assert last(line(before)) == after


@pytest.mark.parametrize(
    "text",
    [
        "other.get_job('x')",
        "other.delete_job('x', namespace='y')",
        "batch.list_jobs(namespace='x')",
        "job = katib.get_job('x'); print(job.metadata.name, job.status.conditions)",
        "'TrainingClient().create_job()'",
        "class C:\n    client = None\n    def f(self): return self.client.get_job('x')",
    ],
)
def test_what_is_no_client_stays(text: str) -> None:
    assert line(text).text.endswith(text + "\n")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("c.get_job_conditions('x')", "TJ714"),
        ("c.update_job(j, 'x')", "TJ714"),
        ("c.is_job_restarting('x')", "TJ711"),
        ("c.get_job(**kw)", "TJ715"),
        ("f = c.create_job", "TJ715"),
        ("c.create_job()", "TJ715"),
        ("c.create_tfjob(t)", "TJ708"),
        ("c.get_job('x', job_kind='MPIJob')", "TJ708"),
        ("c.get_job('x', job_kind=kind)", "TJ708"),
        ("c.train('x')", "TJ710"),
        ("c.some_new_method()", "TJ714"),
        ("print(c.api_client)", "TJ717"),
        ("print(f'''{c.get_job_logs(name)}''')", "TJ715"),
        ("c.get_job_pods('x', is_master=flag)", "TJ715"),
        ("c.get_job_logs('x', replica_type='worker')", "TJ712"),
        ("c.create_job(job)", "TJ709"),
    ],
)
def test_what_cannot_be_rewritten_is_marked_and_stays(text: str, code: str) -> None:
    result = line(text)
    lines = result.text.rstrip("\n").split("\n")
    assert lines[-1] == text
    assert f"# TODO(trainjob): {code} " in result.text
    assert code in {f.code for f in result.findings if f.severity == "error"}


def test_a_mark_stands_above_the_whole_statement_and_keeps_its_indent() -> None:
    result = line("if x:\n    y = [\n        1,\n        c.get_job_conditions('x'),\n    ]")
    lines = result.text.split("\n")
    at = lines.index("    y = [")
    assert lines[at - 3].startswith("    # TODO(trainjob): TJ714")


def test_calls_inside_calls() -> None:
    result = line("c.delete_job(name=c.get_job('x').metadata.name)")
    assert last(result) == "c.delete_job(name=c.get_job(name='x').name)"


def test_a_namespace_that_all_calls_share_moves_to_the_client() -> None:
    text = 'NS = "a"\nfrom kubeflow.training import TrainingClient\nd = TrainingClient()\nd.get_job("x", namespace=NS)\nd.list_jobs(NS)\n'
    after = migrate_script(text, file="s.py").text
    assert "d = TrainerClient(backend_config=KubernetesBackendConfig(namespace=NS))" in after
    assert 'd.get_job(name="x")\nd.list_jobs()\n' in after


def test_a_namespace_that_is_set_later_does_not_move() -> None:
    text = 'from kubeflow.training import TrainingClient\nd = TrainingClient()\nNS = "a"\nd.list_jobs(namespace=NS)\n'
    after = migrate_script(text, file="s.py").text
    assert "d = TrainerClient()\n" in after
    assert "TrainerClient(backend_config=KubernetesBackendConfig(namespace=NS)).list_jobs()" in after


def test_a_call_without_a_namespace_keeps_the_default_one() -> None:
    text = 'from kubeflow.training import TrainingClient\nd = TrainingClient()\nd.list_jobs()\nd.list_jobs(namespace="a")\n'
    assert "d = TrainerClient()\nd.list_jobs()\n" in migrate_script(text, file="s.py").text


@pytest.mark.parametrize(
    ("text", "imports"),
    [
        ("from kubeflow.training import TrainingClient\nc = TrainingClient()\n", "from kubeflow.trainer import TrainerClient\n"),
        ("import kubeflow.training\nc = kubeflow.training.TrainingClient()\n", "from kubeflow.trainer import TrainerClient\n"),
        ("import os, kubeflow.training as t\nc = t.TrainingClient()\n", "import os\nfrom kubeflow.trainer import TrainerClient\n"),
        ("from kubeflow import training, katib\nc = training.TrainingClient()\n", "from kubeflow import katib\nfrom kubeflow.trainer import TrainerClient\n"),
        ("from kubeflow.training import *\nc = TrainingClient()\n", "from kubeflow.trainer import TrainerClient\n"),
        ("from kubeflow.training import TrainingClient as T\nc = T()\n", "from kubeflow.trainer import TrainerClient as T\n"),
        ("from kubeflow.training import TrainingClient  # the SDK\nc = TrainingClient()\n", "from kubeflow.trainer import TrainerClient  # the SDK\n"),
    ],
)  # fmt: skip
def test_imports(text: str, imports: str) -> None:
    after = migrate_script(text, file="s.py").text
    assert after.startswith(imports)
    assert "kubeflow.training" not in after


def test_an_import_in_a_block_of_its_own_leaves_no_empty_block() -> None:
    text = "try:\n    from kubeflow.training import TrainingClient\nexcept ImportError:\n    TrainingClient = None\n"
    after = migrate_script(text, file="s.py").text
    ast.parse(after)
    text = "def f():\n    from kubeflow.training import TrainingClient\n    from kubeflow.training.utils import utils\n"
    assert migrate_script(text, file="s.py").text == "def f():\n    pass\n    pass\n"


def test_a_pin_in_the_text_decides_the_version() -> None:
    text = "# kubeflow-training==1.8.1\nfrom kubeflow.training import TrainingClient\nTrainingClient().create_job(name='x', base_image='i')\n"
    notes = [f.message for f in migrate_script(text, file="s.py").findings if f.code == "TJ719"]
    assert notes == ["read as a script for kubeflow-training 1.8: that is what a requirement names"]


def test_broken_python_is_a_finding_with_its_place() -> None:
    text = "from kubeflow.training import TrainingClient\nx = (\n"
    result = migrate_script(text, file="s.py")
    assert result.text == text
    [finding] = result.findings
    assert (finding.code, finding.unreadable) == ("TJ700", True)
    assert finding.where is not None
    assert finding.where.line >= 2


@pytest.mark.parametrize("text", ["", "x = 1\n", "import kubeflow\n", "from kubeflow.trainer import TrainerClient\n"])
def test_a_script_without_v1_stays(text: str) -> None:
    result = migrate_script(text, file="s.py")
    assert (result.text, result.findings, result.found) == (text, (), False)


def test_a_byte_order_mark_stays() -> None:
    text = "\ufefffrom kubeflow.training import TrainingClient\nTrainingClient()\n"
    after = migrate_script(text, file="s.py").text
    assert after == "\ufefffrom kubeflow.trainer import TrainerClient\nTrainerClient()\n"


def test_an_open_mark_is_reported_again() -> None:
    text = (
        "from kubeflow.trainer import TrainerClient\nc = TrainerClient()\n# TODO(trainjob): TJ714 why\nc.update_job()\n"
    )
    result = migrate_script(text, file="s.py")
    assert result.text == text
    [finding] = result.findings
    assert (finding.code, finding.where.line if finding.where else 0) == ("TJ720", 3)


def test_a_kind_that_is_a_parameter_is_read_as_its_default() -> None:
    text = "def f(kind='PyTorchJob'):\n    c.delete_job('x', job_kind=kind)"
    result = line(text)
    assert last(result) == "    c.delete_job(name='x')"
    assert "it is read as its default, PyTorchJob" in " ".join(f.message for f in result.findings)
    assert "TJ708" in line(text.replace("PyTorchJob", "TFJob")).text


def test_statuses_in_a_variable_and_in_set() -> None:
    text = "wanted = ['Succeeded', 'Failed']\nc.wait_for_job_conditions('x', expected_conditions=set(wanted))"
    assert last(line(text)) == 'c.wait_for_job_status(name=\'x\', status={"Complete", "Failed"})'


def test_a_client_that_leaves_the_file_is_told() -> None:
    result = line("import ours\nours.check(c, 'x')")
    assert [f.message for f in result.findings if f.code == "TJ717"] == [
        "the client is handed to ours.check, which is not in this file"
    ]


def test_a_client_as_a_parameter_of_a_function_of_the_file() -> None:
    text = "def show(client, name):\n    print(client.get_job(name).metadata.name)\nshow(c, 'x')"
    assert "print(client.get_job(name=name).name)" in line(text).text


def test_a_job_that_goes_to_a_callback() -> None:
    text = "def tell(job):\n    print(job.metadata.name)\nc.wait_for_job_conditions('x', callback=tell)"
    assert "print(job.name)" in line(text).text


def test_a_migrated_pipeline_step_is_not_marked_for_its_messages() -> None:
    text = (
        "from kfp import dsl\n\n@dsl.component\ndef step():\n    from kubeflow.training import TrainingClient\n"
        "    print('Creating PyTorchJob')\n    TrainingClient().delete_job('x')\n"
    )
    once = migrate_script(text, file="s.py")
    assert "TODO" not in once.text
    again = migrate_script(once.text, file="s.py")
    assert (again.text, again.findings) == (once.text, ())
