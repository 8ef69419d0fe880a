"""`trainjob migrate-sdk` as a user runs it: stdout, diff, folders, in place with git, exit codes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from trainjob.cli.migrate_sdk import command

CASES = Path(__file__).parents[1] / "sdkmod" / "cases"
PIPELINES = CASES.parent / "pipelines"
CASE = CASES / "10-aliases"
MARKED = CASES / "08-watch"
V1 = "from kubeflow.training import TrainingClient\nTrainingClient().delete_job('x')\n"
V2 = "from kubeflow.trainer import TrainerClient\nTrainerClient().delete_job(name='x')\n"


def migrate(*args: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(command, [str(a) for a in args], input=stdin, prog_name="trainjob migrate-sdk")


def git(folder: Path, *args: str) -> None:
    name = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    subprocess.run(["git", "-C", str(folder), *name, *args], check=True, capture_output=True)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(V1, encoding="utf-8")
    return path


class TestOutput:
    def test_one_script_goes_to_stdout_and_the_report_to_stderr(self) -> None:
        result = migrate(CASE / "before.py")
        assert result.stdout == (CASE / "after.py").read_text(encoding="utf-8")
        assert "places rewritten, 0 marks to decide; 0 errors, 0 warnings" in result.stderr
        assert result.exit_code == 0

    def test_stdin(self) -> None:
        result = migrate("-", stdin=V1)
        assert (result.stdout, result.exit_code) == (V2, 0)

    def test_several_scripts_give_a_diff_that_patch_understands(self, tmp_path: Path) -> None:
        for name in ("a.py", "b.py"):
            (tmp_path / name).write_text(V1, encoding="utf-8")
        result = subprocess.run(
            [sys.executable, "-m", "trainjob", "migrate-sdk", "a.py", "b.py"],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert result.returncode == 0, result.stderr
        (tmp_path / "p.diff").write_text(result.stdout, encoding="utf-8")
        git(tmp_path, "init", "-q")
        git(tmp_path, "apply", "p.diff")
        assert [(tmp_path / n).read_text(encoding="utf-8") for n in ("a.py", "b.py")] == [V2, V2]

    def test_diff_of_one(self, script: Path) -> None:
        result = migrate(script, "--diff")
        assert "-from kubeflow.training import TrainingClient\n" in result.stdout
        assert "+from kubeflow.trainer import TrainerClient\n" in result.stdout
        assert "\x1b" not in result.stdout

    def test_a_folder_is_walked_for_python_and_yaml(self, tmp_path: Path) -> None:
        (tmp_path / "in").mkdir()
        (tmp_path / "in" / "a.py").write_text(V1, encoding="utf-8")
        (tmp_path / "in" / "plain.py").write_text("x = 1\n", encoding="utf-8")
        shutil.copy(PIPELINES / "launcher.yaml", tmp_path / "in")
        result = migrate(tmp_path / "in", "-o", tmp_path / "out")
        assert [p.name for p in (tmp_path / "out").iterdir()] == ["a.py"]
        assert (tmp_path / "out" / "a.py").read_text(encoding="utf-8") == V2
        assert "TJ751" in result.stderr
        assert "1 file written, 1 file without the v1 SDK" in result.stderr
        assert result.exit_code == 1
        again = migrate(tmp_path / "in", "-o", tmp_path / "out")
        assert "it exists" in again.stderr
        assert again.exit_code == 2
        assert migrate(tmp_path / "in", "-o", tmp_path / "out", "--overwrite", "--fail-on", "never").exit_code == 0

    def test_an_input_is_not_overwritten_by_o(self, script: Path) -> None:
        result = migrate(script, "-o", script.parent, "--overwrite")
        assert "it is an input" in result.stderr
        assert result.exit_code == 2
        assert script.read_text(encoding="utf-8") == V1

    def test_yaml_is_only_reported(self) -> None:
        result = migrate(PIPELINES / "compiled.yaml")
        assert result.stdout == ""
        assert result.stderr.count("error[TJ752]") == 2
        assert result.exit_code == 1

    def test_json(self) -> None:
        report = json.loads(migrate(MARKED / "before.py", "--format", "json").stderr)
        assert report["rewritten"] == 11
        assert report["marks"] == 5
        assert {f["code"] for f in report["findings"]} == {"TJ707", "TJ711", "TJ713", "TJ714"}
        assert all(f["file"].endswith("before.py") and f["line"] for f in report["findings"])

    def test_quiet_leaves_notes_away(self) -> None:
        assert "note[" not in migrate(MARKED / "before.py", "-q").stderr
        assert "warning[" in migrate(MARKED / "before.py", "-q").stderr


class TestInPlace:
    def test_a_committed_file_is_rewritten_and_keeps_its_mode(self, script: Path) -> None:
        script.chmod(0o755)
        git(script.parent, "init", "-q")
        git(script.parent, "add", ".")
        git(script.parent, "commit", "-qm", "x")
        result = migrate(script, "--in-place")
        assert result.exit_code == 0, result.stderr
        assert result.stdout == ""
        assert script.read_text(encoding="utf-8") == V2
        assert script.stat().st_mode & 0o777 == 0o755
        assert [p.name for p in script.parent.iterdir() if p.name != ".git"] == ["train.py"]

    def test_again_in_place_changes_nothing_although_the_file_is_not_committed(self, script: Path) -> None:
        migrate(script, "--in-place", "--backup", ".bak")
        result = migrate(script, "--in-place")
        assert script.read_text(encoding="utf-8") == V2
        assert result.exit_code == 0

    @pytest.mark.parametrize("state", ["no git", "untracked", "staged", "changed"])
    def test_without_a_copy_in_git_nothing_is_written(self, script: Path, state: str) -> None:
        text = V1
        if state != "no git":
            git(script.parent, "init", "-q")
        if state in ("staged", "changed"):
            git(script.parent, "add", ".")
        if state == "changed":
            git(script.parent, "commit", "-qm", "x")
            text = V1 + "# more\n"
            script.write_text(text, encoding="utf-8")
        result = migrate(script, "--in-place")
        assert "error[TJ926]" in result.stderr
        assert result.exit_code == 2
        assert script.read_text(encoding="utf-8") == text

    def test_one_unsafe_file_keeps_all_from_being_written(self, script: Path) -> None:
        git(script.parent, "init", "-q")
        git(script.parent, "add", ".")
        git(script.parent, "commit", "-qm", "x")
        (script.parent / "other.py").write_text(V1, encoding="utf-8")
        assert migrate(script.parent, "--in-place").exit_code == 2
        assert script.read_text(encoding="utf-8") == V1

    def test_backup(self, script: Path) -> None:
        assert migrate(script, "--in-place", "--backup", ".bak").exit_code == 0
        assert script.read_text(encoding="utf-8") == V2
        assert script.with_name("train.py.bak").read_text(encoding="utf-8") == V1


class TestWords:
    @pytest.mark.parametrize(
        "args",
        [
            ("--in-place", "--diff"),
            ("--in-place", "-o", "x"),
            ("--backup", ".bak"),
            ("--in-place", "--backup", ".py"),
            ("--sdk-version", "1.5"),
        ],
    )
    def test_wrong_usage(self, script: Path, args: tuple[str, ...]) -> None:
        assert migrate(script, *args).exit_code == 2

    def test_stdin_cannot_be_written_in_place(self) -> None:
        assert migrate("-", "--in-place", stdin=V1).exit_code == 2

    def test_marks_give_exit_code_1_and_never_gives_0(self) -> None:
        assert migrate(MARKED / "before.py").exit_code == 1
        assert migrate(MARKED / "after.py").exit_code == 1
        assert migrate(MARKED / "before.py", "--fail-on", "never").exit_code == 0

    def test_unreadable_input(self, tmp_path: Path) -> None:
        (tmp_path / "a.py").write_text("from kubeflow.training import (\n", encoding="utf-8")
        (tmp_path / "b.py").write_bytes(b"kubeflow \xff\n")
        (tmp_path / "c.yaml").write_text("kind: [PyTorchJob\n", encoding="utf-8")
        for name, code in (("a.py", "TJ700"), ("b.py", "TJ912"), ("c.yaml", "TJ905"), ("gone.py", "TJ912")):
            result = migrate(tmp_path / name)
            assert f"error[{code}]" in result.stderr
            assert (result.stdout, result.exit_code) == ("", 2)

    def test_nothing_found(self, tmp_path: Path) -> None:
        (tmp_path / "a.py").write_text("x = 1\n", encoding="utf-8")
        result = migrate(tmp_path / "a.py")
        assert (result.stdout, result.exit_code) == ("x = 1\n", 0)
        assert "note[TJ721]" in result.stderr

    @pytest.mark.parametrize(
        ("requirement", "shown"),
        [
            ("kubeflow-training==1.8.1", "1.8"),
            ("kubeflow_training[huggingface]~=1.7.0", "1.8"),
            ("kubeflow-training>=1.7", "1.9"),
        ],
    )
    def test_requirements_beside_the_script_say_the_version(self, tmp_path: Path, requirement: str, shown: str) -> None:
        """1.7 has no create_job: a script that calls it was not for 1.7."""
        (tmp_path / "pkg").mkdir()
        text = "from kubeflow.training import TrainingClient\nTrainingClient().create_job(name='x', base_image='i')\n"
        (tmp_path / "pkg" / "a.py").write_text(text, encoding="utf-8")
        (tmp_path / "requirements-dev.txt").write_text(f"kubernetes\n{requirement}\n", encoding="utf-8")
        assert f"read as a script for kubeflow-training {shown}:" in migrate(tmp_path / "pkg" / "a.py").stderr

    def test_the_runtime_of_functions(self, tmp_path: Path) -> None:
        call = "TrainingClient().create_job(name='x', train_func=f)\n"
        text = f"from kubeflow.training import TrainingClient\ndef f(): pass\n{call}"
        (tmp_path / "a.py").write_text(text, encoding="utf-8")
        assert 'runtime="torch-fsdp-1gpu"' in migrate(tmp_path / "a.py", "--runtime", "torch-fsdp-1gpu").stdout

    def test_without_libcst_it_says_which_extra(self, script: Path) -> None:
        code = (
            "import importlib.util as u, sys; real = u.find_spec\n"
            "u.find_spec = lambda name, *a: None if name == 'libcst' else real(name, *a)\n"
            "from trainjob.cli.migrate_sdk import command; command([sys.argv[1]])"
        )
        result = subprocess.run([sys.executable, "-c", code, str(script)], capture_output=True, text=True, check=False)
        assert result.returncode == 2
        assert "pip install 'trainjob[sdk-migration]'" in result.stderr

    def test_help_does_not_import_libcst(self) -> None:
        code = "import sys; from trainjob.cli import command, migrate_sdk, codes; print('libcst' in sys.modules)"
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert result.stdout.strip() == "False"
