"""Helm charts: what helm renders is migrated, and told at the lines of the templates.

rendered_chart.yaml is what helm 3.19.2 prints for chart/. Where a helm is at hand it must still print that.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from trainjob.cli.migrate import command
from trainjob.findings import Severity
from trainjob.kube import yaml
from trainjob.migrate.tree import helm
from trainjob.migrate.tree.align import Lines, align

HERE = Path(__file__).parent
CHART, RENDERED = HERE / "chart", HERE / "rendered_chart.yaml"
TEMPLATE = (CHART / "templates" / "job.yaml").read_text(encoding="utf-8").splitlines()
BUILT = Path.home() / ".cache" / "trainjob" / "helm" / "helm"


def real_helm() -> list[Path]:
    """The helm of this machine, if there is one."""
    try:
        return [helm.find_helm()]
    except helm.HelmError:
        return [BUILT] if BUILT.exists() else []


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that prints what helm printed, and keeps its arguments."""
    program = tmp_path / "bin" / "helm"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > "{tmp_path}/args"\ncat "{RENDERED}"\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv(helm.VARIABLE, str(program))
    return program


def migrate(*args: str | Path) -> Result:
    return CliRunner().invoke(command, [str(a) for a in args], prog_name="migrate")


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    return shutil.copytree(CHART, tmp_path / "charts" / "train")


def test_the_recording_is_what_a_real_helm_prints() -> None:
    recorded = RENDERED.read_text(encoding="utf-8")
    for program in real_helm():
        assert helm.render(program, CHART, "chart", helm.Settings()).text == recorded
    assert recorded.count("# Source: train/templates/") == 2


class TestLines:
    def origins(self) -> dict[str, int]:
        """Rendered line -> 1-based line of the template, for the job."""
        doc = next(d for d in yaml.split(RENDERED.read_text(encoding="utf-8")) if "PyTorchJob" in d.text)
        lines = doc.text.splitlines()
        found = align(lines, Lines.of("\n".join(TEMPLATE)))
        return {
            f"{i}:{line.strip()}": at + 1
            for i, (line, at) in enumerate(zip(lines, found, strict=True))
            if at is not None
        }

    def test_every_line_comes_from_the_line_that_made_it(self) -> None:
        for key, at in self.origins().items():
            text = key.partition(":")[2]
            template = TEMPLATE[at - 1].strip()
            if "{{" not in template:
                assert text == template

    @pytest.mark.parametrize(
        ("rendered", "template"),
        [
            ("apiVersion: kubeflow.org/v1", 2),
            ("name: train-job", 5),
            ("app.kubernetes.io/name: train", 7),  # an include
            ("Worker:", 13),  # the second turn of a loop
            ("replicas: 2", 14),
            ("image: registry.example.com/team/train:1", 20),
            ('value: "0.1"', 25),
            ("nvidia.com/gpu: 1", 28),  # toYaml
        ],
    )
    def test_lines(self, rendered: str, template: int) -> None:
        found = {at for key, at in self.origins().items() if key.partition(":")[2] == rendered}
        assert found == {template}


def test_edits_are_notes_of_their_own_code() -> None:
    text = RENDERED.read_text(encoding="utf-8")
    rendered = helm.Rendered("c", text, [helm.Origin("c/t.yaml", 1)] * len(text.splitlines()))
    (only,) = helm.edits(rendered)
    assert (only.code, only.severity) == ("TJ924", Severity.NOTE)
    assert "kind becomes TrainJob" in only.message


class TestCommand:
    @pytest.mark.usefixtures("recorded")
    def test_the_rendered_chart_is_migrated(self, chart: Path, tmp_path: Path) -> None:
        result = migrate(chart.parent)
        assert result.exit_code == 1, result.stderr  # TJ405
        assert [d.data["kind"] for d in yaml.load(result.stdout)] == ["Service", "TrainJob"]
        assert (tmp_path / "args").read_text(encoding="utf-8").split() == ["template", "train", str(chart)]

    @pytest.mark.usefixtures("recorded")
    def test_findings_stand_at_the_template(self, chart: Path) -> None:
        said = migrate(chart).stderr
        assert f"warning[TJ405] {chart}/templates/job.yaml:10:1: ttlSecondsAfterFinished 3600" in said
        assert f"{chart}/templates/job.yaml:13:1: success" in said
        assert "(made by {{ $role }})" in said

    @pytest.mark.usefixtures("recorded")
    def test_the_lines_to_edit(self, chart: Path) -> None:
        lines = [line for line in migrate(chart).stderr.splitlines() if line.startswith("note[TJ924]")]
        assert [int(line.split(":")[1]) for line in lines] == [2, 3, 10, 11, 14, 15, 19, 20, 21, 22, 27]
        assert "image becomes `spec.trainer.image` (made by {{ $.Values.image }})" in lines[7]

    @pytest.mark.usefixtures("recorded")
    def test_values_release_and_namespace(self, chart: Path, tmp_path: Path) -> None:
        values = chart / "values.yaml"
        migrate(chart, "--helm-values", values, "--helm-release", "eu", "--helm-namespace", "nlp")
        assert (tmp_path / "args").read_text(encoding="utf-8").split() == [
            "template", "eu", str(chart), "--values", str(values), "--namespace", "nlp",
        ]  # fmt: skip

    @pytest.mark.usefixtures("recorded")
    def test_the_output_is_a_rendered_file(self, chart: Path, tmp_path: Path) -> None:
        result = migrate(chart.parent, "-o", tmp_path / "out")
        assert "1 file written" in result.stderr
        out = tmp_path / "out" / "train" / "rendered.yaml"
        assert "kind: TrainJob" in out.read_text(encoding="utf-8")
        assert "PyTorchJob" in (chart / "templates" / "job.yaml").read_text(encoding="utf-8")

    @pytest.mark.usefixtures("recorded")
    def test_templates_are_not_rewritten_in_place(self, chart: Path) -> None:
        before = {p: p.read_bytes() for p in chart.rglob("*.yaml")}
        result = migrate(chart, "--in-place", "--backup", ".orig", "--partial")
        assert result.exit_code == 2
        assert "templates of a chart are not rewritten in place" in result.stderr
        assert {p: p.read_bytes() for p in chart.rglob("*") if p.suffix == ".yaml"} == before

    def test_without_helm(self, chart: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(helm.VARIABLE, "no-such-helm")
        result = migrate(chart)
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"error[TJ925] {chart}/Chart.yaml:1:1: not rendered" in result.stderr
        assert "helm template CHART | migrate -" in result.stderr

    def test_a_chart_that_helm_refuses(self, recorded: Path, chart: Path) -> None:
        recorded.write_text("#!/bin/sh\necho 'Error: values are missing' >&2\nexit 1\n", encoding="utf-8")
        result = migrate(chart)
        assert result.exit_code == 2
        assert "helm fails: values are missing" in result.stderr

    def test_a_chart_without_jobs_is_not_rendered(self, chart: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(helm.VARIABLE, "no-such-helm")
        (chart / "templates" / "job.yaml").write_text("kind: Service\n", encoding="utf-8")
        assert "TJ925" not in migrate(chart).stderr
