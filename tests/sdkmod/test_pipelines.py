"""Compiled pipelines, Argo workflows and components: each step that creates PyTorchJobs is reported."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from trainjob.findings import Report
from trainjob.kube import yaml
from trainjob.kube.yaml import YamlError
from trainjob.sdkmod.engine import Options, migrate_script
from trainjob.sdkmod.pipelines import yaml_steps

FOLDER = Path(__file__).parent / "pipelines"


@pytest.mark.parametrize("name", ["compiled", "workflow", "launcher"])
def test_report(name: str, golden: Callable[[Path, str], None]) -> None:
    """compiled.yaml is what kfp 2.17.3 made of two steps with PyTorchJobs and one without."""
    text = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    golden(FOLDER / f"{name}.txt", Report(tuple(yaml_steps(text, f"{name}.yaml"))).text())


def test_a_step_without_pytorchjobs_is_not_reported() -> None:
    text = (FOLDER / "compiled.yaml").read_text(encoding="utf-8")
    found = yaml_steps(text, "compiled.yaml")
    assert [f.subject for f in found] == ["launch", "train_step"]
    assert [f.code for f in found] == ["TJ752", "TJ752"]


def test_the_place_is_that_of_the_step() -> None:
    text = (FOLDER / "compiled.yaml").read_text(encoding="utf-8")
    for finding in yaml_steps(text, "compiled.yaml"):
        assert finding.where is not None
        shown = text.splitlines()[finding.where.line - 1 :]
        assert "--function_to_execute" in "\n".join(shown[:6])
        assert f"- {finding.subject}" in "\n".join(shown[:6])


def test_a_pipeline_wrapped_in_a_custom_resource() -> None:
    """`kfp` can compile to a PipelineVersion object (kubernetes_manifest_format)."""
    inner = yaml.load((FOLDER / "compiled.yaml").read_text(encoding="utf-8"))[0].data
    outer = {
        "apiVersion": "pipelines.kubeflow.org/v2beta1",
        "kind": "PipelineVersion",
        "metadata": {"name": "train"},
        "spec": {"pipelineSpec": inner},
    }
    found = yaml_steps(yaml.dump(outer), "crd.yaml")
    assert [f.subject for f in found] == ["launch", "train_step"]
    assert all(f.where is not None and "pipelineSpec" in f.where.path for f in found)


def test_a_file_without_pytorchjobs_says_nothing() -> None:
    assert yaml_steps("kind: Workflow\nspec: {templates: [{name: a, container: {image: b}}]}\n", "x") == []
    assert yaml_steps("", "x") == []


def test_broken_yaml_raises() -> None:
    with pytest.raises(YamlError):
        yaml_steps("kind: [PyTorchJob\n", "x")


STEP = """\
from kfp import dsl

@dsl.component
def step(name: str):
    {body}
"""


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        ("import os; os.system('kubectl delete pytorchjobs ' + name)", ["TJ750"]),
        ("from kubeflow.training import TrainingClient; TrainingClient().delete_job(name)", ["TJ750"]),
        ("print(name)", []),
    ],
)
def test_what_a_component_does(body: str, codes: list[str]) -> None:
    result = migrate_script(STEP.format(body=body), file="p.py")
    assert [f.code for f in result.findings if f.code == "TJ750"] == codes
    assert result.found is bool(codes)


def test_the_same_word_outside_a_pipeline_is_no_step() -> None:
    result = migrate_script("def clean(name):\n    run('kubectl delete pytorchjobs ' + name)\n", file="p.py")
    assert (result.findings, result.found) == ((), False)


def test_a_launcher_in_a_file_beside_the_script(tmp_path: Path) -> None:
    script = "import kfp\nop = kfp.components.load_component_from_file('c.yaml')\n# pytorchjob\n"
    (tmp_path / "c.yaml").write_text((FOLDER / "launcher.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    options = Options(folder=str(tmp_path))
    assert [f.code for f in migrate_script(script, file="p.py", options=options).findings] == ["TJ751"]
    (tmp_path / "c.yaml").write_text("name: other\n", encoding="utf-8")
    assert migrate_script(script, file="p.py", options=options).findings == ()
