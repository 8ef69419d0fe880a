"""What of each v1 pod arrives in the new pods, for every input of migration/cases that converts."""

from __future__ import annotations

import re

import pytest

from tests.migrate.acceptance.inputs import CONVERTING, SHIM, V1Role, env_map, prune
from tests.migrate.acceptance.oracle import Case, cases

# Pod fields whose new form a test of their own checks: v1 labels inside (47).
REWRITTEN = {47: {"affinity", "topologySpreadConstraints"}}
# Programs whose new form a test of their own checks: rank switch, `cd`, endpoint, host name, quoting.
OWN_PROGRAM = frozenset({19, 20, 50, 52, 54})
MAIN_FIELDS = (
    "securityContext", "lifecycle", "startupProbe", "livenessProbe", "readinessProbe", "stdin", "tty",
    "workingDir", "envFrom", "imagePullPolicy", "ports",
)  # fmt: skip

converting = pytest.mark.parametrize("number", CONVERTING)


@converting
def test_success_rule_is_kept_or_told(number: int) -> None:
    """v1 ended with its Master; v2 waits for every pod unless a success policy says otherwise."""
    for one in cases(number):
        if one.v1.pods == 1 or "Master" not in one.v1.roles:
            continue
        policy = one.runtime["spec"]["template"]["spec"].get("successPolicy") or {}
        kept = policy.get("targetReplicatedJobs") == ["node"] and one.form == "two-role"
        if not kept and "successPolicy" not in one.node.job:
            one.result.says(r"\b(all|every)\b", r"succe|finish|complet|end|done")


@converting
def test_restart_limit_is_kept_or_told(number: int) -> None:
    """v1 restarted without limit; six restarts are all a Job has by default."""
    for one in cases(number):
        limit = (one.v1.data["spec"].get("runPolicy") or {}).get("backoffLimit")
        for role in one.v1.roles.values():
            after = one.role_for(role.name)
            if role.restart == "Never":
                assert after.pod["restartPolicy"] == "Never"
                assert after.job["backoffLimit"] == 0
            elif limit is not None:
                assert after.job["backoffLimit"] == limit
            elif after.job.get("backoffLimit", 6) <= 6:
                one.result.says(r"restart", r"\b6\b|six|limit")


@converting
def test_program_stays_word_by_word(number: int) -> None:
    """Image, command and args of the main container are v1's, apart from v1 host names."""
    for one in cases(number):
        for role in one.v1.roles.values():
            after = one.role_for(role.name).main
            assert after["image"] == role.main["image"]
            if number in OWN_PROGRAM:
                continue
            for field in ("command", "args"):
                assert (after.get(field) or []) == [rewritten(one, w) for w in role.main.get(field) or []]


def rewritten(one: Case, word: str) -> str:
    """`word` with v1's host names in v2's form."""
    if not one.v1.name:
        return word
    base = re.escape(one.v1.name)
    shift = 1 if "Master" in one.v1.roles else 0
    word = re.sub(base + "-master-0", f"{one.name}-node-0-0.{one.name}", word)
    if one.form == "two-role":
        return re.sub(base + r"-worker-(\d+)", rf"{one.name}-worker-\1-0.{one.name}", word)
    return re.sub(base + r"-worker-(\d+)", lambda m: f"{one.name}-node-0-{int(m[1]) + shift}.{one.name}", word)


@converting
def test_every_variable_arrives(number: int) -> None:
    """Each variable of the main container is in the new one, or a finding names it."""
    for one in cases(number):
        for role in one.v1.roles.values():
            after = env_map(one.role_for(role.name).main.get("env"))
            for name, entry in env_map(role.main.get("env")).items():
                if name in SHIM:
                    continue
                if name not in after or not (entry.get("value") or entry.get("valueFrom")):
                    assert one.result.mentions(name), name
                elif entry.get("value") and number != 54:
                    assert after[name]["value"] == entry["value"]
                elif set(entry.get("valueFrom") or {}) & {"secretKeyRef", "configMapKeyRef"}:
                    assert after[name]["valueFrom"] == entry["valueFrom"]


@converting
def test_every_pod_field_arrives(number: int) -> None:
    """Each field of a v1 pod is in the new pod with its value, or a finding names the field."""
    for one in cases(number):
        for role in one.v1.roles.values():
            compare_pods(one, role, REWRITTEN.get(number, set()))


def compare_pods(one: Case, role: V1Role, skip: set[str]) -> None:
    after = one.role_for(role.name)
    for field, value in prune(role.pod).items():
        if field in {"containers", "restartPolicy", "volumes", *skip}:
            continue
        if field == "initContainers":
            value = [c for c in value if c["name"] != "init-pytorch"]
        if value and prune(after.pod.get(field)) != value:
            assert one.result.mentions(field), field
    volumes = {v["name"]: prune(v) for v in after.pod.get("volumes") or []}
    for volume in prune(role.pod).get("volumes", []):
        assert volumes.get(volume["name"]) == volume or one.result.mentions(volume["name"])
    main = prune(role.main)
    mounts = [prune(m) for m in after.main.get("volumeMounts") or []]
    assert all(mount in mounts for mount in main.get("volumeMounts", []))
    for field in MAIN_FIELDS:
        if field in main and prune(after.main.get(field)) != main[field]:
            assert one.result.mentions(field) or one.result.mentions(field.removesuffix("s")), field
    names = {c["name"] for c in after.pod["containers"]}
    for container in role.pod["containers"]:
        assert container is role.main or container["name"] in names


@converting
def test_metadata_arrives(number: int) -> None:
    """Labels and annotations stay on their own level, or a finding names the key."""
    if number == 54:
        return  # its own test reads the quoted values
    for one in cases(number):
        own = one.job.get("metadata") or {}
        for part in ("labels", "annotations"):
            for key, value in (one.v1.metadata.get(part) or {}).items():
                if (own.get(part) or {}).get(key) != value and not key.startswith("kubectl."):
                    assert one.result.mentions(key), key
            for role in one.v1.roles.values():
                after = one.role_for(role.name).metadata.get(part) or {}
                for key, value in (role.metadata.get(part) or {}).items():
                    assert after.get(key) == value or one.result.mentions(key), key
