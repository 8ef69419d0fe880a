from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cluster import manifests
from tests.cluster.problems import ClusterError

THIRD_PARTY = """apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - https://example.com/somewhere/jobset/releases/download/v0.12.0/manifests.yaml
patches:
  - path: patches/jobset_remove_namespace.yaml
"""


def test_the_released_jobset_gives_way_to_a_local_file() -> None:
    changed = manifests.local_jobset(THIRD_PARTY, "jobset.yaml")
    assert "  - jobset.yaml\npatches:\n" in changed
    assert "https://" not in changed
    assert "patches/jobset_remove_namespace.yaml" in changed


@pytest.mark.parametrize("text", ["resources: []\n", THIRD_PARTY + THIRD_PARTY])
def test_an_overlay_of_another_shape_is_an_error(text: str) -> None:
    with pytest.raises(ClusterError, match=r"names \d released JobSet manifests, not one"):
        manifests.local_jobset(text, "jobset.yaml")


def test_managers_pull_nothing_and_ask_for_little() -> None:
    overlay = manifests.manager_overlay(
        "../config/default", [("registry.example/kueue", "registry.k8s.io/kueue/kueue:v1")]
    )
    patch: list[dict[str, Any]] = json.loads(overlay["patches"][0]["patch"])
    values = {operation["path"].rpartition("/")[2]: operation["value"] for operation in patch}
    assert values["imagePullPolicy"] == "IfNotPresent"
    assert values["resources"]["requests"]["cpu"] == "10m"
    assert overlay["images"] == [
        {"name": "registry.example/kueue", "newName": "registry.k8s.io/kueue/kueue", "newTag": "v1"}
    ]


def test_images_are_found_with_and_without_tag_quotes_and_port() -> None:
    rendered = """
        image: ghcr.io/kubeflow/trainer/trainer-controller-manager:v2.3.0
      - image: "registry.example:5000/team/manager"
        imagePullPolicy: Always
        description: "image: none"
"""
    assert manifests._images(rendered) == {
        "ghcr.io/kubeflow/trainer/trainer-controller-manager",
        "registry.example:5000/team/manager",
    }
