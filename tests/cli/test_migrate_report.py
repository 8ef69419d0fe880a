"""The forms of `migrate`'s report, where they go, and `--explain`."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.report import estate
from trainjob.cli.migrate import command
from trainjob.kube.yaml import load

ROOT = Path(__file__).parents[2]
CASES = ROOT / "migration" / "cases"
EXAMPLE = ROOT / "examples" / "pytorchjob.yaml"
PLAIN = CASES / "01-master-worker-python" / "before.yaml"
REFUSED = CASES / "44-deepspeed-hostfile" / "before.yaml"
FORMS = ("text", "json", "sarif", "markdown", "html")
STARTS = {
    "text": "note[",
    "json": '{\n  "target"',
    "sarif": '{\n  "$schema"',
    "markdown": "# PyTorchJob",
    "html": "<!doctype",
}


def migrate(*args: str | Path, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(command, [str(a) for a in args], input=stdin, prog_name="migrate")


@pytest.mark.parametrize("form", FORMS)
def test_the_report_goes_to_stderr_and_the_product_to_stdout(form: str) -> None:
    result = migrate(EXAMPLE, "--format", form)
    assert result.exit_code == 1
    assert [d.data["kind"] for d in load(result.stdout)] == ["TrainJob"]
    assert result.stderr.startswith(STARTS[form])


@pytest.mark.parametrize("form", FORMS)
def test_with_a_file_only_a_summary_stays_on_stderr(form: str, tmp_path: Path) -> None:
    file = tmp_path / "out" / "report"
    result = migrate(EXAMPLE, "--format", form, "--report", file)
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "1 job migrated, 0 refused; 0 errors, 1 warning, 11 notes",
        f"report: {file}",
    ]
    assert file.read_text(encoding="utf-8").startswith(STARTS[form])
    assert [p.name for p in file.parent.iterdir()] == ["report"]


def test_the_text_in_a_file_is_the_text_of_stderr(tmp_path: Path) -> None:
    file = tmp_path / "report.txt"
    migrate(EXAMPLE, "--report", file)
    assert file.read_text(encoding="utf-8") == migrate(EXAMPLE).stderr
    migrate(EXAMPLE, "-q", "--report", file)
    assert file.read_text(encoding="utf-8") == migrate(EXAMPLE, "-q").stderr


def test_a_report_for_a_check_and_for_a_folder(tmp_path: Path) -> None:
    shutil.copy(PLAIN, tmp_path / "good.yaml")
    shutil.copy(REFUSED, tmp_path / "bad.yaml")
    page = tmp_path / "review.html"
    result = migrate(tmp_path, "-o", tmp_path / "out", "--format", "html", "--report", page)
    assert result.exit_code == 1
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["good.yaml"]
    text = page.read_text(encoding="utf-8")
    assert "Blockers by cause" in text
    assert "2 files read" in text
    checked = migrate(tmp_path / "good.yaml", "--check", "--format", "sarif", "--report", tmp_path / "r.sarif")
    assert (checked.exit_code, checked.stdout) == (1, "")


def test_a_report_never_replaces_an_input(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    shutil.copy(PLAIN, file)
    result = migrate(file, "--report", tmp_path / "." / "job.yaml")
    assert result.exit_code == 2
    assert "inputs are never overwritten" in result.stderr
    assert file.read_bytes() == PLAIN.read_bytes()


def test_a_report_never_replaces_an_output(tmp_path: Path) -> None:
    result = migrate(PLAIN, "-o", tmp_path, "--report", tmp_path / "before.yaml")
    assert result.exit_code == 2
    assert "give another file" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_report_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = migrate(PLAIN, "--report", tmp_path / "file" / "report.txt")
    assert result.exit_code == 2
    assert "cannot write the report" in result.stderr


def test_a_file_that_cannot_be_read_holds_its_jobs_back(tmp_path: Path) -> None:
    file = tmp_path / "broken.yaml"
    file.write_text(PLAIN.read_text(encoding="utf-8") + "\n---\nkind: PyTorchJob\nx: [\n", encoding="utf-8")
    result = migrate(file, "--format", "html", "--report", tmp_path / "r.html")
    assert (result.exit_code, result.stdout) == (2, "")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert '<span class="tag held">held back</span>' in text
    assert '<b class="migrated">0</b>' in text


def test_docs_url_from_an_option_or_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    given = json.loads(migrate(EXAMPLE, "--format", "sarif", "--docs-url", "https://docs.example.com/r").stderr)
    monkeypatch.setenv("TRAINJOB_DOCS_URL", "https://docs.example.com/r")
    from_env = json.loads(migrate(EXAMPLE, "--format", "sarif").stderr)
    assert given == from_env
    assert given["runs"][0]["tool"]["driver"]["rules"][0]["helpUri"].startswith("https://docs.example.com/r/TJ")


def test_absolute_inputs_leave_no_machine_path_in_the_output(tmp_path: Path) -> None:
    team = tmp_path / "manifests" / "team"
    team.mkdir(parents=True)
    shutil.copy(PLAIN, team / "job.yaml")
    assert str(tmp_path) not in migrate(tmp_path / "manifests").stdout
    assert "migrated-from: team/job.yaml:1 PyTorchJob ml-demo/demo-basic" in migrate(tmp_path / "manifests").stdout
    assert "migrated-from: job.yaml:1 " in migrate(team / "job.yaml").stdout
    assert "migrated-from: -:1 " in migrate("-", stdin=PLAIN.read_bytes()).stdout


def test_relative_inputs_are_named_as_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jobs").mkdir()
    shutil.copy(PLAIN, tmp_path / "jobs" / "job.yaml")
    monkeypatch.chdir(tmp_path)
    for given in ("jobs", "jobs/job.yaml"):
        assert "migrated-from: jobs/job.yaml:1 " in migrate(given).stdout


class TestExplain:
    def test_it_prints_a_table_and_no_trainjob(self) -> None:
        result = migrate("--explain", EXAMPLE)
        assert result.stdout.startswith(f"TrainJob llama-sft, from {EXAMPLE}:3:1\n")
        assert "spec.trainer.numNodes" in result.stdout
        assert "kind: TrainJob" not in result.stdout
        assert "1 job migrated" in result.stderr

    def test_json(self) -> None:
        result = migrate("--explain", EXAMPLE, "--format", "json")
        (job,) = json.loads(result.stdout)["jobs"]
        assert job["line"] == 3
        assert "1 job migrated" in result.stderr

    def test_a_refused_job_says_why_on_stderr(self) -> None:
        result = migrate("--explain", REFUSED)
        assert (result.exit_code, result.stdout) == (1, "")
        assert "error[TJ203]" in result.stderr

    @pytest.mark.parametrize(
        "more", [("--format", "html"), ("-o", "out"), ("--report", "r"), ("--check",), ("--in-place",)]
    )
    def test_it_goes_with_nothing_that_writes(self, more: tuple[str, ...]) -> None:
        result = migrate("--explain", EXAMPLE, *more)
        assert result.exit_code == 2
        assert "--explain" in result.stderr


def test_three_hundred_jobs(tmp_path: Path) -> None:
    """A report of an estate takes seconds, and stays a page that a browser opens at once."""
    folder = estate.write(tmp_path / "estate", 300)
    page = tmp_path / "review.html"
    started = time.perf_counter()
    result = migrate(folder, "--check", "--format", "html", "--report", page)
    took = time.perf_counter() - started
    assert result.exit_code == 2  # templates that nobody rendered are among the cases
    text = page.read_text(encoding="utf-8")
    assert text.count('<tr data-state="') == 300
    assert took < 30, took  # about 3 s alone on 2 cores
    assert len(text) < 10_000_000
    names = {name for name, _ in estate.estate(300)}
    assert len(names) == 300


def test_help_names_the_forms() -> None:
    text = migrate("--help").stdout
    for word in ("sarif", "markdown", "html", "--report FILE", "--explain"):
        assert word in text
