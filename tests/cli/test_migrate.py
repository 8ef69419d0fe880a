"""`migrate` as a user runs it: files, folders, stdin, output folders, exit codes, bad input."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from trainjob.cli.migrate import command
from trainjob.kube.yaml import load

ROOT = Path(__file__).parents[2]
CASES = ROOT / "migration" / "cases"
EXAMPLE = ROOT / "examples" / "pytorchjob.yaml"
PLAIN = CASES / "01-master-worker-python" / "before.yaml"
REFUSED = CASES / "44-deepspeed-hostfile" / "before.yaml"
TEMPLATE = CASES / "13-helm-template" / "before.yaml"


def migrate(*args: str | Path, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(command, [str(a) for a in args], input=stdin, prog_name="migrate")


def kinds(text: str) -> list[str]:
    return [d.data["kind"] for d in load(text) if d.data is not None]


class TestOutput:
    def test_product_on_stdout_and_talk_on_stderr(self) -> None:
        result = migrate(EXAMPLE)
        assert kinds(result.stdout) == ["TrainJob"]
        assert "3 pods x 2 GPUs = 6 GPUs" in result.stderr
        assert "1 job migrated, 0 refused; 0 errors, 1 warning" in result.stderr

    def test_no_colour_and_no_escape_codes_without_a_terminal(self) -> None:
        result = migrate(EXAMPLE)
        assert "\x1b" not in result.stdout + result.stderr

    def test_stdin(self) -> None:
        result = migrate("-", stdin=PLAIN.read_bytes())
        assert result.exit_code == 0
        assert kinds(result.stdout) == ["TrainJob"]
        assert "<stdin>:7:3" in result.stderr

    def test_several_files_are_one_stream(self) -> None:
        result = migrate(PLAIN, EXAMPLE)
        assert kinds(result.stdout) == ["TrainJob", "TrainJob"]

    def test_the_same_bytes_as_the_library(self) -> None:
        assert migrate(PLAIN).stdout == (PLAIN.parent / "after.yaml").read_text(encoding="utf-8")

    def test_folder_to_folder_keeps_names_and_leaves_inputs_alone(self, tmp_path: Path) -> None:
        source = tmp_path / "in" / "team"
        source.mkdir(parents=True)
        shutil.copy(PLAIN, source / "job.yaml")
        (source / "service.yaml").write_text("kind: Service\n", encoding="utf-8")
        before = (source / "job.yaml").read_bytes()
        result = migrate(tmp_path / "in", "-o", tmp_path / "out")
        assert result.exit_code == 0
        assert sorted(p.relative_to(tmp_path / "out").as_posix() for p in (tmp_path / "out").rglob("*.*")) == [
            "team/job.yaml"
        ]
        assert (source / "job.yaml").read_bytes() == before
        assert "1 file written, 1 file without a v1 job" in result.stderr

    def test_json_report(self) -> None:
        result = migrate(EXAMPLE, "--format", "json")
        report = json.loads(result.stderr)
        assert (report["converted"], report["refused"]) == (1, 0)
        assert report["jobs"] == [
            {
                "file": str(EXAMPLE),
                "name": "llama-sft",
                "namespace": "nlp",
                "runtime": "torch-v1-compat-multinode",
                "generatedRuntime": False,
                "nodes": 3,
            }
        ]
        ttl = next(f for f in report["findings"] if f["code"] == "TJ405")
        assert (ttl["line"], ttl["path"]) == (13, "spec.runPolicy.ttlSecondsAfterFinished")
        assert kinds(result.stdout) == ["TrainJob"]

    def test_quiet_leaves_warnings(self) -> None:
        text = migrate(EXAMPLE, "-q").stderr
        assert "note[" not in text
        assert "warning[TJ405]" in text

    @pytest.mark.parametrize(
        ("target", "field"),
        [("2.0", "podSpecOverrides"), ("rhoai-3.5", "podTemplateOverrides"), ("v2.2.0", "runtimePatches")],
    )
    def test_target(self, target: str, field: str) -> None:
        result = migrate(CASES / "21-kueue-suspended-namespace" / "before.yaml", "--target", target)
        assert field in result.stdout

    def test_runtime_of_the_cluster(self) -> None:
        result = migrate(PLAIN, "--runtime", "torch-distributed")
        assert "name: torch-distributed\n" in result.stdout
        assert "TJ916" in result.stderr


class TestExitCodes:
    def test_warnings_give_1_unless_told_otherwise(self) -> None:
        assert migrate(EXAMPLE).exit_code == 1
        assert migrate(EXAMPLE, "--fail-on", "error").exit_code == 0
        assert migrate(REFUSED, "--fail-on", "never").exit_code == 0
        assert migrate(PLAIN, "--fail-on", "note").exit_code == 1

    def test_refused_gives_1_and_no_output(self) -> None:
        result = migrate(REFUSED)
        assert (result.exit_code, result.stdout) == (1, "")

    def test_unreadable_gives_2_whatever_the_threshold(self) -> None:
        result = migrate(TEMPLATE, "--fail-on", "never")
        assert (result.exit_code, result.stdout) == (2, "")

    def test_check(self, tmp_path: Path) -> None:
        result = migrate(PLAIN, "--check")
        assert (result.exit_code, result.stdout) == (1, "")
        done = tmp_path / "done.yaml"
        done.write_text(migrate(PLAIN).stdout, encoding="utf-8")
        assert migrate(done, "--check").exit_code == 0

    def test_our_own_repository_is_migrated(self) -> None:
        for folder in ("runtimes", "overlays", "trainjobs"):
            result = migrate(ROOT / folder, "--check", "--format", "json")
            assert json.loads(result.stderr)["converted"] == 0, folder

    def test_usage(self) -> None:
        assert migrate().exit_code == 2
        assert "choose one of 2.0, 2.1" in migrate(PLAIN, "--target", "9.9").stderr


class TestBadInput:
    def test_empty_file(self, tmp_path: Path) -> None:
        file = tmp_path / "empty.yaml"
        file.touch()
        result = migrate(file)
        assert (result.exit_code, result.stdout) == (1, "")
        assert "there is no v1 training job" in result.stderr

    def test_binary(self, tmp_path: Path) -> None:
        file = tmp_path / "x.yaml"
        file.write_bytes(b"\x7fELF\x02\x01\xd0\xff PyTorchJob")
        result = migrate(file)
        assert result.exit_code == 2
        assert "not UTF-8 text" in result.stderr

    def test_control_characters(self) -> None:
        result = migrate("-", stdin="kind: PyTorchJob\nx: \x01\n")
        assert result.exit_code == 2
        assert "not allowed in YAML" in result.stderr

    def test_tabs(self) -> None:
        result = migrate(CASES / "51-tabs" / "before.yaml")
        assert result.exit_code == 2
        assert "before.yaml:4:" in result.stderr
        assert "indent with spaces" in result.stderr

    def test_missing_file_and_link_loop(self, tmp_path: Path) -> None:
        loop = tmp_path / "loop"
        loop.symlink_to(loop)
        for path in (tmp_path / "nope.yaml", loop):
            result = migrate(path)
            assert result.exit_code == 2
            assert "cannot read" in result.stderr

    def test_folder_that_links_to_itself_ends(self, tmp_path: Path) -> None:
        shutil.copy(PLAIN, tmp_path / "job.yaml")
        (tmp_path / "self").symlink_to(tmp_path)
        result = migrate(tmp_path)
        assert result.exit_code == 0
        assert "1 job migrated" in result.stderr

    def test_folder_that_may_not_be_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        real = os.scandir

        def denied(path: str | os.PathLike[str]) -> object:
            if Path(path).name == "closed":
                raise PermissionError(13, "Permission denied", str(path))
            return real(path)

        (tmp_path / "closed").mkdir()
        shutil.copy(PLAIN, tmp_path / "job.yaml")
        monkeypatch.setattr(os, "scandir", denied)
        result = migrate(tmp_path)
        assert result.exit_code == 2
        assert "closed: Permission denied" in result.stderr

    def test_large_document(self, tmp_path: Path) -> None:
        file = tmp_path / "big.yaml"
        file.write_text("kind: PyTorchJob\nx: " + "a" * (50 * 1024 * 1024), encoding="utf-8")
        result = migrate(file)
        assert result.exit_code == 2
        assert "larger than 32 MiB" in result.stderr

    def test_a_broken_document_spoils_its_file_and_no_other(self, tmp_path: Path) -> None:
        broken = tmp_path / "broken.yaml"
        broken.write_text(PLAIN.read_text(encoding="utf-8") + "\n---\nkind: PyTorchJob\nx: [\n", encoding="utf-8")
        result = migrate(broken, EXAMPLE)
        assert result.exit_code == 2
        assert [d.data["metadata"]["name"] for d in load(result.stdout)] == ["llama-sft"]

    def test_existing_output_is_kept(self, tmp_path: Path) -> None:
        out = tmp_path / "before.yaml"
        out.write_text("mine", encoding="utf-8")
        result = migrate(PLAIN, "-o", tmp_path)
        assert result.exit_code == 2
        assert "it exists" in result.stderr
        assert out.read_text(encoding="utf-8") == "mine"
        assert migrate(PLAIN, "-o", tmp_path, "--overwrite").exit_code == 0
        assert "kind: TrainJob" in out.read_text(encoding="utf-8")

    def test_an_input_is_never_overwritten(self, tmp_path: Path) -> None:
        shutil.copy(PLAIN, tmp_path / "job.yaml")
        result = migrate(tmp_path / "job.yaml", "-o", tmp_path, "--overwrite")
        assert result.exit_code == 2
        assert "inputs are never overwritten" in result.stderr
        assert (tmp_path / "job.yaml").read_bytes() == PLAIN.read_bytes()

    def test_two_inputs_of_one_name(self, tmp_path: Path) -> None:
        result = migrate(PLAIN, REFUSED, "-o", tmp_path / "out")
        assert result.exit_code == 2
        assert "both lead there" in result.stderr
        assert not (tmp_path / "out").exists()

    def test_output_that_is_a_file(self, tmp_path: Path) -> None:
        file = tmp_path / "out"
        file.touch()
        assert migrate(PLAIN, "-o", file).exit_code == 2

    def test_no_temporary_files_stay(self, tmp_path: Path) -> None:
        migrate(PLAIN, "-o", tmp_path / "out")
        assert [p.name for p in (tmp_path / "out").iterdir()] == ["before.yaml"]


def test_the_real_process_streams_and_reports() -> None:
    """The installed script, with a pipe on both sides."""
    script = Path(sys.executable).parent / "migrate"
    stream = b"\n---\n".join([b"kind: Service"] * 50 + [PLAIN.read_bytes()])
    done = subprocess.run([str(script), "-", "-q"], input=stream, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(b"kind: Service") == 50
    assert done.stdout.count(b"kind: TrainJob") == 1
