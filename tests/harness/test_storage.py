"""The class for claims that several nodes write."""

from __future__ import annotations

from tests.cluster.storage import with_shared

PATHS = [{"node": "DEFAULT_PATH_FOR_NON_LISTED_NODES", "paths": ["/var/local-path-provisioner"]}]


def test_the_default_class_keeps_its_folder() -> None:
    made = with_shared({"nodePathMap": PATHS})
    assert made["storageClassConfigs"] == {
        "standard": {"nodePathMap": PATHS},
        "shared": {"sharedFileSystemPath": "/shared"},
    }
    # Both forms at once are refused by the provisioner.
    assert "nodePathMap" not in made


def test_a_second_run_changes_nothing() -> None:
    once = with_shared({"nodePathMap": PATHS})
    assert with_shared(once) == once
