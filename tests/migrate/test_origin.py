"""The two annotations that say where a TrainJob came from."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from trainjob.kube import yaml
from trainjob.migrate import migrate_text
from trainjob.migrate.origin import MIGRATED_FROM, SOURCE_SHA256, shown

CASES = Path(__file__).parents[2] / "migration" / "cases"
PLAIN = CASES / "01-master-worker-python" / "before.yaml"


def annotations(text: str, kind: str = "TrainJob") -> list[dict[str, Any]]:
    found = [d.data for d in yaml.load(text) if isinstance(d.data, dict)]
    return [o["metadata"].get("annotations", {}) for o in found if o["kind"] == kind]


def test_a_file_with_one_document_has_the_hash_of_the_file() -> None:
    (notes,) = annotations(migrate_text(PLAIN.read_bytes(), file="team/job.yaml").text)
    assert notes[MIGRATED_FROM] == "team/job.yaml:1 PyTorchJob ml-demo/demo-basic"
    assert notes[SOURCE_SHA256] == hashlib.sha256(PLAIN.read_bytes()).hexdigest()


def test_the_line_is_that_of_the_job_and_the_hash_that_of_its_document() -> None:
    first = "# two jobs\n---\n" + PLAIN.read_text(encoding="utf-8").rstrip("\n") + "\n"
    second = "---\n" + PLAIN.read_text(encoding="utf-8").replace("demo-basic", "demo-other")
    one, two = annotations(migrate_text(first + second, file="jobs.yaml").text)
    assert one[MIGRATED_FROM].startswith("jobs.yaml:3 ")
    assert one[SOURCE_SHA256] == hashlib.sha256(first.encode()).hexdigest()
    assert two[SOURCE_SHA256] == hashlib.sha256(second.encode()).hexdigest()
    assert two[MIGRATED_FROM].endswith(" PyTorchJob ml-demo/demo-other")
    assert int(two[MIGRATED_FROM].split(":")[1].split()[0]) == first.count("\n") + 2


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("<stdin>", "-"),
        ("manifests/a.yaml", "manifests/a.yaml"),
        ("./manifests//a.yaml", "manifests/a.yaml"),
        ("../a.yaml", "../a.yaml"),
        ("/home/me/secret-project/a.yaml", "a.yaml"),
    ],
)
def test_no_folder_of_a_machine_gets_into_the_output(given: str, written: str) -> None:
    assert shown(given) == written
    (notes,) = annotations(migrate_text(PLAIN.read_bytes(), file=given).text)
    assert notes[MIGRATED_FROM].partition(":")[0] == written


def test_jobs_inside_other_objects_name_their_own_place() -> None:
    wrapped = CASES / "25-appwrapper-podsets" / "before.yaml"
    text = wrapped.read_text(encoding="utf-8")
    (outer,) = [d.data for d in yaml.load(migrate_text(text, file="aw.yaml").text) if d.data["kind"] == "AppWrapper"]
    inner = outer["spec"]["components"][0]["template"]
    notes = inner["metadata"]["annotations"]
    line = int(notes[MIGRATED_FROM].split(":")[1].split()[0])
    assert text.splitlines()[line - 1].strip() == "template:"
    assert "kubeflow.org/v1" in text.splitlines()[line]


def test_a_job_in_a_text_names_its_line_in_the_file() -> None:
    path = CASES / "24-katib-template-configmap" / "before.yaml"
    text = migrate_text(path.read_bytes(), file="cm.yaml").text
    note = next(line for line in text.splitlines() if MIGRATED_FROM in line)
    line = int(note.split("cm.yaml:")[1].split()[0])
    assert "kubeflow.org/v1" in path.read_text(encoding="utf-8").splitlines()[line - 1]


def test_a_shared_runtime_names_no_job() -> None:
    """Alike jobs share a runtime: with an origin in it two files would change it back and forth."""
    job = (CASES / "02-master-only-entrypoint-pvc" / "before.yaml").read_text(encoding="utf-8")
    both = migrate_text(_with_init(job, "one") + "---\n" + _with_init(job, "two"), file="x.yaml")
    runtimes = [d.data for d in yaml.load(both.text) if d.data["kind"] == "TrainingRuntime"]
    assert len(runtimes) == 2
    assert runtimes[0] == runtimes[1]
    assert MIGRATED_FROM not in runtimes[0]["metadata"]["annotations"]


def _with_init(text: str, name: str) -> str:
    (doc,) = yaml.load(text)
    doc.data["metadata"]["name"] = name
    for role in doc.data["spec"]["pytorchReplicaSpecs"].values():
        role["template"]["spec"]["containers"][0]["workingDir"] = "/srv"
    return yaml.dump(doc.data)


def test_an_origin_that_was_there_is_replaced() -> None:
    text = PLAIN.read_text(encoding="utf-8").replace(
        "  namespace: ml-demo",
        f"  namespace: ml-demo\n  annotations:\n    {MIGRATED_FROM}: elsewhere\n    mine: kept",
        1,
    )
    (notes,) = annotations(migrate_text(text, file="job.yaml").text)
    assert notes[MIGRATED_FROM] == "job.yaml:1 PyTorchJob ml-demo/demo-basic"
    assert notes["mine"] == "kept"
