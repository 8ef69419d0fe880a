"""The catalogue reads the runtimes that ship."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainjob import catalog as module
from trainjob.catalog import V1_COMPAT, V1_COMPAT_MULTINODE, Catalog, CatalogError, Runtime, catalog, runtimes_root
from trainjob.emit import for_target
from trainjob.targets import TARGETS, Target
from trainjob.validate import check_runtime

RUNTIME = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata:
  name: {name}
  labels: {{trainjob.dev/topology: single-node, trainjob.dev/purpose: test, trainjob.dev/accelerator: nvidia}}
  annotations: {{trainjob.dev/summary: a test}}
spec:
  mlPolicy: {{numNodes: 2}}
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          spec:
            template:
              spec:
                containers:
                - {{name: log, image: log:1}}
                - {{name: node, image: img:1, resources: {{limits: {{nvidia.com/gpu: 4, cpu: 8}}}}}}
"""


def test_all_files_are_runtimes() -> None:
    """One object each, under the name of its file; kustomizations are no runtimes."""
    found = catalog()
    files = [f for f in runtimes_root().rglob("*.yaml") if f.name != "kustomization.yaml"]
    assert len(found) == len(files) >= 9
    assert {r.file.stem for r in found.values()} == set(found)
    assert all(name == r.name and r.kind == "ClusterTrainingRuntime" for name, r in found.items())


def test_numbers_are_those_of_the_names() -> None:
    """torch-fsdp-8gpu asks for eight GPUs on one node."""
    for count in (1, 2, 4, 8):
        runtime = catalog()[f"torch-fsdp-{count}gpu"]
        assert (runtime.gpus, runtime.nodes, runtime.topology) == (count, 1, "single-node")
    assert catalog()["torch-fsdp-cpu"].gpus == 0
    assert catalog()["torch-fsdp-multinode"].nodes > 1


def test_only_several_nodes_are_gated() -> None:
    """No overlay installs them unless it is asked."""
    assert {n for n, r in catalog().items() if r.gated} == {
        n for n, r in catalog().items() if r.topology == "multi-node"
    }
    assert catalog()[V1_COMPAT_MULTINODE].gated
    assert not catalog()[V1_COMPAT].gated


def test_every_runtime_says_what_it_is_for() -> None:
    """Summary, purpose, accelerator and image."""
    for runtime in catalog().values():
        assert runtime.summary
        assert runtime.purpose
        assert runtime.accelerator
        assert runtime.image
        assert runtime.pod["containers"]


@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize("name", list(catalog()))
def test_every_runtime_is_valid_for_every_target(name: str, target: Target) -> None:
    """In the shape that the target accepts."""
    assert check_runtime(for_target(catalog()[name].manifest, target), target) == []


@pytest.mark.parametrize("name", [V1_COMPAT, V1_COMPAT_MULTINODE])
def test_v1_compat_adds_nothing_but_env(name: str) -> None:
    """No resources, volumes or security context that a v1 job did not have."""
    runtime = catalog()[name]
    assert set(runtime.container) == {"name", "image", "env"}
    assert set(runtime.pod) == {"restartPolicy", "containers"}
    assert runtime.resources == {}


def test_a_missing_runtime_lists_what_exists() -> None:
    """As a lookup error with a remedy."""
    with pytest.raises(CatalogError, match=r"no runtime 'nope' in the catalogue; it has: .*torch-v1-compat") as caught:
        catalog()["nope"]
    assert isinstance(caught.value, LookupError)
    assert "nope" not in catalog()
    assert V1_COMPAT in catalog()


def test_a_deprecated_runtime_names_another() -> None:
    """One that exists and is not deprecated itself (docs/adr/0011); a version suffix has a predecessor."""
    for name, runtime in catalog().items():
        if runtime.deprecated:
            assert not catalog()[runtime.replaced_by].deprecated
        else:
            assert runtime.replaced_by == runtime.notice == ""
        stem, _, version = name.rpartition("-v")
        if stem and version.isdecimal():
            assert stem in catalog() or f"{stem}-v{int(version) - 1}" in catalog()


def test_deprecation_without_a_successor() -> None:
    """Says so without one."""
    manifest = {"metadata": {"labels": {"trainer.kubeflow.org/support": "deprecated"}}, "spec": {}}
    runtime = Runtime("x", "ClusterTrainingRuntime", manifest, Path("x"))
    assert (runtime.deprecated, runtime.replaced_by, runtime.notice) == (True, "", "deprecated")


def test_it_is_read_once() -> None:
    """The packaged one."""
    assert catalog() is catalog()


def test_another_folder(tmp_path: Path) -> None:
    """Sub-folders, several documents in a file, empty documents; properties come from the YAML."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.yaml").write_text(
        RUNTIME.format(name="a") + "---\n# nothing\n---\n" + RUNTIME.format(name="b")
    )
    (tmp_path / "kustomization.yaml").write_text("resources: []\n")
    found = Catalog(tmp_path)
    assert list(found) == ["a", "b"]
    runtime = found["b"]
    assert (runtime.gpus, runtime.nodes, runtime.image, runtime.summary) == (4, 2, "img:1", "a test")
    assert (runtime.purpose, runtime.accelerator, runtime.gated) == ("test", "nvidia", False)


def test_runtimes_without_the_parts_that_train() -> None:
    """Bare manifests have defaults; what cannot be used says so."""
    bare = Runtime(
        "x", "TrainingRuntime", {"metadata": {}, "spec": {"template": {"spec": {"replicatedJobs": []}}}}, Path("x")
    )
    assert (bare.topology, bare.accelerator, bare.summary, bare.nodes, bare.gated) == ("", "", "", 1, False)
    with pytest.raises(CatalogError, match="no replicatedJob `node`"):
        _ = bare.job
    job = {"name": "node", "template": {"spec": {"template": {"spec": {"containers": [{"name": "x"}]}}}}}
    manifest = {"metadata": {}, "spec": {"template": {"spec": {"replicatedJobs": [job]}}}}
    with pytest.raises(CatalogError, match="no container `node`"):
        _ = Runtime("x", "TrainingRuntime", manifest, Path("x")).container


def test_a_package_without_runtimes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A broken installation says what to do; a wheel's own copy comes first."""
    place = tmp_path / "lib" / "trainjob" / "catalog.py"
    place.parent.mkdir(parents=True)
    monkeypatch.setattr(module, "__file__", str(place))
    with pytest.raises(CatalogError, match="reinstall trainjob"):
        runtimes_root()
    packaged = place.parent / "_data" / "runtimes"
    packaged.mkdir(parents=True)
    assert runtimes_root() == packaged
