"""Whole trees as a user migrates them: layout, --in-place, links, placeholders, Argo CD."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.migrate.rules.support import v1
from tests.migrate.tree.support import BASE, JOB
from trainjob.cli import inplace
from trainjob.cli.migrate import command
from trainjob.kube import yaml

OVERLAY = (
    "# for production\nresources:\n- ../base\nnamespace: prod\npatches:\n"
    "- target: {kind: PyTorchJob, name: tune}\n  path: more.yaml\n"
)
MORE = "- {op: replace, path: /spec/pytorchReplicaSpecs/Worker/replicas, value: 3}\n"
TREE = {**BASE, "prod/kustomization.yaml": OVERLAY, "prod/more.yaml": MORE, "README.md": "# Jobs\n"}
COMPONENT = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n- path: p.yaml\n"
SMP = "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: tune}\n"
REFUSED = yaml.dump(v1(metadata={"name": "No_Name"}))


def migrate(*args: str | Path) -> Result:
    return CliRunner().invoke(command, [str(a) for a in args], prog_name="migrate")


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def tree(root: Path) -> dict[str, str]:
    """Every file with its text, without Git's own."""
    return {
        p.relative_to(root).as_posix(): p.read_text(encoding="utf-8")
        for p in sorted(root.rglob("*"))
        if p.is_file() and ".git" not in p.relative_to(root).parts
    }


