"""examples/build_and_migrate.py, run as a person would."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from trainjob import emit
from trainjob.catalog import catalog
from trainjob.findings import Severity
from trainjob.kube.yaml import load
from trainjob.targets import target
from trainjob.validate import check_trainjob

ROOT = Path(__file__).resolve().parents[2]
BEFORE = ROOT / "migration" / "cases" / "01-master-worker-python" / "before.yaml"


def run(file: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "examples" / "build_and_migrate.py"), str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_both_jobs_come_out_valid() -> None:
    done = run(BEFORE)
    assert done.returncode == 0
    assert "note[TJ101]" in done.stderr
    jobs = [doc.data for doc in load(done.stdout)]
    assert [job["kind"] for job in jobs] == ["TrainJob", "TrainJob"]
    assert [job["metadata"]["name"] for job in jobs] == ["demo-basic", "evaluate"]
    rhoai = target("rhoai-3.5")
    for job in jobs:
        runtime = emit.for_target(catalog()[job["spec"]["runtimeRef"]["name"]].manifest, rhoai)
        assert not [f for f in check_trainjob(job, rhoai, runtime) if f.severity is Severity.ERROR]


def test_a_file_without_a_job(tmp_path: Path) -> None:
    file = tmp_path / "empty.yaml"
    file.write_text("kind: ConfigMap\n")
    done = run(file)
    assert done.returncode == 1
    assert [doc.data["metadata"]["name"] for doc in load(done.stdout)] == ["evaluate"]
