"""TJ208: requests and limits, per pod, as written."""

from __future__ import annotations

from typing import Any

import pytest

from tests.migrate.rules.support import MAIN, alone, chain, noop, refusal, v1
from trainjob.migrate.rules import tj208_resources

RULE = tj208_resources.RULE
AT = f"{MAIN}.resources"


def resources(**parts: Any) -> dict[str, Any]:
    return {"resources": parts}


def test_noop_without_resources_but_for_a_note() -> None:
    """Nothing is written; the pods are BestEffort as before."""
    ran = alone(RULE, v1())
    ran.says("note", r"no resources are set: the pods run without requests", at=MAIN)
    assert ran.role.resources == {}
    assert ran.role.container == {}
    assert "resourcesPerNode" not in chain(v1()).trainer


def test_empty_maps_are_no_resources() -> None:
    """`limits: {}` is left out."""
    assert alone(RULE, v1(resources(limits={}, requests={}))).role.resources == {}


def test_quantities_keep_their_text() -> None:
    """`0.5`, `1e3`, `500m` and plain numbers, in limits and requests apart."""
    data = v1(resources(limits={"nvidia.com/gpu": 8, "memory": "1e9"}, requests={"cpu": 0.5, "memory": "512Mi"}))
    assert alone(RULE, data).findings == []
    assert chain(data).trainer["resourcesPerNode"] == {
        "limits": {"nvidia.com/gpu": "8", "memory": "1e9"},
        "requests": {"cpu": "0.5", "memory": "512Mi"},
    }


def test_limits_alone_stay_alone() -> None:
    """Kubernetes fills in the requests itself."""
    noop_free = alone(RULE, v1(resources(limits={"cpu": "1"})))
    assert (noop_free.role.resources, noop_free.findings) == ({"limits": {"cpu": "1"}}, [])


@pytest.mark.parametrize("value", ["abc", "1 Gi", "1gi", ""])
def test_what_is_no_quantity_is_refused(value: str) -> None:
    """With the place, whatever the resource: also one that is counted as a device."""
    for key in ("cpu", "nvidia.com/gpu"):
        finding = refusal(RULE, v1(resources(limits={key: value})))
        assert f"{value!r} is no quantity" in finding.message


def test_zero_is_kept_with_a_note() -> None:
    """It asks for nothing."""
    ran = alone(RULE, v1(resources(limits={"nvidia.com/gpu": 0})))
    ran.says("note", "nvidia.com/gpu: 0 is zero", at=f'{AT}.limits["nvidia.com/gpu"]')
    assert ran.role.resources == {"limits": {"nvidia.com/gpu": "0"}}


def test_a_device_in_requests_alone_is_refused() -> None:
    """With Kubernetes' own words; cpu in requests alone is fine."""
    finding = refusal(RULE, v1(resources(requests={"nvidia.com/gpu": 1})))
    assert "Limit must be set for non overcommitable resources" in finding.message
    assert "set limits['nvidia.com/gpu'] to 1" in finding.fix
    assert alone(RULE, v1(resources(requests={"cpu": 1, "amd.com/gpu": 0}, limits={}))).role.resources["requests"]


def test_claims_need_a_runtime() -> None:
    """Trainer drops them from a TrainJob."""
    data = v1(resources(claims=[{"name": "gpu"}]), pod={"resourceClaims": [{"name": "gpu", "resourceClaimName": "g"}]})
    alone(RULE, data).says("note", "device claims need a generated runtime", at=f"{AT}.claims")
    assert chain(data).container()["resources"]["claims"] == [{"name": "gpu"}]


def test_resize_policy_needs_a_runtime() -> None:
    """It stands beside the resources."""
    policy = [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]
    data = v1({"resizePolicy": policy, **resources(limits={"cpu": 1})})
    alone(RULE, data).says("note", "resizePolicy needs a generated runtime")
    assert chain(data).container()["resizePolicy"] == policy


def test_noop_leaves_the_input_alone() -> None:
    """The draft holds a copy."""
    noop(RULE, v1(resources(limits={"cpu": "1"})), after=(RULE,))
