"""Whatever a file holds, a command ends with 0, 1 or 2, says something, and leaves its input alone."""

from __future__ import annotations

import importlib
import tempfile
from pathlib import Path

import click
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from tests.property.strategies import CASES, ROOT, tear, torn_texts

SCRIPTS = [p.read_text(encoding="utf-8") for p in sorted(ROOT.glob("tests/sdkmod/cases/*/before.*"))]
CHART = {p.relative_to(ROOT / "tests/migrate/tree/chart"): p for p in (ROOT / "tests/migrate/tree/chart").rglob("*")}
KUSTOMIZATION = """\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namePrefix: team-
resources:
  - job.yaml
images:
  - name: registry.example.com/train
    newTag: "2"
patches:
  - target:
      kind: PyTorchJob
    patch: |-
      - op: replace
        path: /spec/pytorchReplicaSpecs/Worker/replicas
        value: 3
  - path: patch.yaml
"""
PATCH = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: demo
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 2
"""
GARBAGE = st.one_of(st.binary(), st.text().map(lambda text: text.encode("utf-8", "surrogatepass")))


def run(command: str, files: dict[str, bytes], *options: str) -> Result:
    """Runs a subcommand on a folder with these files, which must be the same afterwards."""
    made = importlib.import_module(f"trainjob.cli.{command}").command
    assert isinstance(made, click.Command)
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            file = Path(folder) / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        given_files = [str(Path(folder) / name) for name in files] if len(files) == 1 else [folder]
        result = CliRunner().invoke(made, [*given_files, *options], catch_exceptions=True)
        assert {name: (Path(folder) / name).read_bytes() for name in files} == files
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code in (0, 1, 2), result.output
    assert "Traceback" not in result.output
    return result


@given(
    torn_texts(),
    st.sampled_from(["text", "json", "sarif", "markdown", "html"]),
    st.sampled_from(["2.0", "2.1", "2.3", "rhoai-3.5"]),
)
def test_migrate_a_torn_file(text: str, form: str, target: str) -> None:
    result = run("migrate", {"job.yaml": text.encode()}, "--format", form, "--target", target)
    assert result.stderr


@given(torn_texts())
def test_explain_a_torn_file(text: str) -> None:
    assert run("migrate", {"job.yaml": text.encode()}, "--explain").output


@given(
    torn_texts(), tear([KUSTOMIZATION]), tear([PATCH]), st.booleans()
)  # fmt: skip
def test_migrate_a_torn_tree(job: str, kustomization: str, patch: str, overlay: bool) -> None:
    files = {"job.yaml": job, "kustomization.yaml": kustomization, "patch.yaml": patch}
    if overlay:
        files["prod/kustomization.yaml"] = KUSTOMIZATION.replace("job.yaml", "../")
    assert run("migrate", {name: text.encode() for name, text in files.items()}, "--check").output


@given(tear([p.read_text(encoding="utf-8") for name, p in CHART.items() if name.suffix == ".yaml"]), st.data())
def test_migrate_a_torn_chart(text: str, data: st.DataObject) -> None:
    files = {str(name): p.read_bytes() for name, p in CHART.items() if p.is_file()}
    files[data.draw(st.sampled_from(sorted(files)))] = text.encode()
    assert run("migrate", files, "--check").output


@given(torn_texts(), tear([p.read_text(encoding="utf-8") for p in sorted(ROOT.glob("migration/cases/*/after.yaml"))]))
def test_validate_torn_files(queues: str, job: str) -> None:
    assert run("validate", {"job.yaml": job.encode()}).output
    assert run("validate", {"job.yaml": job.encode(), "queues.yaml": queues.encode()}, "--format", "json").output


@given(tear(SCRIPTS))
def test_migrate_sdk_a_torn_script(text: str) -> None:
    run("migrate_sdk", {"train.py": text.encode()})


@given(GARBAGE, st.sampled_from([("migrate", "job.yaml"), ("validate", "job.yaml"), ("migrate_sdk", "train.py")]))
def test_garbage_in_a_file(content: bytes, how: tuple[str, str]) -> None:
    run(how[0], {how[1]: content})


def test_there_is_something_to_tear() -> None:
    assert len(CASES) >= 54
    assert len(SCRIPTS) >= 10
    assert len(CHART) >= 3