def git(root: Path, *args: str) -> str:
    who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "a",
           "GIT_COMMITTER_EMAIL": "a@example.com", "GIT_CONFIG_GLOBAL": os.devnull}  # fmt: skip
    done = subprocess.run(["git", "-C", root, *args], check=True, capture_output=True, text=True, env=os.environ | who)
    return done.stdout


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A committed kustomize tree."""
    root = write(tmp_path / "repo", TREE)
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "v1")
    return root


@pytest.mark.kubectl
class TestKustomize:
    def test_the_whole_tree_below_o(self, tmp_path: Path) -> None:
        source = write(tmp_path / "in", TREE)
        result = migrate(source, "-o", tmp_path / "out")
        assert result.exit_code == 0, result.stderr
        out = tree(tmp_path / "out")
        assert sorted(out) == ["README.md", "base/job.yaml", "base/kustomization.yaml", "prod/kustomization.yaml"]
        assert out["README.md"] == TREE["README.md"]
        assert out["base/kustomization.yaml"] == BASE["base/kustomization.yaml"]
        assert out["prod/kustomization.yaml"].startswith("# for production\nresources:\n- ../base\nnamespace: prod\n")
        assert "kind: TrainJob" in out["base/job.yaml"]
        assert tree(source) == TREE
        assert "prod/kustomization.yaml:6:3: this patch of PyTorchJobs is replaced" in result.stderr
        assert "2 files written" in result.stderr

    def test_nothing_of_a_tree_is_written_when_one_kustomization_is_refused(self, tmp_path: Path) -> None:
        files = {**TREE, "part/kustomization.yaml": COMPONENT, "part/p.yaml": SMP}
        result = migrate(write(tmp_path / "in", files), "-o", tmp_path / "out")
        assert result.exit_code == 1
        assert not (tmp_path / "out").exists()
        assert "part/kustomization.yaml:4:3: a Component patches PyTorchJobs" in result.stderr
        assert "nothing of " in result.stderr

    def test_stdout_cannot_show_a_tree(self, tmp_path: Path) -> None:
        result = migrate(write(tmp_path, TREE))
        assert result.exit_code == 1
        assert "say -o DIR or --in-place" in result.stderr

    def test_check_writes_nothing(self, repo: Path) -> None:
        assert migrate(repo, "--check").exit_code == 1
        assert git(repo, "status", "--porcelain") == ""

    def test_existing_files_below_o_stay(self, tmp_path: Path) -> None:
        source, out = write(tmp_path / "in", TREE), write(tmp_path / "out", {"README.md": "mine"})
        assert migrate(source, "-o", out).exit_code == 2
        assert tree(out) == {"README.md": "mine"}
        assert migrate(source, "-o", out, "--overwrite").exit_code == 0
        assert tree(out)["README.md"] == "# Jobs\n"

    def test_stdin_beside_a_tree(self, tmp_path: Path) -> None:
        source = write(tmp_path / "in", TREE)
        stdin = JOB.replace("tune", "piped")
        result = CliRunner().invoke(command, [str(source), "-", "-o", str(tmp_path / "out")], input=stdin)
        assert result.exit_code == 0, result.stderr
        assert "name: piped" in tree(tmp_path / "out")["stdin.yaml"]

    def test_explain_writes_nothing_and_misses_nothing(self, tmp_path: Path) -> None:
        result = migrate(write(tmp_path, TREE), "--explain")
        assert result.exit_code == 0, result.stderr
        assert tree(tmp_path) == TREE

    def test_argo_cd_prunes_what_an_overlay_holds(self, tmp_path: Path) -> None:
        app = (
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: nlp}\nspec:\n"
            "  source: {path: prod}\n  syncPolicy:\n    automated:\n      prune: true\n"
        )
        result = migrate(write(tmp_path / "in", {**TREE, "apps/nlp.yaml": app}), "-o", tmp_path / "out")
        assert "warning[TJ922]" in result.stderr
        assert "apps/nlp.yaml:8:7: Argo CD Application nlp prunes" in result.stderr
        assert (tmp_path / "out/apps/nlp.yaml").read_text(encoding="utf-8") == app

    def test_a_broken_kustomization(self, tmp_path: Path) -> None:
        text = "patches:\n- patch: '{{ kind }}\n"
        result = migrate(write(tmp_path, {**BASE, "x/kustomization.yaml": text}), "--check")
        assert result.exit_code == 1
        assert "warning[TJ905]" in result.stderr
        assert "x/kustomization.yaml:3" in result.stderr
        result = migrate(write(tmp_path, {"x/kustomization.yaml": f"# PyTorchJob\n{text}"}), "--check")
        assert result.exit_code == 2
        assert "error[TJ905]" in result.stderr

    def test_argo_cd_gets_the_runtime_first(self, tmp_path: Path) -> None:
        app = (
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: nlp}\nspec: {source: {path: jobs}}\n"
        )
        job = yaml.dump(v1({"workingDir": "/w"}, metadata={"name": "tune"}))
        migrate(write(tmp_path / "in", {"jobs/a.yaml": job, "app.yaml": app}), "-o", tmp_path / "out")
        runtime, _ = yaml.load(tree(tmp_path / "out")["jobs/a.yaml"])
        assert runtime.data["kind"] == "TrainingRuntime"
        assert runtime.data["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"] == "-1"


@pytest.mark.kubectl
class TestInPlace:
    def test_a_clean_tree(self, repo: Path) -> None:
        result = migrate(repo, "--in-place")
        assert result.exit_code == 0, result.stderr
        assert git(repo, "status", "--porcelain").split() == [
            "M", "base/job.yaml", "M", "prod/kustomization.yaml", "D", "prod/more.yaml",
        ]  # fmt: skip
        assert result.stdout == ""

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            (lambda r: write(r, {"base/job.yaml": JOB + "# mine\n"}), "it has changes that are not committed"),
            (lambda r: git(r, "rm", "-q", "--cached", "base/job.yaml"), "Git does not track it"),
            (lambda r: shutil.rmtree(r / ".git"), "it is in no Git repository"),
        ],
        ids=["changed", "untracked", "no-git"],
    )
    def test_what_git_cannot_bring_back(self, repo: Path, change: object, said: str) -> None:
        assert callable(change)
        change(repo)
        before = tree(repo)
        result = migrate(repo, "--in-place")
        assert result.exit_code == 2
        assert said in result.stderr
        assert tree(repo) == before

    def test_changes_elsewhere_do_not_matter(self, repo: Path) -> None:
        write(repo, {"README.md": "more\n", "new.txt": "x\n"})
        assert migrate(repo, "--in-place").exit_code == 0

    def test_a_backup_instead_of_git(self, tmp_path: Path) -> None:
        root = write(tmp_path, TREE)
        assert migrate(root, "--in-place", "--backup", ".orig").exit_code == 0
        after = tree(root)
        for name in ("base/job.yaml", "prod/kustomization.yaml", "prod/more.yaml"):
            assert after[f"{name}.orig"] == TREE[name]
        again = migrate(root, "--in-place", "--backup", ".orig")
        assert "no v1 training job" in again.stderr

    def test_a_backup_is_never_overwritten(self, tmp_path: Path) -> None:
        root = write(tmp_path, {"job.yaml": JOB, "job.yaml.orig": "older\n"})
        assert migrate(root / "job.yaml", "--in-place", "--backup", ".orig").exit_code == 2
        assert tree(root) == {"job.yaml": JOB, "job.yaml.orig": "older\n"}

    @pytest.mark.parametrize("suffix", [".yaml", "/x", ""])
    def test_suffixes_that_are_none(self, tmp_path: Path, suffix: str) -> None:
        root = write(tmp_path, {"job.yaml": JOB})
        assert migrate(root, "--in-place", "--backup", suffix).exit_code == 2
        assert tree(root) == {"job.yaml": JOB}

    def test_all_or_nothing_when_a_job_is_refused(self, tmp_path: Path) -> None:
        root = write(tmp_path, {"a.yaml": JOB, "b.yaml": REFUSED})
        assert migrate(root, "--in-place", "--backup", ".orig").exit_code == 1
        assert tree(root) == {"a.yaml": JOB, "b.yaml": REFUSED}
        assert migrate(root, "--in-place", "--backup", ".orig", "--partial").exit_code == 1
        assert "kind: TrainJob" in tree(root)["a.yaml"]
        assert tree(root)["b.yaml"] == REFUSED

    def test_all_or_nothing_when_a_file_cannot_be_written(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        root = write(tmp_path, {"a.yaml": JOB, "b.yaml": JOB.replace("tune", "other")})
        before, real = tree(root), Path.replace

        def full(self: Path, target: Path) -> Path:
            if target.name == "b.yaml":
                raise OSError(28, "No space left on device", str(target))
            return real(self, target)

        monkeypatch.setattr(Path, "replace", full)
        result = migrate(root, "--in-place", "--backup", ".orig")
        assert result.exit_code == 2
        assert "No space left on device; all files are as they were" in result.stderr
        assert tree(root) == before

    def test_links_that_leave_the_tree(self, tmp_path: Path) -> None:
        outside = write(tmp_path / "outside", {"job.yaml": JOB})
        root = write(tmp_path / "in", {"a.yaml": JOB.replace("tune", "other")})
        (root / "job.yaml").symlink_to(outside / "job.yaml")
        result = migrate(root, "--in-place", "--backup", ".orig")
        assert result.exit_code == 2
        assert "job.yaml: not replaced: it is a symbolic link" in result.stderr
        assert (outside / "job.yaml").read_text(encoding="utf-8") == JOB
        assert "PyTorchJob" in (root / "a.yaml").read_text(encoding="utf-8")

    def test_the_mode_of_a_file_is_kept(self, tmp_path: Path) -> None:
        path = write(tmp_path, {"job.yaml": JOB}) / "job.yaml"
        path.chmod(0o640)
        assert migrate(path, "--in-place", "--backup", ".orig").exit_code == 0
        assert path.stat().st_mode & 0o777 == 0o640
        assert (tmp_path / "job.yaml.orig").stat().st_mode & 0o777 == 0o640

    def test_names_that_git_would_take_for_patterns(self, tmp_path: Path) -> None:
        root = write(tmp_path, {"*.yaml": JOB, "ä b.yaml": JOB.replace("tune", "other")})
        git(root, "init", "-q")
        git(root, "add", "-A")
        git(root, "commit", "-qm", "v1")
        result = migrate(root, "--in-place")
        assert result.exit_code == 0, result.stderr
        assert all("TrainJob" in text for text in tree(root).values())

    @pytest.mark.parametrize(
        "args", [["--in-place", "-o", "x"], ["--in-place", "-"], ["--backup", ".orig"], ["--partial"]]
    )
    def test_usage(self, tmp_path: Path, args: list[str]) -> None:
        path = write(tmp_path, {"job.yaml": JOB}) / "job.yaml"
        assert migrate(path, *args).exit_code == 2
        assert tree(tmp_path) == {"job.yaml": JOB}

    def test_git_is_asked_about_the_changed_files_only(self, repo: Path) -> None:
        assert inplace.objections({repo / "base/job.yaml": "x"}, {}, None) == []
        (objection,) = inplace.objections({write(repo, {"new.yaml": JOB}) / "new.yaml": "x"}, {}, None)
        assert (objection.code, objection.unreadable) == ("TJ926", True)


class TestPlaceholders:
    """They survive where only text stands, else the job is refused with the line."""

    JOB = (
        "# ${OWNER} asked for it\n---\napiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata:\n  name: tune\nspec:\n"
        "  pytorchReplicaSpecs:\n    Master:\n      template:\n        spec:\n          containers:\n"
        "          - name: pytorch\n            image: {image}\n            command: [python, train.py]\n"
        '            env:\n            - name: RUN\n              value: "{env}"\n'
    )

    def text(self, image: str = "reg.io/img:1", env: str = "x") -> str:
        return self.JOB.replace("{image}", image).replace("{env}", env)

    @pytest.mark.parametrize("placeholder", ["${RUN_ID}", "$RUN_ID", "${RUN_ID:-none}"])
    def test_envsubst_survives_in_env(self, tmp_path: Path, placeholder: str) -> None:
        result = migrate(write(tmp_path, {"job.yaml": self.text(env=placeholder)}) / "job.yaml")
        assert result.exit_code == 1
        assert f"value: {placeholder}\n" in result.stdout
        assert result.stdout.startswith("# ${OWNER} asked for it\n---\n")
        assert "job.yaml:18:15" in result.stderr

    @pytest.mark.parametrize("placeholder", ["${IMAGE}", '"{{ image }}"', '"{{ .Values.image }}"', "<IMAGE>"])
    def test_no_value_is_guessed_for_an_image(self, tmp_path: Path, placeholder: str) -> None:
        result = migrate(write(tmp_path, {"job.yaml": self.text(image=placeholder)}) / "job.yaml")
        assert (result.exit_code, result.stdout) == (2, "")
        assert "error[TJ906]" in result.stderr
        assert "job.yaml:14:13" in result.stderr

    def test_jinja_that_is_no_yaml(self, tmp_path: Path) -> None:
        text = self.text().replace("    Master:", "    {% for r in roles %}\n    Master:")
        result = migrate(write(tmp_path, {"job.yaml": text}) / "job.yaml")
        assert (result.exit_code, result.stdout) == (2, "")
        assert "job.yaml:9:1: this is a Helm or Jinja template" in result.stderr

    @pytest.mark.parametrize("other", ["a: {{ b }}\n", "{% if x %}\nkind: Service\n{% endif %}\n", "a: ${B}\n"])
    def test_other_documents_of_the_file_keep_theirs(self, tmp_path: Path, other: str) -> None:
        result = migrate(write(tmp_path, {"job.yaml": f"{self.text()}---\n{other}"}) / "job.yaml")
        assert result.stdout.endswith(f"---\n{other}")
