from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster import versions
from tests.cluster.problems import ClusterError

GOMOD = Path(versions.__file__).with_name("gomod")


@pytest.mark.parametrize(
    ("trainer", "jobset"), [("2.3.0", "v0.12.0"), ("2.2.0", "v0.11.1"), ("2.1.0", "v0.10.1"), ("2.0.1", "v0.8.2")]
)
def test_every_trainer_comes_with_its_jobset(trainer: str, jobset: str) -> None:
    row = versions.trainer(trainer)
    assert row.module.version == f"v{trainer}"
    assert row.jobset.version == jobset
    assert row.manager.image == f"ghcr.io/kubeflow/trainer/trainer-controller-manager:v{trainer}"
    assert row.jobset_manager.image == f"registry.k8s.io/jobset/jobset:{jobset}"


def test_the_default_is_in_the_matrix() -> None:
    assert versions.trainer(versions.DEFAULT_TRAINER) is versions.trainer("v2.3.0")


def test_an_unknown_trainer_is_told_the_known_ones() -> None:
    with pytest.raises(ClusterError, match=r"Trainer 2\.9\.0 is not in the version matrix") as caught:
        versions.trainer("2.9.0")
    assert "2.0.1" in caught.value.next_step


def test_wrappers_require_the_pinned_version_and_have_checksums() -> None:
    wrapped = {program.module for program in versions.NODE_PROGRAMS if program.module.wrapper}
    assert {module.wrapper for module in wrapped} == {path.name for path in GOMOD.iterdir()}
    for module in wrapped:
        folder = GOMOD / module.wrapper
        assert f"{module.path} {module.version}\n" in (folder / "go.mod").read_text()
        assert f"{module.path} {module.version} {module.checksum}\n" in (folder / "go.sum").read_text()


def test_wrappers_import_every_program_they_build() -> None:
    for program in versions.NODE_PROGRAMS:
        if program.module.wrapper:
            assert f'"{program.package}"' in (GOMOD / program.module.wrapper / "tools.go").read_text()


def test_what_kubeadm_expects_is_preloaded_at_the_version_that_is_built() -> None:
    names = {image.program: image.name for image in versions.PRELOADED}
    for program in versions.NODE_PROGRAMS:
        if program.name.startswith("kube-"):
            assert names[program.name] == f"registry.k8s.io/{program.name}:{versions.KUBERNETES}"
    assert names["coredns"].endswith(versions.COREDNS.module.version)
