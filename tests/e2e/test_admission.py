"""The real API server and webhooks against what the project writes, and against what is broken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.kube import Kubectl
from trainjob import kustomize
from trainjob.emit import for_target
from trainjob.kube.yaml import dump_all, load
from trainjob.migrate import migrate_text
from trainjob.targets import Target, target

ROOT = Path(__file__).parents[2]
CASES = sorted((ROOT / "migration" / "cases").glob("*/before.*"))
# The other documents of a migrated stream are not ours.
TRAINER = {"TrainJob", "TrainingRuntime", "ClusterTrainingRuntime", "PersistentVolumeClaim", "Job"}


@pytest.fixture(scope="module", autouse=True)
def installed(cluster: Kubectl) -> None:
    """What prod-multi-node holds, in the shape of the Trainer that runs."""
    docs = [doc.data for doc in load(kustomize.build(ROOT / "overlays" / "prod-multi-node").decode())]
    runs = running_target(cluster)
    cluster.install(dump_all([for_target(d, runs) if d["kind"] == "ClusterTrainingRuntime" else d for d in docs]))


def submit(kubectl: Kubectl, text: str) -> str:
    """Dry-run of a stream in the test's namespace; generated runtimes are created for their jobs."""
    said = ""
    for doc in load(text):
        data = doc.data
        if data is None or data.get("kind") not in TRAINER:
            continue
        data["metadata"] = {**data["metadata"], "namespace": kubectl.namespace}
        if data["kind"] == "ClusterTrainingRuntime":
            del data["metadata"]["namespace"]
        one = dump_all([data])
        if data["kind"] == "TrainingRuntime":  # alike jobs share one: apply it, as a user would
            said += "" if "serverside-applied" in kubectl.apply(one) else f"not applied: {one[:200]}"
        else:
            said += kubectl.dry_run(one)
    return said


@pytest.mark.ci
@pytest.mark.matrix
def test_every_migrated_case_is_accepted(kubectl: Kubectl, seen: Callable[[str], None]) -> None:
    """Each migration case that converts passes a server dry-run with strict validation and webhooks."""
    refused, count, runs = {}, 0, running_target(kubectl)
    for case in CASES:
        result = migrate_text(case.read_bytes(), file=case.name, target=runs)
        if not any(job.manifest.get("metadata", {}).get("name") for job in result.jobs):
            continue
        count += 1
        said = submit(kubectl, dump_all([o for job in result.jobs for o in job.objects()]))
        if said:
            refused[case.parent.name] = said
    assert refused == {}
    assert count >= 38
    seen(f"{count} cases accepted")


@pytest.mark.ci
@pytest.mark.matrix
def test_every_runtime_and_template_is_accepted(kubectl: Kubectl, seen: Callable[[str], None]) -> None:
    """Each file of runtimes/ and trainjobs/ passes a server dry-run."""
    files = [f for f in sorted((ROOT / "runtimes").rglob("*.yaml")) if f.name != "kustomization.yaml"]
    runs = running_target(kubectl)
    if runs.patches == "runtimePatches":  # the templates are written for 2.2 and later
        files += sorted((ROOT / "trainjobs").glob("*/*.yaml"))
    refused = {}
    for file in files:
        text = file.read_text(encoding="utf-8")
        for doc in load(text):
            if doc.data["kind"] == "ClusterTrainingRuntime":
                doc.data["metadata"]["name"] += "-copy"
                said = kubectl.dry_run(dump_all([for_target(doc.data, runs)]))
            else:
                said = submit(kubectl, dump_all([doc.data]))
            if said:
                refused[file.name] = said
    assert refused == {}
    seen(f"{len(files)} files accepted")


def running_target(kubectl: Kubectl) -> Target:
    """The target of the Trainer that runs, from the image of its manager."""
    deployments = kubectl.run(
        "get",
        "deployments",
        "-A",
        "-o",
        "jsonpath={range .items[*]}{.spec.template.spec.containers[0].image}{'\\n'}{end}",
    )
    image = next(line for line in deployments.splitlines() if "trainer-controller-manager" in line)
    return target(".".join(image.rsplit(":v", 1)[1].split(".")[:2]))
