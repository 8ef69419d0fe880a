"""TJ301: volumes and mounts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.migrate.rules.support import MAIN, POD, alone, chain, noop, refusal, v1
from trainjob.migrate.rules import tj301_volumes
from trainjob.targets import TARGETS, Target

RULE = tj301_volumes.RULE
DATA = {"name": "data", "persistentVolumeClaim": {"claimName": "c"}}
MOUNT = {"name": "data", "mountPath": "/d", "subPath": "x", "readOnly": True}


def test_noop_without_volumes() -> None:
    """Nothing to carry."""
    noop(RULE)


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_a_volume_and_its_mount_are_patched(target: Target) -> None:
    """Claim, mode and sub-path as written, without a runtime, for every Trainer version."""
    data = v1({"volumeMounts": [MOUNT]}, {"volumes": [DATA]})
    assert alone(RULE, data).findings == []
    result = chain(data, target)
    assert result.runtime is None
    (patch,) = result.job["spec"][target.patches]
    text = str(patch)
    assert str(DATA) in text
    assert str([{"name": "node", "volumeMounts": [MOUNT]}]) in text


def test_modes_keep_their_meaning() -> None:
    """0400 in YAML is 256."""
    volume = {"name": "s", "secret": {"secretName": "k", "defaultMode": 256}}
    assert chain(v1(pod={"volumes": [volume]})).patch["spec"]["volumes"] == [volume]


def test_one_volume_mounted_twice_needs_a_runtime() -> None:
    """A patch lists mounts by volume name."""
    mounts = [MOUNT, {"name": "data", "mountPath": "/e"}]
    data = v1({"volumeMounts": mounts}, {"volumes": [DATA]})
    alone(RULE, data).says("note", "mounted more than once", at=f"{MAIN}.volumeMounts")
    assert chain(data).container()["volumeMounts"] == mounts


def test_block_devices_need_a_runtime() -> None:
    """With a note."""
    data = v1({"volumeDevices": [{"name": "data", "devicePath": "/dev/x"}]}, {"volumes": [DATA]})
    ran = alone(RULE, data)
    ran.says("note", "volumeDevices need a generated runtime", at=f"{MAIN}.volumeDevices")
    assert len(ran.findings) == 1
    assert chain(data).container()["volumeDevices"] == [{"name": "data", "devicePath": "/dev/x"}]


def test_an_unused_volume_is_kept() -> None:
    """With a note; one that an init container mounts is used."""
    alone(RULE, v1(pod={"volumes": [DATA]})).says("note", "'data' is mounted nowhere", at=f"{POD}.volumes[0]")
    init = {"initContainers": [{"name": "i", "image": "i", "volumeMounts": [MOUNT]}]}
    assert alone(RULE, v1(pod={"volumes": [DATA], **init})).findings == []


@pytest.mark.parametrize("name", ["Data", "my_data", "a.b", "-a", "", "a" * 64])
def test_illegal_volume_names_are_refused(name: str) -> None:
    """Kubernetes refuses the pod."""
    finding = refusal(RULE, v1(pod={"volumes": [{"name": name, "emptyDir": {}}]}))
    assert "is no valid volume name" in finding.message


@pytest.mark.parametrize("name", ["0", "0-data", "1a", "a" * 63])
def test_names_may_begin_with_a_digit(name: str) -> None:
    """An RFC 1123 label."""
    assert alone(RULE, v1(pod={"volumes": [{"name": name, "emptyDir": {}}]})).role.spec["volumes"]


@pytest.mark.parametrize("volumes", [[], [{"name": "other", "emptyDir": {}}]])
def test_a_mount_without_its_volume_is_refused(volumes: Any) -> None:
    """The finding lists what there is."""
    finding = refusal(RULE, v1({"volumeMounts": [MOUNT]}, {"volumes": volumes}))
    assert "the mount names the volume 'data'" in finding.message
    assert finding.fix.endswith("other" if volumes else "none")
