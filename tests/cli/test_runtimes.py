"""`trainjob runtimes diff`, and how a deprecated runtime is shown."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from trainjob.catalog import Catalog, catalog
from trainjob.cli import command, runtimes
from trainjob.cli.runtimediff import SideError, chosen, side
from trainjob.kube.yaml import dump, dump_all
from trainjob.targets import DEFAULT

ROOT = Path(__file__).resolve().parents[2]


def trainjob(*args: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(command, [str(a) for a in args], input=stdin)


def base(name: str = "torch-fsdp-8gpu") -> dict[str, Any]:
    return copy.deepcopy(dict(catalog()[name].manifest))


def live(*names: str) -> str:
    """As `kubectl get clustertrainingruntimes -o yaml` writes them."""
    items = [base(n) for n in names]
    for item in items:
        item["metadata"] |= {"uid": "u", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return dump({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items})


class TestDiff:
    def test_nothing(self) -> None:
        result = trainjob("runtimes", "diff", ROOT / "runtimes/multi-node", "catalogue", "--common")
        assert (result.exit_code, result.stdout) == (0, "")
        assert "no difference (2 and " in result.stderr

    def test_two_of_the_catalogue(self) -> None:
        result = trainjob("runtimes", "diff", "torch-fsdp-4gpu", "torch-fsdp-8gpu")
        assert result.exit_code == 1
        assert result.stdout.startswith("ClusterTrainingRuntime torch-fsdp-4gpu -> torch-fsdp-8gpu\n")
        gpus = 'replicatedJobs[node].pod.spec.containers[node].resources.limits["nvidia.com/gpu"]: 4 -> 8  [new-jobs]'
        assert f"  ~ {gpus}\n" in result.stdout
        assert "new-jobs: jobs created from then on see it" in result.stderr

    def test_the_cluster_against_a_file(self, tmp_path: Path) -> None:
        new = base()
        new["spec"]["template"]["spec"]["failurePolicy"]["maxRestarts"] = 9
        new["spec"]["mlPolicy"]["numNodes"] = 1
        file = tmp_path / "new.yaml"
        file.write_text(dump(new))
        result = trainjob("runtimes", "diff", "-", file, stdin=live("torch-fsdp-1gpu", "torch-fsdp-8gpu"))
        assert result.exit_code == 1
        lines = result.stdout.splitlines()
        assert lines == [
            "ClusterTrainingRuntime torch-fsdp-8gpu",
            "  ~ spec.template.spec.failurePolicy.maxRestarts: 3 -> 9  [new-name]",
        ]
        assert "give the runtime a new name" in result.stderr

    def test_several_against_several(self, tmp_path: Path) -> None:
        (tmp_path / "a.yaml").write_text(dump_all([base("torch-fsdp-1gpu"), base("torch-fsdp-2gpu")]))
        result = trainjob("runtimes", "diff", "-", tmp_path, stdin=live("torch-fsdp-2gpu", "torch-fsdp-4gpu"))
        assert result.stdout.splitlines() == [
            "ClusterTrainingRuntime torch-fsdp-1gpu: only in the second  [new-jobs]",
            "ClusterTrainingRuntime torch-fsdp-4gpu: only in the first  [strands-jobs]",
        ]
        common = trainjob("runtimes", "diff", "-", tmp_path, "--common", stdin=live("torch-fsdp-2gpu"))
        assert common.exit_code == 0, common.output

    def test_json(self) -> None:
        result = trainjob("runtimes", "diff", "torch-fsdp-1gpu", "torch-lora-1gpu", "--format", "json")
        body = json.loads(result.stdout)
        assert (result.exit_code, body["target"], result.stderr) == (1, DEFAULT.name, "")
        (one,) = body["runtimes"]
        assert (one["name"], one["newName"], one["status"]) == ("torch-fsdp-1gpu", "torch-lora-1gpu", "changed")
        assert sum(e["count"] for e in body["effects"].values()) == len(one["changes"])
        nothing = trainjob("runtimes", "diff", "catalogue", "catalogue", "--format", "json")
        assert (nothing.exit_code, json.loads(nothing.stdout)["runtimes"]) == (0, [])

    def test_all_signs(self, tmp_path: Path) -> None:
        new = base()
        pod = new["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
        pod["containers"][0]["env"].reverse()
        pod["hostNetwork"] = True
        pod["volumes"][0]["emptyDir"].pop("sizeLimit")
        new["metadata"]["annotations"]["trainjob.dev/summary"] = "long " * 40 + "\nlines"
        (tmp_path / "new.yaml").write_text(dump(new))
        shown = trainjob("runtimes", "diff", "torch-fsdp-8gpu", tmp_path / "new.yaml").stdout
        assert "+ replicatedJobs[node].pod.spec.hostNetwork: true" in shown
        assert "- replicatedJobs[node].pod.spec.volumes[runtime-shm].emptyDir.sizeLimit: 64Gi" in shown
        assert "containers[node].env: order PYTHONUNBUFFERED, " in shown
        assert max(map(len, shown.splitlines())) < 600
        assert "...  [no-job]" in shown

    @pytest.mark.kubectl
    def test_an_overlay(self) -> None:
        result = trainjob("runtimes", "diff", "torch-fsdp-8gpu", ROOT / "overlays/prod")
        assert result.exit_code == 1
        assert result.stdout.count("\n") == 2
        assert "pod.spec.tolerations" in result.stdout

    def test_an_older_trainer(self) -> None:
        result = trainjob("runtimes", "diff", "torch-fsdp-1gpu", "torch-fsdp-1gpu", "--target", "2.1")
        assert result.exit_code == 0


class TestUnreadable:
    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("a: [1", "in.yaml:"),
            ("a: 1\n", "holds no ClusterTrainingRuntime"),
            ("kind: ClusterTrainingRuntime\nspec: {}\n", "without metadata.name or spec"),
            ("kind: ClusterTrainingRuntime\nmetadata: {name: a}\nspec: {}\n---\n" * 2, "more than once"),
        ],
    )
    def test_a_file(self, tmp_path: Path, text: str, says: str) -> None:
        (tmp_path / "in.yaml").write_text(text)
        result = trainjob("runtimes", "diff", tmp_path / "in.yaml", "catalogue")
        assert (result.exit_code, result.stdout) == (2, "")
        assert says in result.stderr

    def test_no_text(self, tmp_path: Path) -> None:
        (tmp_path / "in.yaml").write_bytes(b"\xff\xfe")
        result = trainjob("runtimes", "diff", tmp_path / "in.yaml", "catalogue")
        assert result.exit_code == 2
        assert "not UTF-8" in result.stderr

    def test_no_such_thing(self) -> None:
        result = trainjob("runtimes", "diff", "nope", "catalogue")
        assert result.exit_code == 2
        assert "nope is no file, no folder and no runtime" in result.stderr
        assert "fix: it has: " in result.stderr

    def test_one_that_the_other_side_lacks(self) -> None:
        result = trainjob("runtimes", "diff", "-", "torch-lora-1gpu", stdin=live("torch-fsdp-1gpu", "torch-fsdp-2gpu"))
        assert result.exit_code == 2
        assert "- holds no ClusterTrainingRuntime torch-lora-1gpu" in result.stderr
        with pytest.raises(SideError, match="x holds no ClusterTrainingRuntime torch-lora-1gpu"):
            chosen([base("torch-lora-1gpu")], [base(), base("torch-fsdp-1gpu")], ("y", "x"))

    def test_stdin_twice(self) -> None:
        result = trainjob("runtimes", "diff", "-", "-", stdin="")
        assert result.exit_code == 2
        assert "only one side" in result.stderr

    @pytest.mark.kubectl
    def test_an_overlay_that_does_not_build(self, tmp_path: Path) -> None:
        (tmp_path / "kustomization.yaml").write_text("resources: [absent.yaml]\n")
        with pytest.raises(SideError, match="absent"):
            side(str(tmp_path), DEFAULT)


class TestDeprecated:
    @pytest.fixture
    def old(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalog:
        one = base()
        one["metadata"]["labels"]["trainer.kubeflow.org/support"] = "deprecated"
        one["metadata"]["annotations"]["trainjob.dev/replaced-by"] = "torch-fsdp-8gpu-v2"
        two = base()
        two["metadata"]["name"] = "torch-fsdp-8gpu-v2"
        for obj in (one, two):
            (tmp_path / f"{obj['metadata']['name']}.yaml").write_text(dump(obj))
        found = Catalog(tmp_path)
        monkeypatch.setattr(runtimes, "catalog", lambda: found)
        return found

    def test_list(self, old: Catalog) -> None:
        lines = trainjob("runtimes", "list").stdout.splitlines()[1:]
        (told,) = (line for line in lines if "deprecated" in line)
        assert told.startswith("torch-fsdp-8gpu ")
        assert "(deprecated, use torch-fsdp-8gpu-v2) Full fine-tuning" in told
        facts = {f["name"]: f for f in json.loads(trainjob("runtimes", "list", "--format", "json").stdout)}
        shown = {n: (f["deprecated"], f["replacedBy"]) for n, f in facts.items()}
        assert shown == {"torch-fsdp-8gpu": (True, "torch-fsdp-8gpu-v2"), "torch-fsdp-8gpu-v2": (False, None)}
        assert old["torch-fsdp-8gpu"].notice == "deprecated, use torch-fsdp-8gpu-v2"

    @pytest.mark.usefixtures("old")
    def test_show(self) -> None:
        result = trainjob("runtimes", "show", "torch-fsdp-8gpu")
        assert result.exit_code == 0
        assert result.stderr == "warning: torch-fsdp-8gpu is deprecated, use torch-fsdp-8gpu-v2\n"
        assert trainjob("runtimes", "show", "torch-fsdp-8gpu-v2").stderr == ""

    def test_validate_says_what_to_use(self, old: Catalog) -> None:
        spec = {"runtimeRef": {"name": "torch-fsdp-8gpu"}, "trainer": {"numNodes": 1}}
        job = {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": {"name": "a"},
            "spec": spec,
        }
        both = dump_all([dict(old["torch-fsdp-8gpu"].manifest), job])
        result = trainjob("validate", "-", stdin=both)
        assert result.exit_code == 1
        assert "TJ512" in result.stderr
        assert 'fix: use "torch-fsdp-8gpu-v2"' in result.stderr
