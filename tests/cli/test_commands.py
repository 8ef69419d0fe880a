"""build, runtimes, validate, render and explain as a user runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from trainjob import __version__
from trainjob.catalog import catalog
from trainjob.cli import command
from trainjob.kube.yaml import load
from trainjob.kustomize import Engine

ROOT = Path(__file__).parents[2]


def trainjob(*args: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(command, [str(a) for a in args], input=stdin, prog_name="trainjob")


class TestMain:
    def test_help_names_every_command_and_imports_none(self) -> None:
        text = trainjob("--help").output
        for name in ("migrate", "build", "runtimes", "validate", "render", "explain"):
            assert name in text
        code = (
            "import sys; from trainjob.cli import command\n"
            "try: command(['--help'])\n"
            "except SystemExit: pass\n"
            "print([m for m in sys.modules if m.startswith('trainjob.')], file=sys.stderr)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stderr.strip() == "['trainjob.cli']"

    def test_version(self) -> None:
        assert __version__ in trainjob("--version").output

    def test_unknown_command(self) -> None:
        assert trainjob("frobnicate").exit_code == 2

    def test_heavy_packages_stay_out(self) -> None:
        code = (
            "import sys, trainjob, trainjob.builder, trainjob.migrate, trainjob.cli.migrate, trainjob.cli.validate\n"
            "print([m for m in ('torch', 'kubeflow', 'kubernetes', 'transformers', 'peft') if m in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[]"


class TestRuntimes:
    def test_list(self) -> None:
        lines = trainjob("runtimes", "list").stdout.splitlines()
        assert len(lines) == 1 + len(catalog())
        assert any("torch-fsdp-multinode" in line and "multi-node component" in line for line in lines)

    def test_list_json(self) -> None:
        facts = {r["name"]: r for r in json.loads(trainjob("runtimes", "list", "--format", "json").stdout)}
        assert facts["torch-fsdp-8gpu"]["gpusPerNode"] == 8
        assert facts["torch-v1-compat-multinode"]["gated"] is True

    def test_show_is_the_file_itself(self) -> None:
        shown = trainjob("runtimes", "show", "torch-lora-1gpu").stdout
        assert shown == (ROOT / "runtimes" / "torch-lora-1gpu.yaml").read_text(encoding="utf-8")

    def test_show_for_an_older_trainer(self) -> None:
        shown = load(trainjob("runtimes", "show", "torch-lora-1gpu", "--target", "2.1").stdout)[0].data
        assert shown["spec"]["mlPolicy"]["torch"] == {"numProcPerNode": "auto"}

    def test_unknown(self) -> None:
        result = trainjob("runtimes", "show", "nope")
        assert result.exit_code == 2
        assert "it has: " in result.stderr


class TestBuild:
    BASE = ("build", "--name", "tune", "--runtime", "torch-fsdp-8gpu", "--image", "registry.example.com/t:1")

    def test_complete(self) -> None:
        result = trainjob(
            *self.BASE, "-n", "nlp", "--env", "A=1=2", "--queue", "q", "--checkpoints", "ckpt",
            "--resource", "gpu=4", "--deadline", "60", "--", "torchrun", "/w/t.py", "--lr=1",
        )  # fmt: skip
        assert result.exit_code == 0, result.stderr
        job = load(result.stdout)[0].data
        trainer = job["spec"]["trainer"]
        assert trainer["command"] == ["torchrun", "/w/t.py", "--lr=1"]
        assert trainer["env"] == [{"name": "A", "value": "1=2"}]
        assert trainer["resourcesPerNode"]["limits"]["nvidia.com/gpu"] == "4"
        assert trainer["resourcesPerNode"]["requests"] == trainer["resourcesPerNode"]["limits"]
        assert job["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "q"}
        assert job["spec"]["activeDeadlineSeconds"] == 60

    def test_several_nodes_need_a_reason_and_a_runtime_for_it(self) -> None:
        assert "single-node runtime" in trainjob(*self.BASE, "--nodes", "2").stderr
        multi = ("build", "--name", "tune", "--runtime", "torch-fsdp-multinode", "--", "torchrun", "x.py")
        refused = trainjob(*multi)
        assert refused.exit_code == 1
        assert "one node is not enough" in refused.stderr
        allowed = trainjob(*multi[:5], "--allow-multi-node", "70B does not fit", *multi[5:])
        assert allowed.exit_code == 0, allowed.stderr
        assert "trainjob.dev/allow-multi-node: 70B does not fit" in allowed.stdout

    def test_storage(self) -> None:
        """Claims with their mode, S3, a shared cache; stdout stays the product."""
        forgotten = trainjob(*self.BASE)
        assert forgotten.exit_code == 0
        assert "warning[TJ580] TrainJob/tune: nothing lasting is mounted at /checkpoints" in forgotten.stderr
        assert load(forgotten.stdout)[0].data["kind"] == "TrainJob"
        known = trainjob(*self.BASE, "--no-checkpoints")
        assert known.stderr == ""
        assert load(known.stdout)[0].data["metadata"]["annotations"] == {"trainjob.dev/checkpoints": "none"}
        s3 = trainjob(*self.BASE, "--checkpoints", "s3://b-1/run", "--s3-secret", "data", "--cache", "m:rwx,ro")
        assert s3.stderr == ""
        assert "s3://b-1/run" in s3.stdout
        assert "key: AWS_S3_ENDPOINT" in s3.stdout
        assert "readOnly: true" in s3.stdout
        assert trainjob(*self.BASE, "--checkpoints", "c", "--no-checkpoints").exit_code == 2
        wrong = trainjob(*self.BASE, "--mount", "/data=c:rwz")
        assert wrong.exit_code == 1
        assert 'error: "c:rwz": after the colon one of rwo, rwop, rwx, rox' in wrong.stderr

    def test_a_claim_of_one_node_under_several(self) -> None:
        multi = ("build", "--name", "t", "--runtime", "torch-fsdp-multinode", "--allow-multi-node", "70B")
        refused = trainjob(*multi, "--checkpoints", "c:rwo")
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert "error[TJ581] TrainJob/t: 2 pods mount the claim" in refused.stderr
        unknown = trainjob(*multi, "--checkpoints", "c")
        assert unknown.exit_code == 0
        assert "warning[TJ584]" in unknown.stderr
        assert trainjob(*multi, "--checkpoints", "c/run:rwx").stderr == ""

    def test_reserved_variable(self) -> None:
        result = trainjob(*self.BASE, "--env", "PET_NNODES=2")
        assert result.exit_code == 1
        assert "PET_NNODES" in result.stderr

    def test_file_is_not_overwritten(self, tmp_path: Path) -> None:
        out = tmp_path / "job.yaml"
        assert trainjob(*self.BASE, "-o", out).exit_code == 0
        assert load(out.read_text(encoding="utf-8"))[0].data["kind"] == "TrainJob"
        assert trainjob(*self.BASE, "-o", out).exit_code == 2

    @pytest.mark.parametrize("bad", [("--env", "novalue"), ("--nodes", "0"), ("--target", "1.0")])
    def test_usage(self, bad: tuple[str, str]) -> None:
        assert trainjob(*self.BASE, *bad).exit_code == 2

    def test_unknown_runtime(self) -> None:
        result = trainjob("build", "--name", "x", "--runtime", "nope")
        assert result.exit_code == 2
        assert "torch-fsdp-8gpu" in result.stderr

    def test_what_a_trainjob_cannot_say_gets_a_runtime(self) -> None:
        result = trainjob(*self.BASE, "--deadline", "60", "--target", "2.1", "--", "torchrun", "x.py")
        assert [d.data["kind"] for d in load(result.stdout)] == ["TrainingRuntime", "TrainJob"]
        assert "a runtime of its own carries activeDeadlineSeconds" in result.stderr


class TestValidate:
    def test_valid(self) -> None:
        result = trainjob("validate", ROOT / "runtimes")
        assert result.exit_code == 0, result.stderr
        assert "9 checked for Trainer 2.3" in result.stderr

    def test_wrong_version_names_line_and_fix(self) -> None:
        result = trainjob(
            "validate", ROOT / "migration/cases/21-kueue-suspended-namespace/after.yaml", "--target", "2.1"
        )
        assert result.exit_code == 1
        assert 'unknown field "runtimePatches"' in result.stderr
        assert "after.yaml:" in result.stderr

    def test_json_and_stdin(self) -> None:
        result = trainjob("validate", "-", "--format", "json", stdin="kind: TrainJob\n")
        assert result.exit_code == 1
        body = json.loads(result.stdout)
        assert body["checked"] == 1
        assert body["findings"]

    def test_unreadable(self) -> None:
        assert trainjob("validate", "-", stdin="a: [").exit_code == 2

    def test_claims_of_another_input(self, tmp_path: Path) -> None:
        """Job and claims may be two files; a claim is not passed over."""
        job = trainjob(
            "build", "--name", "t", "--runtime", "torch-fsdp-multinode", "--allow-multi-node", "x",
            "--checkpoints", "tune-checkpoints",
        )  # fmt: skip
        (tmp_path / "job.yaml").write_text(job.stdout, encoding="utf-8")
        found = trainjob("validate", tmp_path, ROOT / "trainjobs/claims/one-node.yaml")
        assert found.exit_code == 1
        assert "error[TJ581]" in found.stderr
        assert "one-node.yaml:" in found.stderr
        assert "1 checked for Trainer 2.3; 1 errors" in found.stderr

    def test_other_kinds_are_counted(self) -> None:
        result = trainjob("validate", "-", stdin="kind: Service\n")
        assert "0 checked for Trainer 2.3, 1 of other kinds passed over" in result.stderr


@pytest.mark.kubectl
class TestRender:
    def test_prod(self, newest_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TRAINJOB_KUSTOMIZE", str(newest_engine.path))
        done = subprocess.run(
            [sys.executable, "-m", "trainjob", "render", str(ROOT / "overlays/prod")], capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout == (ROOT / "tests/golden/overlays/prod.yaml").read_bytes()
        assert b"7 ClusterTrainingRuntime" in done.stderr

    def test_broken_overlay(self, tmp_path: Path, newest_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TRAINJOB_KUSTOMIZE", str(newest_engine.path))
        (tmp_path / "kustomization.yaml").write_text("resources: [nope.yaml]\n", encoding="utf-8")
        result = trainjob("render", tmp_path)
        assert result.exit_code == 2
        assert "nope.yaml" in result.stderr


class TestExplain:
    def test_one(self) -> None:
        result = trainjob("explain", "tj206")
        assert "MASTER_ADDR" in result.stdout
        assert trainjob("explain", "TJ103").stdout.count("spec.nprocPerNode") == 1

    def test_all_are_unique_and_listed(self) -> None:
        lines = trainjob("explain").stdout.splitlines()
        codes = [line.split()[0] for line in lines]
        assert len(codes) == len(set(codes))
        assert {"TJ101", "TJ501", "TJ900"} <= set(codes)

    def test_unknown(self) -> None:
        assert trainjob("explain", "TJ000").exit_code == 2
